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
      if (!asking) return await send(line, call), line;
      const response = await line.open(`${call.root}/resume?from=0`, reading(call, key));
      if (response.ok && response.headers.has('x-buffer-run-id')) return Object.assign(line, { found: true });
      const code = await refusal(response);
      if (code && code !== 'not_found') throw new DurableError(code, { key });
      asking = code === null;
      cause = passing(response);
    } catch (error) {
      if (error instanceof DurableError) throw error;
      asking = true;
      cause = error;
    }
    line.close();
    signal?.throwIfAborted();
    if (asking && !(cause instanceof Silence)) await backoff.wait({ where: { key }, signal, cause, after: cause.after });
  }
}

const send = (line, { target, init, sent, body }) => line.open(target, { ...init, method: 'POST', headers: sent, body });
