// What networks, stores and callers do that nobody asked them to.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import test from 'node:test';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { createDurableTransport, durableFetch, followRun } from '@spool-dev/client';
import { ask, cut, json, lost, open, problem, runId, scripted, until, whole } from './server.mjs';

const quick = { base: 1, cap: 2, tries: 4 };
const paths = ({ asked }) => asked.map(({ method, url }) => `${method} ${url}`);
const post = 'POST /openai/v1/chat/completions';
const find = 'GET /resume?from=0';
const stop = `POST /runs/${runId}/cancel`;

// away refuses a call as a buffer that restarts, or what lies before it, does: without a run.
const away = (status, headers = {}) => (_, response) => response.writeHead(status, headers).end('{"error":{}}');

test('a call that a buffer turns away waits, and is looked for before it is sent again', async (t) => {
  const unknown = problem(404, 'not_found');
  const server = await scripted(t, away(503, { 'retry-after': '0' }), unknown, away(502), lost, whole('data: 1\n\n'));
  const response = await ask(durableFetch({ retry: quick }), server.url);
  assert.equal(await response.text(), 'data: 1\n\n');
  assert.deepEqual(paths(server), [post, find, post, find, find]); // the last one had arrived
  assert.equal(new Set(server.asked.map(({ headers }) => headers['idempotency-key'])).size, 1);
});

for (const [name, steps, calls] of [
  ['turned away for too long', [away(429), problem(404, 'not_found'), away(429), problem(404, 'not_found'), away(429), problem(404, 'not_found'), away(429)], 4],
  ['asked for too long a wait', [away(429, { 'retry-after': '86400' })], 1],
  ['refused by the provider', [away(429, { 'x-buffer-run-id': runId })], 1],
]) {
  test(`a call that is ${name} ends in the refusal`, async (t) => {
    const server = await scripted(t, ...steps);
    const response = await ask(durableFetch({ retry: quick }), server.url, { signal: AbortSignal.timeout(10_000) });
    assert.deepEqual([response.status, await response.text()], [429, '{"error":{}}']);
    assert.equal(paths(server).filter((path) => path === post).length, calls);
  });
}

test('a lost call is found where its answer was to begin', async (t) => {
  const server = await scripted(t, lost, whole('data: 5\n\n', { 'x-buffer-from': '5' }));
  const headers = { 'x-buffer-from': '5', authorization: 'Bearer k' };
  assert.equal(await (await ask(durableFetch({ retry: quick }), server.url, { headers })).text(), 'data: 5\n\n');
  assert.equal(server.asked[1].url, '/resume?from=5');
});

test('what a proxy packs is repaired, what the provider packed is not', async (t) => {
  const text = 'data: 1\n\n'.repeat(4);
  const packed = gzipSync(text.slice(0, 18), { finishFlush: constants.Z_SYNC_FLUSH }); // and no end
  const gzip = await scripted(t, cut(packed, { 'content-encoding': 'gzip' }), (request, response) => {
    const at = Number(new URL(request.url, 'http://x').searchParams.get('from_byte'));
    whole(text.slice(at))(request, response);
  });
  const response = await ask(durableFetch({ retry: quick }), gzip.url);
  assert.equal(await response.text(), text);
  assert.equal(response.headers.get('content-encoding'), null);

  const stored = brotliCompressSync(text);
  const br = await scripted(t, cut(stored.subarray(0, stored.length - 3), { 'content-encoding': 'br' }), whole(stored));
  await assert.rejects(async () => (await ask(durableFetch({ retry: quick }), br.url)).text());
  assert.equal(br.asked.length, 1);
});

test('an abort while the state is written is an abort', async (t) => {
  const server = await scripted(t, open('data: 1\n\n'), json({}));
  const abort = new AbortController();
  let writes = 0;
  const store = { get() {}, async set() { if (++writes === 2) abort.abort(new Error('enough')); } };
  const response = await ask(durableFetch({ store, id: 'a', cancel: 'run', retry: quick }), server.url, { signal: abort.signal });
  await assert.rejects(response.text(), { message: 'enough' });
  await until(() => server.asked.length >= 2);
  assert.deepEqual(paths(server), [post, stop]);
});

test('nothing is left on a signal that outlives its calls', async (t) => {
  const { signal } = new AbortController();
  for (const steps of [
    [whole('data: 1\n\n')],
    [cut('data: 1'), whole('\n\n')],
    [away(400)],
    [(_, response) => response.writeHead(204).end()],
    [lost, whole('{}', { 'x-buffer-status': 'failed' }), json({ status: 400 })],
    [lost, problem(401, 'unauthorized')],
  ]) {
    const server = await scripted(t, ...steps);
    await ask(durableFetch({ retry: quick }), server.url, { signal }).then((response) => response.text(), () => {});
    await until(() => !getEventListeners(signal, 'abort').some((listener) => listener.name === 'abort'));
  }
});

