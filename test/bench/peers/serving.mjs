// What all programs here do alike: one address of host and port, one line that tells the bench of it.

/** listen opens the server and says where it listens. */
export function listen(server, address) {
  const at = address.lastIndexOf(":");
  server.listen(Number(address.slice(at + 1)), address.slice(0, at), () => announce(address));
}

/** announce tells the bench that the address answers. */
export function announce(address) {
  console.error(JSON.stringify({ address }));
}

/** buy makes the call that the request asks for, as the agent that was asked would. */
export async function buy(upstream, request) {
  const body = [];
  for await (const part of request) body.push(part);
  return fetch(upstream + request.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: Buffer.concat(body),
  });
}

// Of a stream whose provider is gone the libraries tell nobody else; a framework logs it and goes on.
process.on("unhandledRejection", (error) => console.error(String(error)));
