// Which key a call carries: its name at the buffer, where one key is one run.

// randomKey is a new name. Pages without TLS have no randomUUID.
export function randomKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), hex).join('');
}

const hex = (byte) => byte.toString(16).padStart(2, '0');

// digest tells calls apart by method, URL and body. The buffer compares whole bodies, and
// answers 422 if two with one digest ever meet: it need not withstand an attack.
export const digest = (url, body) => hash(`${url.pathname}${url.search}\0`, body);

function hash(...parts) {
  let [a, b] = [0x811c9dc5, 0x2545f491];
  const add = (bytes) => {
    for (const byte of bytes) {
      a = Math.imul(a ^ byte, 0x01000193);
      b = Math.imul(b ^ byte, 0x5bd1e995) + (b >>> 13) | 0;
    }
  };
  const utf8 = new TextEncoder();
  for (const part of parts) add(typeof part === 'string' ? utf8.encode(part) : part);
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
}

// derivedKey is the key of one call of the operation id. The same call has the same one after a restart.
export function derivedKey(id, digest) {
  const name = /^[\x21-\x7e]{1,200}$/.test(id) ? id : `${encodeURIComponent(id).slice(-180)}-${hash(id)}`;
  return `${name}-${digest}`;
}

const marked = 'x-stainless-retry-count'; // the SDKs of OpenAI and Anthropic count their retries
const kept = { marked: 600_000, unmarked: 120_000 }; // ms for which a retry may claim a call that was lost
const most = 500; // lost calls that are remembered

// marksRetries tells whether the call comes from an SDK that counts its retries.
export const marksRetries = (headers) => headers.has(marked);

const isRetry = (headers) => Number(headers.get(marked)) > 0;

// A retry of the caller's SDK is the same call, and must have the same key. Lost remembers the calls
// that a retry may follow. It knows one by its body: by the SDK's count where there is one, else
// because the same body comes again soon. Each is claimed once.
export class Lost {
  #calls = []; // {digest, key, since, aborted}, oldest first

  // claim returns the lost call that this one repeats, or undefined.
  claim({ digest, sent }) {
    const retry = isRetry(sent);
    const now = Date.now();
    this.#calls = this.#calls.filter(({ since }) => now - since < kept.marked);
    const at = this.#calls.findIndex((lost) => lost.digest === digest &&
      (retry || (!lost.aborted && now - lost.since < kept.unmarked)));
    return at < 0 ? undefined : this.#calls.splice(at, 1)[0];
  }

  // add remembers a call without an answer. since is when it was lost first.
  add({ digest, key, since = Date.now() }, aborted) {
    this.#calls.push({ digest, key, since, aborted });
    if (this.#calls.length > most) this.#calls.shift();
  }

  // refused remembers a call whose answer an SDK takes for a reason to try again. A refusal that
  // the buffer replays has not changed; who does not count its retries gets a new key then.
  refused(call, { status, headers }) {
    const again = status === 408 || status === 409 || status === 429 || status >= 500 || headers.get('x-should-retry') === 'true';
    if (again && (marksRetries(call.sent) || !headers.has('idempotent-replayed'))) this.add(call, false);
  }
}
