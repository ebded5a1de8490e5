// What outlives the process that asked: {key, run, position, bytes} of the last call of one operation, as
// JSON in a store with get and set, or with getItem and setItem; both may answer at once or later.

const count = (n) => (Number.isSafeInteger(n) && n > 0 ? n : 0);

// A Slot is the place of one operation in the store. Without a store it keeps nothing.
export class Slot {
  #state = {};
  #writing = null;
  #stale = false;

  constructor(store, id) {
    this.name = `spool:${id}`;
    if (!store) return;
    this.read = (store.getItem ?? store.get).bind(store); // localStorage.get is an item
    this.write = (store.setItem ?? store.set).bind(store);
  }

  // load returns what is kept, or null. What is not a state of ours is none. Some stores parse what they keep.
  async load() {
    const kept = await this.read?.(this.name);
    try {
      const { key, run, position, bytes } = typeof kept === 'string' ? JSON.parse(kept) : kept;
      if (typeof key !== 'string') return null;
      return { key, run: typeof run === 'string' ? run : '', position: count(position), bytes: count(bytes) };
    } catch {
      return null;
    }
  }

  // save replaces what is kept and returns when it is. Its error is the store's.
  async save({ key, run = '', position = 0, bytes = 0 }) {
    await this.settled();
    this.#state = { key, run, position, bytes };
    await this.write?.(this.name, JSON.stringify(this.#state));
  }

  // note is save where the store may fail: the key is kept already, and finds the run.
  async note(state) {
    await this.save(state).catch(() => {});
  }

  // reached keeps how far the reader is, sooner or later: one write at a time, the newest next. One that
  // fails costs no more than bytes that are read twice.
  reached({ position, mark }) {
    if (!this.write || this.#state.bytes === mark) return;
    Object.assign(this.#state, { position, bytes: mark });
    this.#stale = true;
    this.#writing ??= this.#drain();
  }

  // settled returns when no write is under way.
  async settled() { await this.#writing; }

  async #drain() {
    await null; // a write that fails at once must not end before #writing is set
    try {
      while (this.#stale) {
        this.#stale = false;
        await this.write(this.name, JSON.stringify(this.#state));
      }
    } catch {
      // see reached
    } finally {
      this.#writing = null;
    }
  }
}
