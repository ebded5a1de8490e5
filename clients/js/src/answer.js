import { durableBody } from './body.js';

// durable is the answer that has begun on a line, with a body that repairs itself.
export function durable(line, run, slot) {
  const { response } = line;
  return shaped(durableBody(line, run, slot), response.status, response);
}

// replayed is the refusal that a lost call had got: the line has its body and headers, the run its status.
export async function replayed(line, run) {
  const { status } = await run.status();
  return shaped(await line.response.arrayBuffer(), status || 502, line.response);
}

function shaped(body, status, { headers, url, statusText, status: came }) {
  const kept = new Headers(headers);
  for (const name of ['content-encoding', 'content-length']) kept.delete(name); // the body is decoded by now
  const response = new Response(body, { status, statusText: status === came ? statusText : '', headers: kept });
  Object.defineProperty(response, 'url', { value: url });
  return response;
}
