// EventSource and fetch of pages that listen to a run.
import { closed, equal, heard, listen, provider, start, waitFor, whole } from './driver.mjs';

const events = (base, run, query = '') => `${base}/runs/${run.id}/events?token=${run.token}${query}`;
const some = (p, n) => waitFor(p, `window.heard.length >= ${n}`);

export const eventSourceCases = ({ job, open }) => {
  const cut = () => fetch(job.cut, { method: 'POST' });
  const page = (origin = job.home) => open(origin);

  return {
    // A page that is loaded again keeps the last id itself: EventSource forgets it with the page.
    async 'reload in mid-answer'() {
      const run = await start(job.spool, 'openai');
      const p = await page();
      await listen(p, events(job.spool, run));
      await some(p, 8);
      const before = provider(await p.evaluate(() => { window.source.close(); return window.heard; }));
      await p.reload();
      const next = Number((await p.evaluate(() => sessionStorage.getItem('last'))).split(':')[1]) + 1;
      await listen(p, events(job.spool, run, `&from=${next}`));
      await closed(p);
      whole([...before, ...(await heard(p))], run, job.chat);
    },

    async 'network drop'() {
      const run = await start(job.spool, 'openai');
      const p = await page();
      await listen(p, events(job.cutter, run));
      await some(p, 5);
      await cut();
      await waitFor(p, 'window.opens >= 2');
      await cut();
      await closed(p);
      whole(await heard(p), run, job.chat);
    },

    // The connection ends properly while the run goes on: EventSource comes back with its last id.
    async 'clean close'() {
      const run = await start(job.spool, 'openai');
      const p = await page();
      await listen(p, events(job.spool, run, '&follow=0'));
      await closed(p);
      whole(await heard(p), run, job.chat);
      if ((await p.evaluate('window.opens')) < 2) throw new Error('it was never closed');
    },

    async 'finished run'() {
      const run = await start(job.spool, 'anthropic');
      const p = await page();
      const names = ['message_start', 'content_block_start', 'ping', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop'];
      await listen(p, events(job.spool, run), names);
      await closed(p); // by the 204 that answers its return
      whole(await heard(p), run, job.messages);
      equal((await heard(p)).filter((e) => e.name === 'message').length, 0, 'events without a name');
      await listen(p, events(job.spool, run), names);
      await closed(p);
      whole(await heard(p), run, job.messages);
      equal(await p.evaluate('window.opens'), 1, 'opens of a replay'); // 204 opens nothing
    },

    // A browser has six connections of HTTP/1.1 for an origin, whatever the tabs: the seventh waits.
    async 'seven tabs over HTTP/1.1'() {
      const run = await start(job.spool, 'open');
      const tabs = [];
      for (let i = 0; i < 7; i++) tabs.push(await page());
      for (const p of tabs) await listen(p, events(job.spool, run));
      for (const p of tabs.slice(0, 6)) await waitFor(p, 'window.opens === 1');
      const status = await (await fetch(`${job.spool}/runs/${run.id}?token=${run.token}`)).json();
      equal([status.readers, await tabs[6].evaluate('window.opens')], [6, 0], 'readers, and opens of the seventh');
      await tabs[0].close();
      await waitFor(tabs[6], 'window.opens === 1');
      for (const p of tabs.slice(1)) await p.close();
    },

    async 'seven tabs over HTTP/2'() {
      const run = await start(job.secure, 'open');
      const tabs = [];
      for (let i = 0; i < 7; i++) tabs.push(await page());
      for (const p of tabs) await listen(p, events(job.secure, run));
      for (const p of tabs) await waitFor(p, 'window.heard.some((e) => e.name === "up_to_date")');
      const status = await (await fetch(`${job.secure}/runs/${run.id}?token=${run.token}`)).json();
      equal(status.readers, 7, 'readers');
      for (const p of tabs) await p.close();
    },

    async 'whole run over HTTP/2'() {
      const run = await start(job.secure, 'openai');
      const p = await page();
      await listen(p, events(job.secure, run));
      await closed(p);
      whole(await heard(p), run, job.chat);
    },

    async 'expired token'() {
      const run = await start(job.spool, 'open', '10s');
      const p = await page();
      await listen(p, events(job.cutter, run));
      await waitFor(p, 'window.heard.some((e) => e.name === "up_to_date")');
      const status = () => p.evaluate(async (url) => (await fetch(url)).status, `${job.spool}/runs/${run.id}?token=${run.token}`);
      while ((await status()) !== 401) await p.waitForTimeout(100);
      equal(await p.evaluate('window.source.readyState'), 1, 'the state of the tail under way');
      await cut();
      await closed(p); // by the 401 that answers its return
    },

    async 'several runs on one connection'() {
      const runs = [await start(job.spool, 'openai'), await start(job.spool, 'anthropic')];
      const p = await page();
      await listen(p, `${job.cutter}/events?${runs.map((r) => `run=${r.id}&token=${r.token}`).join('&')}`,
        ['message_start', 'content_block_start', 'ping', 'content_block_delta', 'content_block_stop', 'message_delta', 'message_stop']);
      await some(p, 10);
      await cut();
      await closed(p);
      const all = await heard(p);
      const own = new Set(); // a cut within a page of one run repeats what came of it: ids tell
      const once = all.filter((e) => (provider([e]).length || e.name === 'completed') && !own.has(e.id) && own.add(e.id));
      whole(once.filter((e) => e.id.startsWith(runs[0].id)), runs[0], job.chat);
      whole(once.filter((e) => e.id.startsWith(runs[1].id)), runs[1], job.messages);
    },

    async 'foreign origin'() {
      const run = await start(job.spool, 'anthropic');
      const url = `${job.spool}/runs/${run.id}?token=${run.token}`;
      const read = (p) => p.evaluate(async (u) => {
        try {
          const answer = await fetch(u.replace('?', '/resume?'), { headers: { 'last-event-id': '0', 'x-buffer-heartbeat': 'off' } });
          return answer.headers.get('x-buffer-run-id');
        } catch (e) {
          return e.name;
        }
      }, url);
      const [ours, theirs] = [await page(job.home), await page(job.foreign)];
      equal([await read(ours), await read(theirs)], [run.id, 'TypeError'], 'what a page reads');
      await listen(theirs, events(job.spool, run));
      await closed(theirs);
      equal([await heard(theirs), await theirs.evaluate('window.opens')], [[], 0], 'what a foreign page hears');
    },
  };
};
