// Runs many jobs in one process. A list of jobs comes on standard input, as a JSON array:
//
//   job     {id, client, base, prompt, model?, retries?, resume?, durable?, tries?, events?}
//   result  {id, ok, events, text, tools, finish, reconnects, error?: {name, status, message}}
//
// and one result a line goes to standard output, in the order in which jobs end.
// client is a module of clients/; resume is the root that mends cut streams, see
// resuming-fetch.mjs; durable is that of a buffer which our own client reads from, in so many
// tries; events is where a client reads that follows a run. By hand: node driver.mjs CLIENT BASE [PROMPT]
import { text } from 'node:stream/consumers';
import { durableFetch } from '../../../clients/js/src/index.js';
import { Reading } from './reading.mjs';
import { resumingFetch } from './resuming-fetch.mjs';

const width = 8; // jobs at a time
const patience = 60_000; // ms: a job that takes longer hangs

// SDKs warn on the console; standard output is the results' alone.
console.log = console.info = console.warn = console.error = () => {};

const print = (result) => process.stdout.write(JSON.stringify(result) + '\n');

// What no job catches is a fault as well: its line has no id of a job.
process.on('unhandledRejection', (reason) => print({ id: 'unhandled', ok: false, error: describe(reason) }));

function describe(error) {
  let last = error?.lastError ?? error; // the AI SDK wraps the last of several tries
  if (last?.cause?.name === 'DurableError') last = last.cause; // and what broke a body
  return {
    name: last?.constructor?.name ?? typeof last,
    status: last?.status ?? last?.statusCode ?? 0,
    message: String(last?.message ?? last).slice(0, 300),
  };
}

async function perform({ id, client, base, prompt = 'hello', model, retries = 0, resume, durable, tries, events }) {
  const seen = new Reading();
  let reconnects = 0;
  const onReconnect = () => { reconnects++; };
  const fetch = resume ? resumingFetch(resume, onReconnect) : durable ? ownFetch(durable, tries, onReconnect) : undefined;
  const outcome = await within(patience, async () => {
    const { run } = await import(`./clients/${client}.mjs`);
    await run(base, { prompt, model, retries, fetch, events, seen });
  });
  print({ id, ...outcome, ...seen, reconnects });
}

// ownFetch hurries, and tells of each request but the calls themselves.
const ownFetch = (baseUrl, tries, onReconnect) => durableFetch({
  baseUrl,
  retry: { base: 2, cap: 20, tries },
  fetch(address, init) {
    if (init.method === 'GET') onReconnect();
    return fetch(address, init);
  },
});

async function within(ms, work) {
  let timer;
  const hung = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no end within ${ms} ms`)), ms); });
  try {
    await Promise.race([work(), hung]);
    return { ok: true };
  } catch (error) {
    return { ok: false, error: describe(error) };
  } finally {
    clearTimeout(timer);
  }
}

async function jobsOf([client, base, prompt]) {
  if (client) return [{ id: client, client, base, prompt }];
  return JSON.parse(await text(process.stdin));
}

const waiting = await jobsOf(process.argv.slice(2));
const worker = async () => { while (waiting.length > 0) await perform(waiting.shift()); };
await Promise.all(Array.from({ length: width }, worker));
process.exitCode = 0;
process.stdout.end(() => process.exit());
