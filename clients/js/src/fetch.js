import { understand } from './call.js';
import { durable, passed, replayed } from './answer.js';
import { DurableError } from './errors.js';
import { derivedKey, digest, Lost, marksRetries, randomKey } from './key.js';
import { reach } from './reach.js';
import { gone, Run, runByKey } from './run.js';
import { understood } from './settings.js';
import { Slot } from './state.js';

// durableFetch returns a fetch for an LLM's SDK. A POST that generates, to a buffer, gets a key, and its
// answer is whole however often the connection is cut; any other request passes through untouched.
export function durableFetch(options) {
  const settings = understood(options);
  const lost = new Lost();
  return async (input, init) => {
    const call = await understand(input, init ?? {}, settings);
    if (!call) return settings.fetch(input, init);
    await name(call, lost, settings);
    try {
      const response = await answer(call, settings);
      lost.refused(call, response);
      return response;
    } catch (error) {
      lost.add(call, Boolean(call.signal?.aborted));
      throw error;
    }
  };
}

// name gives the call its key: its own header's, the option's, that of its operation, that of the call
// it repeats, or a new one.
async function name(call, lost, { key, id }) {
  const request = { url: call.url, headers: call.sent, body: call.body };
  const chosen = async (value) => (typeof value === 'function' ? value(request) : value);
  call.digest = digest(call.url, call.body);
  call.id = await chosen(id);
  call.key = call.sent.get('idempotency-key') || await chosen(key);
  if (!call.key && call.id) call.key = derivedKey(call.id, call.digest);
  if (!call.key) {
    const earlier = lost.claim(call);
    call.key = earlier?.key ?? randomKey();
    call.since = earlier?.since;
  }
  call.sent.set('idempotency-key', call.key);
}

// answer goes on where the state says that a former process was, or makes the call.
async function answer(call, settings) {
  call.signal?.throwIfAborted();
  const slot = new Slot(settings.store, call.id || call.key);
  const rest = settings.resume === 'rest' ? await theRest(call, slot, settings) : null;
  if (rest) return rest;

  await slot.save({ key: call.key });
  const line = await reach(call, settings).catch((error) => {
    if (call.signal?.aborted) leaveEarly(call, settings);
    throw error;
  });
  const { response } = line;
  const id = response.headers.get('x-buffer-run-id');
  if (!id) return passed(line);
  await slot.note({ key: call.key, run: id });
  const run = new Run({ ...call, id }, settings);
  if (line.found && response.headers.get('x-buffer-status') === 'failed') return replayed(line, run);
  return response.ok && response.body && countable(response) ? durable(line, run, slot) : passed(line);
}

// countable tells whether the bytes that are read are those of the run, from its first. They are not where
// a later one was asked for, or where the provider's own encoding was stored: the buffer undoes gzip
// alone, so that gzip is what something in between has put around them.
function countable({ headers }) {
  return !(Number(headers.get('x-buffer-from')) > 0) && ['', 'gzip', 'identity'].includes(headers.get('content-encoding') ?? '');
}

// theRest is the answer from the kept position on; null where nothing of it was read, or there is no
// such run any more.
async function theRest(call, slot, settings) {
  const kept = await slot.load();
  if (kept?.key !== call.key || !kept.run || !kept.bytes) return null;
  const run = new Run({ ...call, id: kept.run, reached: kept }, settings);
  try {
    const line = await run.attach();
    await slot.note(kept);
    return durable(line, run, slot);
  } catch (error) {
    if (error instanceof DurableError && gone.has(error.reason)) return null;
    throw error;
  }
}

// leaveEarly passes on a cancellation that came before the run's id. An SDK that counts its retries
// also aborts to time out, and then comes again for the same run: that is left to it.
function leaveEarly(call, settings) {
  if (settings.cancel !== 'run' || marksRetries(call.sent)) return;
  runByKey(call, settings)
    .then((id) => { if (id) new Run({ ...call, id, signal: undefined }, settings).cancel(); })
    .catch(() => {}); // the run goes on to its end, and is kept
}
