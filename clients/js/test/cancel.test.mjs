import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as later } from 'node:timers/promises';
import test from 'node:test';
import { durableFetch } from '@spool-dev/client';
import { ask, cut, json, lost, open, problem, runId, scripted, whole } from './server.mjs';

const toRun = { cancel: 'run' };
const cancelled = `/runs/${runId}/cancel`;

// until waits for the request with that URL.
async function until(server, url) {
  while (!server.asked.some((request) => request.url === url)) await later(2);
}

test('an abort is no cut, and is passed on to the run', async (t) => {
  const server = await scripted(t, open('data: 1\n\n'), json({}));
  const stop = new AbortController();
  const response = await ask(durableFetch(toRun), server.url, { signal: stop.signal });
  const reader = response.body.getReader();
  await reader.read();
  const next = reader.read();
  stop.abort(new Error('enough'));
  await assert.rejects(next, { message: 'enough' });
  await until(server, cancelled);
  assert.equal(server.asked.length, 2);
  assert.equal(server.asked[1].headers.authorization, 'Bearer k');
});

test('an abort between two reads is told to the next', async (t) => {
  const server = await scripted(t, open('data: 1\n\n'), json({}));
  const stop = new AbortController();
  const reader = (await ask(durableFetch(toRun), server.url, { signal: stop.signal })).body.getReader();
  await reader.read();
  stop.abort();
  await assert.rejects(reader.read(), { name: 'AbortError' });
  await until(server, cancelled);
});

test('so is a reader that leaves', async (t) => {
  const server = await scripted(t, open('data: 1\n\n'), json({}));
  const response = await ask(durableFetch(toRun), server.url);
  for await (const _ of response.body) break;
  await until(server, cancelled);
});

test('by default the reader alone leaves', async (t) => {
  const leave = [
    async (response) => { for await (const _ of response.body) break; },
    async (response, stop) => { await response.body.getReader().read(); stop.abort(); },
  ];
  for (const how of leave) {
    let closed;
    const server = await scripted(t, (request, response) => { closed = once(response, 'close'); open('data: 1\n\n')(request, response); });
    const stop = new AbortController();
    await how(await ask(durableFetch(), server.url, { signal: stop.signal }), stop);
    await closed;
    assert.equal(server.asked.length, 1);
  }
});

test('an abort during the pauses between tries ends them', async (t) => {
  const stop = new AbortController();
  const server = await scripted(t, cut('a'), (request) => { lost(request); stop.abort(); }, json({}));
  const response = await ask(durableFetch({ retry: { base: 60_000 } }), server.url, { signal: stop.signal });
  const text = response.text();
  setTimeout(() => stop.abort(), 30);
  await assert.rejects(text, { name: 'AbortError' });
});

test('a reader that leaves during a repair ends it', async (t) => {
  let closed;
  const hangs = (request, response) => { closed = once(response, 'close'); };
  const server = await scripted(t, cut('a'), hangs);
  const reader = (await ask(durableFetch({ retry: { base: 1 } }), server.url)).body.getReader();
  await reader.read();
  reader.read().catch(() => {});
  while (!closed) await later(2);
  await reader.cancel();
  await closed;
  assert.equal(server.asked.length, 2);
});

test('an abort before the answer passes on', async (t) => {
  const stop = new AbortController();
  const server = await scripted(t, () => stop.abort(), whole('', {}), json({}));
  await assert.rejects(ask(durableFetch(toRun), server.url, { signal: stop.signal }), { name: 'AbortError' });
  await until(server, cancelled);
  assert.equal(server.asked[1].url, '/resume?from=tail&follow=0');
  assert.equal(server.asked[1].headers['idempotency-key'], server.asked[0].headers['idempotency-key']);
});

test('one that was aborted before is never sent', async (t) => {
  const server = await scripted(t, problem(500, 'storage'));
  await assert.rejects(ask(durableFetch(toRun), server.url, { signal: AbortSignal.abort() }), { name: 'AbortError' });
  assert.equal(server.asked.length, 0);
});

test('nothing is cancelled after the end', async (t) => {
  const server = await scripted(t, whole('data: 1\n\n'));
  const stop = new AbortController();
  await (await ask(durableFetch(toRun), server.url, { signal: stop.signal })).text();
  stop.abort();
  await later(20);
  assert.equal(server.asked.length, 1);
});
