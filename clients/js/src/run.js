import { DurableError } from './errors.js';
import { Line, Silence } from './line.js';
import { Marks } from './marks.js';
import { Backoff, refusal, retryAfter } from './retry.js';

const broken = new Set(['interrupted', 'cancelled', 'failed']);

// gone are the codes that say that there is no such run any more.
export const gone = new Set(['not_found', 'released']);

// A Run is one run at the buffer, as its reader sees it: its id, and in marks how far the reader is.
export class Run {
  constructor({ root, headers, init, signal, id, key, reached }, settings) {
    Object.assign(this, { root, headers, init, signal, id, key, settings });
    this.marks = new Marks(reached);
    this.backoff = new Backoff(settings.retry);
  }

  get where() { return { runId: this.id, position: this.marks.position, bytes: this.marks.bytes, key: this.key }; }

  // attach opens a line on which the bytes come that the reader lacks. It tries again until it has one; its
  // error is a DurableError where none will ever come, or the signal's reason. cause is the fault that
  // made it necessary, if any.
  attach(cause) {
    return this.#insist(`resume?from_byte=${this.marks.bytes}`, (line) => this.#check(line), cause);
  }

  // live opens a line with the whole answer, or returns null where the run is not live any more.
  async live() {
    const line = await this.#insist('stream?resume=1', async (line) => {
      const code = await refusal(line);
      if (code && !gone.has(code)) throw new DurableError(code, this.where);
      if (!code && !line.response.ok) throw passing(line.response);
    });
    if (line.response.status === 200) return line;
    line.close();
    return null;
  }

  // status is the run as JSON.
  async status() {
    const line = new Line(this.settings.with(this.signal));
    try {
      const response = await line.open(this.#url(''), reading(this));
      if (!response.ok) throw passing(response);
      return await line.json();
    } finally {
      line.close();
    }
  }

  // cancel stops the provider's call. Nobody waits for it: whoever cancels has gone on.
  async cancel() {
    try {
      const response = await this.settings.fetch.call(undefined, this.#url('/cancel'), { ...reading(this), method: 'POST' });
      await response.body?.cancel();
    } catch {
      // the run goes on to its end, and is kept
    }
  }

  #url(path) { return `${this.root}/runs/${this.id}${path}`; }

  // #insist asks until check accepts the answer or throws a DurableError.
  async #insist(path, check, cause) {
    for (;;) {
      if (cause && !(cause instanceof Silence)) {
        await this.backoff.wait({ where: this.where, signal: this.signal, cause, after: cause.after });
      }
      const line = new Line(this.settings.with(this.signal));
      try {
        await line.open(this.#url(`/${path}`), reading(this));
        await check(line);
        return line;
      } catch (error) {
        line.close();
        this.signal?.throwIfAborted();
        if (error instanceof DurableError) throw error;
        cause = error;
      }
    }
  }

  // #check throws a DurableError where the run has no more to give, another error where it may have.
  async #check(line) {
    const { response } = line;
    const { ok, status, headers } = response;
    if (status === 416) throw await this.#ended('ahead'); // an error event of the buffer's came last: it is no byte of the run
    const code = await refusal(line);
    if (code) throw new DurableError(code, this.where);
    if (!ok || headers.get('x-buffer-run-id') !== this.id) throw passing(response);
    const state = headers.get('x-buffer-status');
    const atHead = headers.get('x-buffer-from') === headers.get('x-buffer-next');
    if (state === 'failed' || (broken.has(state) && atHead)) throw await this.#ended(state);
  }

  // #ended is the error of a run that ended broken, with the reason that the buffer knows.
  async #ended(state) {
    const { where } = this;
    const run = await this.status().catch(() => null); // the state alone will do
    if (run) Object.assign(where, { position: Math.min(where.position, run.head), bytes: Math.min(where.bytes, run.bytes) });
    return new DurableError(run?.reason || state, where);
  }
}

// runByKey is the id of the run that has the key, or an empty string.
export async function runByKey({ root, init, headers, key }, { fetch }) {
  const response = await fetch.call(undefined, `${root}/resume?from=tail&follow=0`, reading({ init, headers }, key));
  await response.body?.cancel();
  return response.headers.get('x-buffer-run-id') ?? '';
}

// reading is the init of a GET about a run; with a key, by that.
export function reading({ init, headers }, key) {
  const own = new Headers(headers);
  if (key) own.set('idempotency-key', key);
  return { ...init, method: 'GET', headers: own };
}

// passing is an answer that says nothing about the run: it may be another the next time.
export function passing({ status, headers }) {
  return Object.assign(new Error(`status ${status}`), { after: retryAfter(headers) });
}
