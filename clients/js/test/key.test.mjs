import assert from 'node:assert/strict';
import test from 'node:test';
import { durableFetch } from '@spool-dev/client';
import { ask, runId, scripted, whole } from './server.mjs';

// keysOf makes calls that get these statuses of a run, and returns the key of each. A call is what its
// headers say, and perhaps another body.
async function keysOf(t, options, calls) {
  const server = await scripted(t, ...calls.map(({ status = 200, answer = {} }) => (_, response) => response.writeHead(status, { 'x-buffer-run-id': runId, ...answer }).end()));
  const fetch = durableFetch(options);
  for (const { headers = {}, body = '{}' } of calls) {
    await (await ask(fetch, server.url, { headers, body })).text();
  }
  return server.asked.map(({ headers }) => headers['idempotency-key']);
}

const retry = (n) => ({ 'x-stainless-retry-count': String(n) });

test('each call has its own key', async (t) => {
  const keys = await keysOf(t, {}, [{}, {}, { body: '{"b":1}' }]);
  assert.equal(new Set(keys).size, 3);
});

test("the caller's header outranks the option, which outranks the rest", async (t) => {
  assert.deepEqual(await keysOf(t, { key: 'option', id: 'id' }, [{ headers: { 'Idempotency-Key': 'header' } }, {}]), ['header', 'option']);
  const byBody = ({ body, url, headers }) => `${url.pathname}|${headers.get('x-a')}|${body.length}`;
  assert.deepEqual(await keysOf(t, { key: byBody }, [{ headers: { 'x-a': '1' }, body: '{"b":1}' }]), ['/openai/v1/chat/completions|1|7']);
});

test('an id gives the same call the same key, and another call another', async (t) => {
  const [a, b, c] = await keysOf(t, { id: 'turn-1' }, [{}, {}, { body: '{"b":1}' }]);
  assert.equal(a, b);
  assert.notEqual(a, c);
  const [again] = await keysOf(t, { id: 'turn-1' }, [{}]);
  assert.equal(again, a);
  const [other, strange] = [await keysOf(t, { id: 'turn-2' }, [{}]), await keysOf(t, { id: 'ä '.repeat(200) }, [{}])].flat();
  assert.notEqual(other, a);
  assert.match(strange, /^[\x21-\x7e]{1,255}$/);
  const [long] = await keysOf(t, { id: `b${'ä '.repeat(200)}` }, [{}]);
  assert.notEqual(long, strange); // though they end alike
});

test("a retry of an SDK's has the key of its call", async (t) => {
  const [a, b, c, d] = await keysOf(t, {}, [{ headers: retry(0), status: 429 }, { headers: retry(1), status: 503 }, { headers: retry(2) }, { headers: retry(0) }]);
  assert.equal(a, b);
  assert.equal(b, c);
  assert.notEqual(c, d);
});

test('two lost calls are claimed once each', async (t) => {
  const [a, b, c, d, e] = await keysOf(t, { }, [
    { headers: retry(0), status: 500, body: '{"b":1}' }, { headers: retry(0), status: 500 },
    { headers: retry(1) }, { headers: retry(1), body: '{"b":1}' }, { headers: retry(1) },
  ]);
  assert.equal(c, b);
  assert.equal(d, a);
  assert.equal(new Set([a, b, e]).size, 3);
});

test('without a count the same body soon after a loss is a retry', async (t) => {
  const replayed = { 'idempotent-replayed': 'true' };
  const [a, b, c, d, e] = await keysOf(t, {}, [{ status: 503 }, { status: 503, answer: replayed }, {}, { status: 400 }, {}]);
  assert.equal(a, b);
  assert.equal(new Set([b, c, d, e]).size, 4); // a refusal that is replayed, or final, is no reason to come again
});

test('a call that the SDK has timed out keeps its key for the retry alone', async (t) => {
  const stop = new AbortController();
  const server = await scripted(t, () => stop.abort(), whole(''), whole(''));
  const fetch = durableFetch();
  await assert.rejects(ask(fetch, server.url, { headers: retry(0), signal: stop.signal }));
  await ask(fetch, server.url, { headers: retry(0) });
  await ask(fetch, server.url, { headers: retry(1) });
  const [timedOut, fresh, again] = server.asked.map(({ headers }) => headers['idempotency-key']);
  assert.equal(again, timedOut);
  assert.notEqual(fresh, timedOut);
});
