// A chat route over Durable Streams: POST makes a stream, answers with its address, and appends to it
// what the provider sends. Readers read from the server.
//
//   node durable-app.mjs ADDRESS UPSTREAM SERVER each|batched
import { randomUUID } from "node:crypto";
import http from "node:http";
import { DurableStream, IdempotentProducer } from "@durable-streams/client";
import { buy, listen } from "./serving.mjs";

const [address, upstream, durable, mode] = process.argv.slice(2);
const fill = mode === "batched" ? fillBatched : fillEach;

async function start(request, response) {
  const answer = await buy(upstream, request);
  const stream = await DurableStream.create({
    url: `${durable}/v1/stream/${randomUUID()}`,
    contentType: "text/event-stream",
    batching: mode === "batched",
  });
  response.writeHead(201, { location: `${stream.url}?offset=-1&live=sse` }).end();
  await fill(stream, events(answer.body));
}

/** fillEach waits until an event is stored before it sends the next one. */
async function fillEach(stream, events) {
  for await (const event of events) await stream.append(event);
  await stream.close();
}

/** fillBatched leaves it to the producer that the client's README recommends how much goes into one POST. */
async function fillBatched(stream, events) {
  const producer = new IdempotentProducer(stream, randomUUID(), {
    autoClaim: true,
    onError: (error) => console.error(String(error)),
  });
  for await (const event of events) producer.append(event);
  await producer.close(); // flushes, and closes the stream
}

/** events cuts the answer after each blank line. */
async function* events(body) {
  let rest = "";
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    rest += text;
    let from = 0;
    for (let end; (end = rest.indexOf("\n\n", from)) >= 0; from = end + 2) yield rest.slice(from, end + 2);
    rest = rest.slice(from);
  }
  if (rest) yield rest;
}

const server = http.createServer((request, response) => {
  start(request, response).catch((error) => {
    console.error(String(error));
    response.destroy();
  });
});
listen(server, address);
