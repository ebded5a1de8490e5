// A chat route over resumable-stream, with the explicit resumption of its README: POST starts a stream
// and answers with it, GET on the address that the answer names resumes it.
//
//   node resumable.mjs ADDRESS UPSTREAM REDIS_URL
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import { createClient } from "redis";
import { createResumableStreamContext } from "resumable-stream";
import { buy, listen } from "./serving.mjs";

const [address, upstream, redis] = process.argv.slice(2);
const context = createResumableStreamContext({
  waitUntil: (promise) => promise, // the process stays
  publisher: await connect(),
  subscriber: await connect(),
});

/** connect is the library's own client, which would end the process when Redis goes away. */
function connect() {
  return createClient({ url: redis }).on("error", (error) => console.error(String(error))).connect();
}

async function start(request, response) {
  const id = randomUUID();
  const answer = await buy(upstream, request);
  const stream = await context.createNewResumableStream(id, () => answer.body.pipeThrough(new TextDecoderStream()));
  await send(stream, response, { location: `/streams/${id}` });
}

async function resume(request, response) {
  const stream = await context.resumeExistingStream(request.url.slice("/streams/".length));
  if (!stream) {
    response.writeHead(422).end("Stream is already done");
    return;
  }
  await send(stream, response, {});
}

async function send(stream, response, headers) {
  response.writeHead(200, { "content-type": "text/event-stream", ...headers });
  for await (const text of stream) {
    if (response.destroyed) return; // the reader has left; the library's producer goes on
    if (!response.write(text)) await Promise.race([once(response, "drain"), once(response, "close")]);
  }
  response.end();
}

const server = http.createServer((request, response) => {
  const handle = request.method === "POST" ? start : resume;
  handle(request, response).catch((error) => {
    console.error(String(error));
    response.destroy();
  });
});
listen(server, address);
