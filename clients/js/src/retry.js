import { DurableError } from './errors.js';

export const longestTimer = 2 ** 31 - 1; // ms; setTimeout takes a longer one for none at all

// A Backoff paces the tries between two bytes of progress: each waits longer than the one before,
// with jitter, and no less than the server asks for.
export class Backoff {
  #lost = 0;

  constructor({ tries = 12, base = 250, cap = 10_000, longest = 120_000 } = {}) {
    Object.assign(this, { tries, base, cap, longest });
  }

  // progress begins the count anew.
  progress() { this.#lost = 0; }

  // patient tells whether there is one more try, after so long a wait.
  patient(after) { return this.#lost + 1 < this.tries && after <= this.longest; }

  // wait returns when it is time for the next try. It throws a DurableError when the tries are used up or
  // the server asks for too long a wait, and the reason of the signal when that is aborted.
  async wait({ where, signal, cause, after = 0 }) {
    if (!this.patient(after)) throw new DurableError('unreachable', where, cause);
    const step = Math.min(this.cap, this.base * 2 ** this.#lost++);
    await sleep(Math.max(after, step * (0.5 + Math.random() / 2)), signal);
  }
}

function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener('abort', abort); resolve(); }, Math.min(ms, longestTimer));
    signal?.addEventListener('abort', abort, { once: true });
  });
}

// retryAfter is the wait that an answer asks for, in ms: seconds or a date; 0 where it names none.
export function retryAfter(headers) {
  const text = headers.get('retry-after');
  if (!text) return 0;
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return ms > 0 ? ms : 0;
}

// refusal is the code with which the buffer itself refuses for good, or null: a fault that may pass, or
// an answer of something in between, which says nothing about the run.
export async function refusal(line) {
  const { status, headers } = line.response;
  if (status < 400 || status >= 500 || status === 408 || status === 429) return null;
  if (!headers.get('content-type')?.includes('problem+json')) return null;
  try {
    return (await line.json()).code ?? null;
  } catch {
    return null; // cut in its body: asked again
  }
}
