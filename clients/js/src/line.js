import { longestTimer } from './retry.js';

// A Silence is a connection on which nothing has come for too long: as good as cut.
export class Silence extends Error {
  constructor(ms) {
    super(`nothing came for ${ms} ms`);
    this.name = 'Silence';
  }
}

// A Line is one request and its answer. It ends when its caller aborts, when it falls silent for
// idle ms (0: never), or when it is closed.
export class Line {
  #ending = new AbortController();
  #reader;
  #unlink = () => {};

  constructor({ fetch, signal, idle }) {
    Object.assign(this, { fetch, signal, idle });
    if (!signal) return;
    signal.throwIfAborted();
    const abort = () => this.#ending.abort(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    this.#unlink = () => signal.removeEventListener('abort', abort);
  }

  // open sends the request. Its error is the signal's reason, a Silence, or that of the network.
  async open(target, init) {
    this.response = await this.#listen(() => this.fetch.call(undefined, target, { ...init, signal: this.#ending.signal }));
    return this.response;
  }

  // read returns the next bytes of the body as a reader does. Its errors are those of open.
  read() {
    this.#reader ??= this.response.body.getReader();
    return this.#listen(() => this.#reader.read());
  }

  // json is the whole body. Its errors are those of open.
  json() { return this.#listen(() => this.response.json()); }

  // release lets go of the caller's signal, once there is nothing left for it to end.
  release() { this.#unlink(); }

  close() {
    this.release();
    this.#ending.abort();
  }

  async #listen(work) {
    const timer = this.idle > 0 && this.idle <= longestTimer ? setTimeout(() => this.#ending.abort(new Silence(this.idle)), this.idle) : undefined;
    try {
      return await work();
    } catch (error) {
      throw this.#ending.signal.aborted ? this.#ending.signal.reason : error;
    } finally {
      clearTimeout(timer);
    }
  }
}
