// The browser, and what every case does with it.
import { chromium } from 'playwright-core';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const flags = [
  '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--ignore-certificate-errors',
];

// launch starts Chromium. Its pages find a Spool where examples expect it.
export async function launch(spool) {
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'spool-browser-'));
  const args = [...flags, `--host-resolver-rules=MAP 127.0.0.1:8787 ${new URL(spool).host}`];
  const context = await chromium.launchPersistentContext(profile, { executablePath: '/usr/bin/chromium', headless: true, args });
  return { context, close: async () => { await context.close(); fs.rmSync(profile, { recursive: true, force: true }); } };
}

// report runs the cases with a part in their names, each in pages of its own. Each is a line on stdout, with
// what was wrong.
export async function report(cases, { context, close }) {
  const [part = ''] = process.argv.slice(2);
  for (const [name, run] of Object.entries(cases).filter(([name]) => name.includes(part))) {
    let error = '';
    try {
      await run();
    } catch (e) {
      error = String(e.stack ?? e);
    }
    console.log(JSON.stringify({ name, error }));
    for (const p of context.pages()) await p.close();
  }
  await close();
}

// start makes a run and returns its id and a token for pages. The caller leaves at once.
export async function start(base, provider, ttl = '10m') {
  const path = provider === 'anthropic' ? '/v1/messages' : '/v1/chat/completions';
  const leave = new AbortController();
  const answer = await fetch(`${base}/${provider}${path}`, {
    method: 'POST', signal: leave.signal, body: '{"model":"m","stream":true}',
    headers: { authorization: 'Bearer k', 'content-type': 'application/json', 'x-buffer-mint-token': ttl },
  });
  const run = { id: answer.headers.get('x-buffer-run-id'), token: answer.headers.get('x-buffer-token') };
  leave.abort();
  if (!run.token) throw new Error(`no token: ${answer.status}`);
  return run;
}

// listen opens an EventSource in a page. What it hears is in window.heard, one object an event.
export function listen(page, url, names = []) {
  return page.evaluate(({ url, names }) => {
    const source = new EventSource(url);
    window.source = source;
    window.heard = [];
    window.opens = 0;
    source.onopen = () => { window.opens++; };
    const all = ['message', 'phase', 'up_to_date', 'heartbeat', 'positions', 'binary', 'completed', 'interrupted', 'failed', 'cancelled', ...names];
    for (const name of all) {
      source.addEventListener(name, (e) => {
        window.heard.push({ name, data: e.data, id: e.lastEventId });
        if (name !== 'positions' && name !== 'up_to_date') sessionStorage.setItem('last', e.lastEventId);
      });
    }
  }, { url, names });
}

// waitFor waits until an expression of the page is true.
export const waitFor = (page, expression) => page.waitForFunction(expression, null, { timeout: 60_000 });
export const closed = (page) => waitFor(page, 'window.source.readyState === 2');
export const heard = (page) => page.evaluate('window.heard');

// says waits until a page shows a text. tale is what the desk's providers answer, whatever they are asked.
export const says = (page, text) => waitFor(page, `document.body.innerText.includes(${JSON.stringify(text)})`);
export const tale = 'Once upon a time there was a page.';

// provider are the events of the run itself: those with an id of their own, less its end.
export const provider = (events, ends = ['completed']) => events.filter((e) => !['phase', 'up_to_date', 'heartbeat', 'positions', ...ends].includes(e.name));

export function equal(got, want, what) {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)];
  if (g !== w) throw new Error(`${what}: got ${g}, want ${w}`);
}

// whole checks that a run was heard from its first event to its end, each once and in order.
export function whole(events, run, head) {
  const ids = Array.from({ length: head }, (_, i) => `${run.id}:${i}`);
  equal(provider(events).map((e) => e.id), ids, 'ids');
  equal(events.filter((e) => e.name === 'completed').map((e) => e.id), [`${run.id}:${head}`], 'ends');
}
