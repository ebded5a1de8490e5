// Our client in real pages, its files loaded as they are. The job is JSON on stdin (client_test.go says what
// its fields mean); each case is a line on stdout, with what was wrong.
import fs from 'node:fs';
import { equal, launch, report, start, waitFor } from './driver.mjs';

const job = JSON.parse(fs.readFileSync(0, 'utf8'));
const browser = await launch(job.spool);
const cut = () => fetch(job.cut, { method: 'POST' });

async function page() {
  const p = await browser.context.newPage();
  const broken = [];
  p.on('pageerror', (error) => broken.push(String(error))); // unhandled rejections too
  await p.goto(job.home);
  return Object.assign(p, { broken });
}

// ask makes a page stream an answer with a durableFetch. What it reads is in window.text, how it ended in
// window.end.
const ask = (p, provider, options = {}) => p.evaluate(async ({ base, provider, options }) => {
  const { durableFetch } = await import('/src/index.js');
  window.text = '';
  window.stop = new AbortController();
  const fetch = durableFetch({ baseUrl: base, store: localStorage, retry: { base: 20 }, ...options });
  const response = await fetch(`${base}/${provider}/v1/chat/completions`, {
    method: 'POST', body: '{"model":"m","stream":true}', signal: window.stop.signal,
    headers: { authorization: 'Bearer k', 'content-type': 'application/json' },
  });
  window.run = response.headers.get('x-buffer-run-id');
  (async () => {
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) window.text += piece;
  })().then(() => { window.end = 'whole'; }, (error) => { window.end = error.name; });
}, { base: job.cutter, provider, options });

const ended = (p) => waitFor(p, 'window.end');
const read = (p, n) => waitFor(p, `window.text.split('\\n\\n').length > ${n}`);
const about = async (run) => (await fetch(`${job.spool}/runs/${run}`, { headers: { authorization: 'Bearer k' } })).json();

const cases = {
  async 'durableFetch reads through cuts'() {
    const p = await page();
    await ask(p, 'openai', { id: 'cut' });
    for (const n of [3, 12]) {
      await read(p, n);
      await cut();
    }
    await ended(p);
    equal(await p.evaluate('[window.end, window.text]'), ['whole', job.text], 'what was read');
    equal(p.broken, [], 'faults of the page');
  },

  async 'a page that is reloaded has the same answer'() {
    for (const resume of ['whole', 'rest']) {
      const p = await page();
      await ask(p, 'openai', { id: resume });
      await read(p, 5);
      const first = await p.evaluate((id) => [window.run, JSON.parse(localStorage.getItem(`spool:${id}`))], resume);
      await p.reload();
      await ask(p, 'openai', { id: resume, resume });
      await ended(p);
      const [run, text] = await p.evaluate('[window.run, window.text]');
      equal(run, first[0], 'the run');
      if (resume === 'whole') equal(text, job.text, 'the answer');
      else if (!text || text === job.text || !job.text.endsWith(text) || text.length > job.text.length - first[1].bytes) throw new Error(`the rest is ${text}`);
    }
  },

  async 'an abort is passed on'() {
    const p = await page();
    await ask(p, 'open', { id: 'stop', cancel: 'run' });
    await read(p, 1);
    await p.evaluate('window.stop.abort()');
    await ended(p);
    equal(await p.evaluate('window.end'), 'AbortError', 'the end');
    const run = await p.evaluate('window.run');
    while ((await about(run)).state === 'streaming') await p.waitForTimeout(20);
    equal((await about(run)).state, 'cancelled', 'the run');
    equal(p.broken, [], 'faults of the page');
  },

  async 'followRun reads through a cut'() {
    const run = await start(job.spool, 'openai');
    const p = await page();
    await p.evaluate(async (url) => {
      const { followRun } = await import('/src/index.js');
      window.heard = [];
      followRun(url, { onData: (data, { position }) => window.heard.push([position, data]), onEnd: ({ state }) => { window.end = state; } });
    }, `${job.cutter}/runs/${run.id}/events?token=${run.token}`);
    for (const n of [3, 12]) {
      await waitFor(p, `window.heard.length > ${n}`);
      await cut();
    }
    await ended(p);
    const want = job.text.split('\n\n').filter(Boolean).map((event, i) => [i, event.slice('data: '.length)]);
    equal(await p.evaluate('[window.end, window.heard]'), ['completed', want], 'what was heard');
  },

  async 'the example that follows a run works as it is'() {
    const run = await start(job.spool, 'openai');
    const p = await browser.context.newPage();
    await p.goto(`${job.home}/examples/follow.html#${run.id}:${run.token}`);
    await waitFor(p, 'document.getElementById("answer").textContent.endsWith("(completed)")');
    equal((await p.evaluate('document.getElementById("answer").textContent')).match(/word/g).length, job.words, 'words');
  },
};

await report(cases, browser);
