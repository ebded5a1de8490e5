import assert from 'node:assert/strict';
import test from 'node:test';
import { createDurableTransport, followRun } from '@spool-dev/client';
import { jsonEvents } from '../src/sse.js';
import { cut, json, lost, open, problem, runId, scripted, until, whole } from './server.mjs';

const part = (value) => `data: ${JSON.stringify(value)}\n\n`;
const parts = ['a', 'ä', '漢'].map((delta) => ({ type: 'text-delta', id: '1', delta }));
const text = `${parts.map(part).join('')}data: [DONE]\n\n`;
const options = { chatId: 'c', messages: [{ id: 'm' }], trigger: 'submit-message' };

async function all(stream) {
  const seen = [];
  for await (const each of stream) seen.push(each);
  return seen;
}

test('a message is sent through the buffer, and its answer survives cuts', async (t) => {
  const bytes = Buffer.from(text);
  const server = await scripted(t, cut(bytes.subarray(0, 60)), whole(bytes.subarray(60)));
  const store = new Map();
  const transport = createDurableTransport({ api: `${server.url}/app/chat`, store, headers: { 'x-a': '1' }, body: () => ({ model: 'm' }), retry: { base: 1 } });
  assert.deepEqual(await all(await transport.sendMessages(options)), parts);
  const [{ body, headers }] = server.asked;
  assert.deepEqual(JSON.parse(body), { model: 'm', id: 'c', messages: [{ id: 'm' }], trigger: 'submit-message' });
  assert.equal(headers['x-a'], '1');
  assert.equal(JSON.parse(store.get('spool:chat:c')).run, runId);

  const again = await scripted(t, whole(text));
  await all(await createDurableTransport({ api: `${again.url}/app/chat`, store }).sendMessages(options));
  assert.notEqual(again.asked[0].headers['idempotency-key'], headers['idempotency-key']); // a message is never a repeat
});

test('what is sent can be prepared', async (t) => {
  const server = await scripted(t, whole(text));
  const transport = createDurableTransport({
    api: `${server.url}/app/chat`, store: new Map(),
    prepareSendMessagesRequest: ({ id, messages }) => ({ body: { id, last: messages.at(-1) }, headers: { 'x-b': '2' } }),
  });
  await all(await transport.sendMessages(options));
  assert.deepEqual(JSON.parse(server.asked[0].body), { id: 'c', last: { id: 'm' } });
  assert.equal(server.asked[0].headers['x-b'], '2');
});

test('a refusal is an error with its text', async (t) => {
  const server = await scripted(t, (_, response) => response.writeHead(401).end('log in first'));
  const transport = createDurableTransport({ api: `${server.url}/app/chat`, store: new Map() });
  await assert.rejects(transport.sendMessages(options), { message: 'log in first' });
});

test('a page that was reloaded gets the whole of a live answer', async (t) => {
  const store = new Map();
  const dead = await scripted(t, open(part(parts[0])));
  const stream = await createDurableTransport({ api: `${dead.url}/app/chat`, store, retry: { tries: 1 } }).sendMessages(options);
  await stream.getReader().read();

  const server = await scripted(t, lost, cut(text.slice(0, 20)), whole(text.slice(20)));
  const transport = createDurableTransport({ api: `${server.url}/app/chat`, store, retry: { base: 1 } });
  assert.equal(transport.resumeStreamIsReplay, true);
  assert.deepEqual(await all(await transport.reconnectToStream({ chatId: 'c' })), parts);
  assert.deepEqual(server.asked.map(({ url }) => url), [
    `/runs/${runId}/stream?resume=1`, `/runs/${runId}/stream?resume=1`, `/runs/${runId}/resume?from_byte=20`,
  ]);
});

test('one that was reloaded before the answer began finds it by its key', async (t) => {
  const store = new Map([['spool:chat:c', JSON.stringify({ key: 'k' })]]);
  const server = await scripted(t, whole(''), whole(text));
  const transport = createDurableTransport({ api: `${server.url}/app/chat`, store });
  assert.deepEqual(await all(await transport.reconnectToStream({ chatId: 'c' })), parts);
  assert.equal(server.asked[0].headers['idempotency-key'], 'k');
});

test('where nothing is live there is nothing to reconnect to', async (t) => {
  const store = new Map([['spool:chat:c', JSON.stringify({ key: 'k', run: runId })]]);
  for (const step of [(_, response) => response.writeHead(204).end(), problem(404, 'not_found'), problem(410, 'released')]) {
    const server = await scripted(t, step);
    const transport = createDurableTransport({ api: `${server.url}/app/chat`, store });
    assert.equal(await transport.reconnectToStream({ chatId: 'c' }), null);
    assert.equal(await transport.reconnectToStream({ chatId: 'another' }), null);
    assert.equal(server.asked.length, 1);
  }
});

test('stop cancels the run', async (t) => {
  const server = await scripted(t, open(part(parts[0])), json({}));
  const stop = new AbortController();
  const transport = createDurableTransport({ api: `${server.url}/app/chat`, store: new Map() });
  const reader = (await transport.sendMessages({ ...options, abortSignal: stop.signal })).getReader();
  await reader.read();
  stop.abort();
  await assert.rejects(reader.read(), { name: 'AbortError' });
  await until(() => server.asked.length >= 2);
  assert.equal(server.asked[1].url, `/runs/${runId}/cancel`);
});

test('events are read however they are cut', async () => {
  const bytes = new TextEncoder().encode(': hb\r\n\r\ndata: {"a":\r\ndata:"ä"}\r\n\r\nevent: x\ndata: 2\n\ndata: [DONE]\n\ndata: 3');
  for (let width = 1; width < 12; width++) {
    const pieces = new ReadableStream({
      start(controller) {
        for (let i = 0; i < bytes.length; i += width) controller.enqueue(bytes.subarray(i, i + width));
        controller.close();
      },
    });
    assert.deepEqual(await all(pieces.pipeThrough(jsonEvents())), [{ a: 'ä' }, 2, 3], `width ${width}`);
  }
});

// Source is an EventSource without a network: the test speaks for the server.
class Source extends EventTarget {
  readyState = 1;
  constructor(url) { super(); Object.assign(this, { url }); Source.last = this; }
  close() { this.readyState = 2; }
  say(type, init) { this.dispatchEvent(Object.assign(new Event(type), init)); }
}

test('a page follows a run to its end', () => {
  const seen = [];
  const end = [];
  followRun('/events', { EventSource: Source, types: ['message', 'error'], onData: (data, at) => seen.push([data, at]), onEnd: (how) => end.push(how) });
  const source = Source.last;
  source.say('message', { data: '1', lastEventId: `${runId}:0` });
  source.say('error', {}); // a cut: EventSource reconnects by itself
  source.say('error', { data: '{"type":"overloaded"}', lastEventId: `${runId}:1` });
  source.say('interrupted', { data: '{"reason":"stalled"}', lastEventId: `${runId}:2` });
  assert.deepEqual(seen, [['1', { type: 'message', position: 0 }], ['{"type":"overloaded"}', { type: 'error', position: 1 }]]);
  assert.deepEqual(end, [{ state: 'interrupted', reason: 'stalled', position: 2 }]);
  assert.equal(source.readyState, 2);
});

test('a page that comes too late is told', () => {
  const end = [];
  const stop = followRun('/events', { EventSource: Source, onData() {}, onEnd: (how) => end.push(how) });
  Source.last.close();
  Source.last.say('error', {});
  assert.deepEqual(end, [{ state: 'gone' }]);
  stop();
});