test('a fetch that throws breaks nobody who has left', async (t) => {
  const server = await scripted(t, open('data: 1\n\n'));
  const fetch = (...args) => {
    if (args[1].method === 'POST' && String(args[0]).endsWith('/cancel')) throw new Error('no more');
    return globalThis.fetch(...args);
  };
  const abort = new AbortController();
  const reader = (await ask(durableFetch({ fetch, cancel: 'run' }), server.url, { signal: abort.signal })).body.getReader();
  await reader.read();
  abort.abort();
  await assert.rejects(reader.read(), { name: 'AbortError' });
});

test('what a Request was made with lasts for its repairs', async (t) => {
  const server = await scripted(t, cut('a'), whole('b'));
  const asked = [];
  const fetch = (target, init) => { asked.push(init.credentials); return globalThis.fetch(target, init); };
  const request = new Request(`${server.url}/openai/v1/chat/completions`, { method: 'POST', body: '{}', credentials: 'include' });
  Object.defineProperty(request, 'body', { value: undefined }); // some browsers do not have it
  const response = await durableFetch({ fetch, retry: quick })(request, null);
  assert.equal(await response.text(), 'ab');
  assert.deepEqual(asked, ['include', 'include']);
  assert.equal(server.asked[0].body, '{}');
});

test('an endless patience is no haste', async (t) => {
  const server = await scripted(t, (_, response) => setTimeout(() => whole('a')(_, response), 30));
  for (const idle of [Infinity, 2 ** 40, 0]) {
    assert.equal(await (await ask(durableFetch({ idle }), server.url)).text(), 'a');
  }
  assert.equal(server.asked.length, 3);
});

test('a write that fails at once is not the last', async (t) => {
  const server = await scripted(t, (request, response) => {
    open('data: 1\n\n')(request, response);
    setTimeout(() => response.end('data: 2\n\n'), 20);
  });
  const written = [];
  const store = { get() {}, set(_, value) { written.push(value); if (written.length === 3) throw new Error('full'); } };
  await (await ask(durableFetch({ store, id: 'a' }), server.url)).text();
  assert.equal(JSON.parse(written.at(-1)).position, 2);
});

test('a store that fails once the call is made breaks no answer', async (t) => {
  const server = await scripted(t, whole('data: 1\n\n'));
  let writes = 0;
  const store = { get() {}, set() { if (++writes > 1) throw new Error('full'); } };
  assert.equal(await (await ask(durableFetch({ store, id: 'a' }), server.url)).text(), 'data: 1\n\n');
});

test('a store may parse what it keeps, and have items of any name', async (t) => {
  const server = await scripted(t, whole('data: 2\n\n'));
  const kept = { key: 'k', run: runId, position: 1, bytes: 9 };
  const store = { getItem: () => kept, setItem() {}, get: 'an item of localStorage' };
  assert.equal(await (await ask(durableFetch({ store, key: 'k', resume: 'rest' }), server.url)).text(), 'data: 2\n\n');
  assert.equal(server.asked[0].url, `/runs/${runId}/resume?from_byte=9`);
});

test('options that cannot be are named', () => {
  assert.throws(() => durableFetch({ id: 'a', store: { get() {} } }), { name: 'TypeError', message: /a store needs get and set/ });
  assert.throws(() => durableFetch({ idle: '1s' }), { name: 'TypeError', message: /idle/ });
});

test('a transport can be made where there is no page', () => {
  createDurableTransport({ api: '/app/api/chat' });
});

test('a caller without a right does not wait to reconnect', async (t) => {
  const store = new Map([['spool:chat:c', JSON.stringify({ key: 'k', run: runId })]]);
  const server = await scripted(t, problem(401, 'unauthorized'));
  const transport = createDurableTransport({ api: `${server.url}/app/chat`, store });
  await assert.rejects(transport.reconnectToStream({ chatId: 'c' }), { name: 'DurableError', reason: 'unauthorized' });
  assert.equal(server.asked.length, 1);
});

test('a page keeps nothing of the runs that it has stopped to follow', (t) => {
  const kept = new Set();
  const { addEventListener, removeEventListener } = globalThis; // Node has none
  t.after(() => Object.assign(globalThis, { addEventListener, removeEventListener }));
  globalThis.addEventListener = (_, listener) => kept.add(listener);
  globalThis.removeEventListener = (_, listener) => kept.delete(listener);
  class Source extends EventTarget { close() {} }
  followRun('/events', { EventSource: Source, onData() {} })();
  assert.equal(kept.size, 0);
});
