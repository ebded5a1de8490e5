import { DurableError } from './errors.js';
import { Line, Silence } from './line.js';
import { Backoff, refusal } from './retry.js';
import { passing, reading } from './run.js';

// reach sends the call and returns the line with its answer. A call whose answer was lost is not sent
// again before the buffer has said that it does not know it; where it does, the line is found, and
// brings the run's bytes.
export async function reach(call, settings) {
  const { signal, key } = call;
  const backoff = new Backoff(settings.retry);
  for (let asking = false; ;) {
    const line = new Line(settings.with(signal));
    let cause;
    try {
      const response = await (asking ? find(line, call) : send(line, call));
      if (!asking) {
        cause = passing(response);
        if (!turnedAway(response) || !backoff.patient(cause.after)) return line;
        asking = true;
      } else {
        if (response.ok && response.headers.has('x-buffer-run-id')) return Object.assign(line, { found: true });
        const code = await refusal(line);
        if (code && code !== 'not_found') throw new DurableError(code, { key });
        asking = code === null;
        cause = passing(response);
      }
    } catch (error) {
      line.close();
      signal?.throwIfAborted();
      if (error instanceof DurableError) throw error;
      asking = true;
      cause = error;
    }
    line.close();
    if (asking && !(cause instanceof Silence)) await backoff.wait({ where: { key }, signal, cause, after: cause.after });
  }
}

const send = (line, { target, init, sent, body }) => line.open(target, { ...init, method: 'POST', headers: sent, body });

// find asks for the run by the call's key, from where its answer was to begin.
function find(line, call) {
  const from = encodeURIComponent(call.sent.get('x-buffer-from') ?? 0);
  return line.open(`${call.root}/resume?from=${from}`, reading(call, call.key));
}

const passes = new Set([408, 429, 502, 503, 504]);

// turnedAway tells of a call that has no run: the buffer, or what lies before it, takes none at the moment.
// A refusal of the provider's has one, and is for the caller's SDK.
const turnedAway = ({ status, headers }) => passes.has(status) && !headers.has('x-buffer-run-id');
