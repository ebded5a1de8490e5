// The reference server of Durable Streams, file-backed.
//
//   node durable-server.mjs ADDRESS FOLDER
import { DurableStreamTestServer } from "@durable-streams/server";
import { announce } from "./serving.mjs";

const [address, dataDir] = process.argv.slice(2);
const { hostname: host, port } = new URL(`http://${address}`);
await new DurableStreamTestServer({ host, port: Number(port), dataDir }).start();
announce(address);
