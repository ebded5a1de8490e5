// A DurableError says that an answer cannot be had whole, and how far it came.
//
// reason is the run's own where it ended broken (`eof_without_end`, `owner_lost`, `cancelled`, …), a code of
// the buffer where it refused (`not_found`, `released`, …), or `unreachable` where every try was
// lost. runId is empty where the answer had not begun. position is that of the first chunk not
// read whole, bytes is how much was delivered. cause is the last fault, where there was one.
export class DurableError extends Error {
  constructor(reason, { runId = '', position = 0, bytes = 0, key = '' } = {}, cause) {
    super(`${reason}: ${runId ? `run ${runId}, at position ${position} (byte ${bytes})` : `no answer to the call with key ${key}`}`, { cause });
    this.name = 'DurableError';
    Object.assign(this, { reason, runId, position, bytes, key });
  }
}
