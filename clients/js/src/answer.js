import { durableBody } from './body.js';

// durable is the answer that has begun on a line, with a body that repairs itself.
export function durable(line, run, slot) {
  const { response } = line;
  return shaped(durableBody(line, run, slot), response.status, response);
}

// replayed is the refusal that a lost call had got: the line has its body and headers, the run its status.
export async function replayed(line, run) {
  try {
    const { status } = await run.status();
    return shaped(await line.response.arrayBuffer(), status || 502, line.response);
  } finally {
    line.close();
  }
}

// passed is an answer that nothing repairs, as it came. It lets go of the caller's signal with its last byte.
export function passed(line) {
  const { response } = line;
  if (!response.body) {
    line.release();
    return response;
  }
  const body = response.body.pipeThrough(new TransformStream({ flush: () => line.release() }));
  return shaped(body, response.status, response);
}

function shaped(body, status, { headers, url, statusText, status: came }) {
  const kept = new Headers(headers);
  for (const name of ['content-encoding', 'content-length']) kept.delete(name); // the body is decoded by now
  const response = new Response(body, { status, statusText: status === came ? statusText : '', headers: kept });
  Object.defineProperty(response, 'url', { value: url });
  return response;
}
