import assert from 'node:assert/strict';
import test from 'node:test';
import { durableFetch } from '@spool-dev/client';
import { Marks } from '../src/marks.js';
import { ask, cut, open, problem, runId, scripted, until, whole } from './server.mjs';

// storage is what localStorage is to a page.
const storage = () => {
  const items = new Map();
  return { items, getItem: (name) => items.get(name) ?? null, setItem: (name, value) => { items.set(name, value); } };
};

// slow is a store over a network.
const slow = () => {
  const items = new Map();
  const later = (work) => new Promise((resolve) => { setImmediate(() => resolve(work())); });
  return { items, get: (name) => later(() => items.get(name)), set: (name, value) => later(() => { items.set(name, value); }) };
};

const map = () => { const items = new Map(); return Object.assign(items, { items }); };

// killed reads two events of an answer that then stands still, and returns its key when they are kept, as
// those of a process that is killed there.
async function killed(t, options) {
  const server = await scripted(t, open('data: 1\n\ndata: 2\n\nda'));
  const response = await ask(durableFetch({ ...options, retry: { tries: 1 } }), server.url);
  response.text().catch(() => {}); // the server ends first
  const name = `spool:${options.id ?? options.key}`;
  await until(() => JSON.parse(options.store.items.get(name)).position >= 2);
  return server.asked[0].headers['idempotency-key'];
}

for (const [name, make] of Object.entries({ map, storage, slow })) {
  test(`a killed agent goes on, its state in a ${name}`, async (t) => {
    const store = make();
    const key = await killed(t, { store, id: 'turn' });
    assert.deepEqual(JSON.parse(store.items.get('spool:turn')), { key, run: runId, position: 2, bytes: 18 });

    const rest = await scripted(t, whole('data: 3\n\n'));
    const response = await ask(durableFetch({ store, id: 'turn', resume: 'rest' }), rest.url);
    assert.equal(await response.text(), 'data: 3\n\n');
    assert.equal(rest.asked[0].url, `/runs/${runId}/resume?from_byte=18`);
    assert.deepEqual(JSON.parse(store.items.get('spool:turn')), { key, run: runId, position: 3, bytes: 27 });

    const all = await scripted(t, whole('data: 1\n\n'));
    await (await ask(durableFetch({ store, id: 'turn' }), all.url)).text();
    assert.equal(all.asked[0].method, 'POST');
    assert.equal(all.asked[0].headers['idempotency-key'], key);
  });
}

test('the rest of nothing, of another call or of a run that is gone is the call', async (t) => {
  const store = map();
  const options = { store, id: 'turn', resume: 'rest' };
  const fresh = await scripted(t, whole('data: 1\n\n'));
  await (await ask(durableFetch(options), fresh.url)).text();
  assert.equal(fresh.asked[0].method, 'POST');

  const other = await scripted(t, whole('data: 1\n\n'));
  await (await ask(durableFetch(options), other.url, { body: '{"other":1}' })).text();
  assert.equal(other.asked[0].method, 'POST');

  const gone = await scripted(t, problem(410, 'released'), whole('data: 1\n\n'));
  await (await ask(durableFetch(options), gone.url, { body: '{"other":1}' })).text();
  assert.deepEqual(gone.asked.map(({ method }) => method), ['GET', 'POST']);
});

test('the rest is repaired like any answer', async (t) => {
  const store = map();
  await killed(t, { store, key: 'k' });
  const server = await scripted(t, cut('data'), whole(': 3\n\n'));
  const response = await ask(durableFetch({ store, key: 'k', resume: 'rest', retry: { base: 1 } }), server.url);
  assert.equal(await response.text(), 'data: 3\n\n');
  assert.equal(server.asked[1].url, `/runs/${runId}/resume?from_byte=22`);
});

test('what the store holds may be anything', async (t) => {
  for (const text of ['', 'null', '{', '7', '{"key":7}', '{"key":"k","run":{},"bytes":-1}', undefined]) {
    const server = await scripted(t, whole('a'));
    const store = { get: () => text, set() {} };
    assert.equal(await (await ask(durableFetch({ store, key: 'k', resume: 'rest' }), server.url)).text(), 'a');
  }
});

test('a store that fails before the call keeps it from being made; later it costs nothing', async (t) => {
  const server = await scripted(t, whole('data: 1\n\n'));
  let writes = 0;
  const failsAfter = (n) => ({ get() {}, set() { if (++writes > n) throw new Error('full'); } });
  await assert.rejects(ask(durableFetch({ store: failsAfter(0), id: 'a' }), server.url), { message: 'full' });
  assert.equal(server.asked.length, 0);
  writes = 0;
  assert.equal(await (await ask(durableFetch({ store: failsAfter(2), id: 'a' }), server.url)).text(), 'data: 1\n\n');
  assert.equal(writes, 3);
});

test('options that cannot be are refused', () => {
  assert.throws(() => durableFetch({ store: new Map() }), TypeError);
  assert.throws(() => durableFetch({ resume: 'half' }), TypeError);
  assert.throws(() => durableFetch({ cancel: true }), TypeError);
});

for (const [type, text, sizes] of [
  ['text/event-stream', 'data: {"a":1}\n\ndata: [DONE]\n\n', [15, 14]],
  ['text/event-stream', 'event: x\r\ndata: {"a":1}\n\r\n', [26]],
  ['text/event-stream', ': OPEN\n\ndata: {"a":1}\n\n', [8, 15]],
  ['text/event-stream', ': hb\ndata: {"a":1}\n\n', [20]],
  ['text/event-stream', 'a\r\rb\r\n\r\nc\n\n\nd\r\n\n', [3, 5, 3, 5]],
  ['text/event-stream', 'a\n\n\n\nb\r\n\r', [3, 2, 4]],
  ['text/event-stream; charset=utf-8', 'data: 1\n\ndata: 2', [9, 7]],
  ['application/x-ndjson', '{"a":1}\n{"b":2}\r\n', [8, 9]],
  ['application/json', '[{"a":1},\n\n{"a":2}]', [19]],
]) {
  test(`chunks of ${type} ${JSON.stringify(text)}`, () => {
    for (const width of [1, 2, 3, 100]) {
      const marks = new Marks();
      marks.of(type);
      const ends = [];
      const note = () => { if (marks.position > ends.length) ends.push(marks.mark); };
      const bytes = new TextEncoder().encode(text);
      for (let i = 0; i < bytes.length; i += width) {
        marks.add(bytes.subarray(i, i + width));
        if (width === 1) note();
      }
      marks.end();
      if (width === 1) {
        note();
        assert.deepEqual(ends.map((end, i) => end - (ends[i - 1] ?? 0)), sizes);
      }
      assert.deepEqual([marks.position, marks.mark], [sizes.length, bytes.length]);
    }
  });
}
