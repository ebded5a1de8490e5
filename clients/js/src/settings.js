// understood are the options of a durableFetch with their defaults.
export function understood(options = {}) {
  const { store, id, key, resume = 'whole', cancel = 'reader', idle = 60_000 } = options;
  if (store && !(isStore(store, 'get', 'set') || isStore(store, 'getItem', 'setItem'))) throw new TypeError('a store needs get and set, or getItem and setItem');
  if (store && id === undefined && key === undefined) throw new TypeError('a store needs an id, or a key, to keep the state under');
  if (!['whole', 'rest'].includes(resume)) throw new TypeError(`resume must be 'whole' or 'rest', not ${resume}`);
  if (!['run', 'reader'].includes(cancel)) throw new TypeError(`cancel must be 'run' or 'reader', not ${cancel}`);
  if (typeof idle !== 'number' || Number.isNaN(idle)) throw new TypeError(`idle must be a number of ms, not ${idle}`);
  const fetch = options.fetch ?? ((...args) => globalThis.fetch(...args)); // looked up late: it may be instrumented
  return { ...options, resume, cancel, idle, fetch, with: (signal) => ({ fetch, signal, idle }) };
}

const isStore = (store, ...methods) => methods.every((name) => typeof store[name] === 'function');
