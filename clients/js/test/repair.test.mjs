import assert from 'node:assert/strict';
import test from 'node:test';
import { durableFetch, DurableError } from '@spool-dev/client';
import { ask, cut, json, lost, open, problem, runId, scripted, whole } from './server.mjs';

const quick = { base: 1, cap: 2, tries: 4 };
const paths = ({ asked }) => asked.map(({ method, url }) => `${method} ${url}`);
const post = 'POST /openai/v1/chat/completions';
const from = (byte) => `GET /runs/${runId}/resume?from_byte=${byte}`;

test('a cut is repaired from the byte after the last one', async (t) => {
  const server = await scripted(t, cut('data: 1\n\nda'), cut('ta: 2\n'), cut(''), whole('\ndata: 3\n\n'));
  const response = await ask(durableFetch({ baseUrl: server.url, retry: quick }), server.url);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('x-buffer-run-id'), runId);
  assert.equal(await response.text(), 'data: 1\n\ndata: 2\n\ndata: 3\n\n');
  assert.deepEqual(paths(server), [post, from(11), from(17), from(17)]);
});

test('a repair is asked for by the same caller and in no other words', async (t) => {
  const server = await scripted(t, cut('a'), whole('b'));
  const headers = { authorization: 'Bearer k', 'x-gateway': 'g', 'content-type': 'application/json', 'anthropic-version': '1', 'x-stainless-os': 'x', 'x-buffer-ttl': '1h', 'x-buffer-key': 'b' };
  await (await ask(durableFetch({ retry: quick }), server.url, { headers })).text();
  const [first, second] = server.asked;
  assert.equal(first.headers['x-buffer-heartbeat'], 'off');
  assert.equal(first.headers['x-buffer-ttl'], '1h');
  const { authorization, 'x-gateway': gateway, 'x-buffer-key': key } = second.headers;
  assert.deepEqual([authorization, gateway, key], ['Bearer k', 'g', 'b']);
  for (const name of ['anthropic-version', 'x-stainless-os', 'x-buffer-ttl', 'content-type', 'idempotency-key']) {
    assert.equal(second.headers[name], undefined, name);
  }
});

test("Gemini's key in the URL becomes a header", async (t) => {
  const server = await scripted(t, cut('a'), whole('b'));
  const fetch = durableFetch({ baseUrl: server.url, retry: quick });
  const response = await fetch(`${server.url}/gemini/v1beta/models/g:streamGenerateContent?alt=sse&key=secret`, { method: 'POST', body: '{}' });
  assert.equal(await response.text(), 'ab');
  assert.equal(server.asked[1].headers['x-goog-api-key'], 'secret');
  assert.equal(server.asked[1].url, `/runs/${runId}/resume?from_byte=1`);
});

test('only what is a call to the buffer is touched', async (t) => {
  const server = await scripted(t, (request, response) => response.end(request.headers['idempotency-key'] ?? 'untouched'));
  const fetch = durableFetch({ baseUrl: `${server.url}/spool/` });
  const touched = async (path, init) => (await (await fetch(server.url + path, init)).text()) !== 'untouched';
  const body = '{}';
  assert.equal(await touched('/spool/openai/v1/chat/completions', { method: 'POST', body }), true);
  assert.equal(await touched('/spool/openai/v1/models'), false);
  assert.equal(await touched('/spool/openai/v1/files', { method: 'POST', body }), false);
  assert.equal(await touched('/openai/v1/chat/completions', { method: 'POST', body }), false);
  assert.equal(await touched('/spooling/v1/chat/completions', { method: 'POST', body }), false);
});

test('any kind of body and of input can be sent', async (t) => {
  const server = await scripted(t, (_, response, body) => response.end(body));
  const fetch = durableFetch({ baseUrl: server.url });
  const url = `${server.url}/openai/v1/responses`;
  const bytes = new TextEncoder().encode('{"a":1}');
  for (const [name, input, init] of [
    ['string', url, { method: 'POST', body: '{"a":1}' }],
    ['bytes', new URL(url), { method: 'POST', body: bytes }],
    ['blob', url, { method: 'POST', body: new Blob([bytes], { type: 'application/json' }) }],
    ['stream', url, { method: 'POST', body: new Blob([bytes]).stream(), duplex: 'half' }],
    ['request', new Request(url, { method: 'POST', body: '{"a":1}' })],
    ['request and init', new Request(url, { method: 'POST', body: 'x' }), { body: '{"a":1}' }],
  ]) {
    assert.equal(await (await fetch(input, init)).text(), '{"a":1}', name);
  }
});

test('a call that never arrived is sent again with the same key', async (t) => {
  const server = await scripted(t, lost, problem(404, 'not_found'), whole('data: 1\n\n'));
  const response = await ask(durableFetch({ retry: quick }), server.url);
  assert.equal(await response.text(), 'data: 1\n\n');
  assert.deepEqual(paths(server), [post, 'GET /resume?from=0', post]);
  assert.equal(new Set(server.asked.map(({ headers }) => headers['idempotency-key'])).size, 1);
});

