// Our client goes on from each position of recorded runs: node positions.mjs ROOT. On standard input are the
// runs, as a JSON array of {name, path, ends}, where ends are the bytes at which their chunks end. Its output
// is JSON, one {name, got} a line: how many positions joined.
import { json } from 'node:stream/consumers';
import { durableFetch } from '../../../clients/js/src/index.js';

const root = process.argv[2];
const at = 16; // once
const some = 1 << 10; // bytes that tell a place from any other
const most = 1 << 20; // bytes of one run that are read to their end, about

// goOn is the answer for who has read so many chunks and bytes of the run.
function goOn({ key, url, id }, position, bytes) {
  const store = new Map([[`spool:${key}`, JSON.stringify({ key, run: id, position, bytes })]]);
  return call(url, key, durableFetch({ baseUrl: root, key, store, resume: 'rest', generates: () => true }));
}

const call = (url, key, send = fetch) => send(url, {
  method: 'POST', body: '{"model":"m","stream":true}',
  headers: { authorization: 'Bearer k', 'content-type': 'application/json', 'idempotency-key': key },
});

// read is the whole body of an answer to come, or its first bytes. A run that ended broken raises its error
// after them.
async function read(answer, least) {
  const pieces = [];
  let got = 0;
  try {
    for await (const piece of (await answer).body) {
      pieces.push(piece);
      if ((got += piece.length) >= least) break;
    }
  } catch (error) {
    if (error.name !== 'DurableError' || error.reason !== 'provider_error') throw error;
  }
  return Buffer.concat(pieces);
}

async function joined({ name, path, ends }) {
  const url = `${root}/tape/${name}${path}`;
  const key = `positions-${name}`;
  const first = await call(url, key);
  const whole = Buffer.from(await first.arrayBuffer());
  const run = { key, url, id: first.headers.get('x-buffer-run-id') };
  const every = 1 + Math.floor(ends.length * whole.length / 2 / most);
  let right = 0;
  let next = 0;
  await Promise.all(Array.from({ length: at }, async () => {
    while (next < ends.length) {
      const position = next++;
      const want = whole.subarray(ends[position]);
      const least = position % every === 0 ? Infinity : some;
      const got = await read(goOn(run, position + 1, ends[position]), least);
      const enough = least === Infinity ? want.length : Math.min(least, want.length);
      if (got.length >= enough && got.equals(want.subarray(0, got.length))) right++;
    }
  }));
  return right;
}

for (const run of await json(process.stdin)) {
  console.log(JSON.stringify({ name: run.name, got: await joined(run).catch(String) }));
}
