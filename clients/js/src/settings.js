// understood are the options of a durableFetch with their defaults.
export function understood(options = {}) {
  const { store, id, key, resume = 'whole', cancel = 'reader', idle = 60_000 } = options;
  if (store && id === undefined && key === undefined) throw new TypeError('a store needs an id, or a key, to keep the state under');
  if (!['whole', 'rest'].includes(resume)) throw new TypeError(`resume must be 'whole' or 'rest', not ${resume}`);
  if (!['run', 'reader'].includes(cancel)) throw new TypeError(`cancel must be 'run' or 'reader', not ${cancel}`);
  const fetch = options.fetch ?? ((...args) => globalThis.fetch(...args)); // looked up late: it may be instrumented
  return { ...options, resume, cancel, idle, fetch, with: (signal) => ({ fetch, signal, idle }) };
}