test('a call that did arrive is not', async (t) => {
  const server = await scripted(t, lost, (_, response) => response.writeHead(502).end('<html>'), (_, response) => response.writeHead(404).end('<html>'), cut('data: 1'), whole('\n\n'));
  const response = await ask(durableFetch({ retry: { ...quick, tries: 9 } }), server.url);
  assert.equal(await response.text(), 'data: 1\n\n');
  assert.deepEqual(paths(server), [post, ...Array(3).fill('GET /resume?from=0'), from(7)]);
});

test('a refusal that was lost is had again with its status', async (t) => {
  const server = await scripted(t, lost, whole('{"error":{}}', { 'x-buffer-status': 'failed', 'content-type': 'application/json' }), json({ status: 429 }));
  const response = await ask(durableFetch({ retry: quick }), server.url);
  assert.equal(response.status, 429);
  assert.equal(await response.text(), '{"error":{}}');
});

test('refusals pass as they are', async (t) => {
  const server = await scripted(t, (_, response) => response.writeHead(400, { 'x-buffer-run-id': runId }).end('no'));
  const response = await ask(durableFetch({ retry: quick }), server.url);
  assert.deepEqual([response.status, await response.text()], [400, 'no']);
  assert.equal(server.asked.length, 1);
});

const run = json({ state: 'interrupted', reason: 'stalled', head: 1, bytes: 9 });
const fails = async (response, want) => {
  const reader = response.body.getReader();
  let text = '';
  await assert.rejects(async () => {
    for (;;) {
      const { value } = await reader.read();
      text += new TextDecoder().decode(value);
    }
  }, (error) => {
    assert.ok(error instanceof DurableError, error);
    const { reason, runId: id, position, bytes } = error;
    assert.deepEqual({ reason, id, position, bytes }, { id: runId, position: 1, bytes: 9, ...want });
    return true;
  });
  return text;
};

test('a run that ended broken ends in its reason, after all that is stored', async (t) => {
  const ended = { 'x-buffer-status': 'interrupted', 'x-buffer-next': '1' };
  const server = await scripted(t, cut('data'), cut(': 1\n\n', ended), cut('', { ...ended, 'x-buffer-from': '1' }), run);
  const response = await ask(durableFetch({ retry: quick }), server.url);
  assert.equal(await fails(response, { reason: 'stalled' }), 'data: 1\n\n');
  assert.deepEqual(paths(server).slice(1), [from(4), from(9), `GET /runs/${runId}`]);
});

test("an error event of the buffer's is no part of the run", async (t) => {
  const server = await scripted(t, cut('data: 1\n\ndata: {"error":{}}\n\n'), problem(416, 'ahead'), run);
  const response = await ask(durableFetch({ retry: quick }), server.url);
  assert.equal(await fails(response, { reason: 'stalled' }), 'data: 1\n\ndata: {"error":{}}\n\n');
});

test('the body of a refusal never joins a stream', async (t) => {
  const server = await scripted(t, cut('data: 1\n\n'), whole('{"error":{}}', { 'x-buffer-status': 'failed' }), json({ reason: 'refused', head: 1, bytes: 12 }));
  await fails(await ask(durableFetch({ retry: quick }), server.url), { reason: 'refused' });
});

for (const [name, step, reason] of [
  ['what was released', problem(410, 'released'), 'released'],
  ['what is not known', problem(404, 'not_found'), 'not_found'],
  ['a caller without a right', problem(401, 'unauthorized'), 'unauthorized'],
  ['a server that answers no more', lost, 'unreachable'],
  ['a server that is overloaded', problem(503, 'draining'), 'unreachable'],
  ['an answer of another run', whole('x', { 'x-buffer-run-id': 'other' }), 'unreachable'],
  ['a wait that is too long', problem(429, 'busy', { 'retry-after': '86400' }), 'unreachable'],
  ['a wait until a day that is too far', problem(503, 'draining', { 'retry-after': 'Fri, 31 Dec 2399 23:59:59 GMT' }), 'unreachable'],
]) {
  test(`it gives up on ${name}`, async (t) => {
    const server = await scripted(t, cut('data: 1\n\n'), step);
    await fails(await ask(durableFetch({ retry: quick }), server.url), { reason });
  });
}

test('it gives up on a call that cannot be made, with its key', async (t) => {
  const server = await scripted(t, lost);
  await assert.rejects(ask(durableFetch({ key: 'mine', retry: quick }), server.url), { name: 'DurableError', reason: 'unreachable', runId: '', key: 'mine' });
  assert.deepEqual(paths(server).filter((path) => path === post), [post]);
});

test('a silent connection is as good as cut, and costs no try', async (t) => {
  const server = await scripted(t, open('a'), whole('b'));
  const response = await ask(durableFetch({ idle: 1000, retry: { ...quick, tries: 1 } }), server.url);
  assert.equal(await response.text(), 'ab');
});

test('an answer that was asked for from a position passes as it is', async (t) => {
  const server = await scripted(t, cut('data: 5\n\n', { 'x-buffer-from': '5' }));
  const response = await ask(durableFetch({ retry: quick }), server.url);
  await assert.rejects(response.text());
  assert.equal(server.asked.length, 1);
});
