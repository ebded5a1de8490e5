// @microsoft/fetch-event-source, which reads with fetch, and leaves while its page is hidden.
import { equal, start, waitFor } from './driver.mjs';

// read reads a run to its end; what it sees is in window.seen. Whoever comes back after the end is told 204.
function read(page, url) {
  return page.evaluate(async (url) => {
    const { fetchEventSource } = await import('/library.js');
    const seen = window.seen = { ids: [], statuses: [], names: [], over: '' };
    fetchEventSource(url, {
      async onopen({ status }) {
        seen.statuses.push(status);
        if (status !== 200) throw Object.assign(new Error(`status ${status}`), { last: true });
      },
      onmessage({ id, event }) {
        if (event === '' || event === 'completed') seen.ids.push(id);
        seen.names.push(event);
      },
      onclose() { throw new Error('closed'); }, // so it comes back
      onerror(error) {
        if (error.last) throw error;
      },
    }).catch((error) => { seen.over = error.message; });
  }, url);
}

export const fetchCases = ({ job, open }) => ({
  async 'fetch-event-source: network drop'() {
    const run = await start(job.spool, 'openai');
    const page = await open(job.home);
    await read(page, `${job.cutter}/runs/${run.id}/events?token=${run.token}`);
    await waitFor(page, 'window.seen.ids.length >= 3');
    await fetch(job.cut, { method: 'POST' });
    await waitFor(page, 'window.seen.statuses.length >= 2');
    await fetch(job.cut, { method: 'POST' });
    await waitFor(page, 'window.seen.over');
    const { ids, statuses, over } = await page.evaluate('window.seen');
    equal(ids, Array.from({ length: job.chat + 1 }, (_, i) => `${run.id}:${i}`), 'ids');
    equal([statuses.length >= 3, statuses.filter((s) => s !== 200), over], [true, [204], 'status 204'], 'answers');
  },
});
