// A scripted buffer: each request takes the next step of the script, which answers it. It keeps what was asked.
import { createServer } from 'node:http';
import { once } from 'node:events';

export const runId = '01JSCRIPTEDRUN000000000000';

// scripted starts a server that ends with the test t. A step is (request, response, body) => void.
export async function scripted(t, ...steps) {
  const asked = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const piece of request) body += piece;
    asked.push({ method: request.method, url: request.url, headers: request.headers, body });
    const step = steps[Math.min(asked.length, steps.length) - 1];
    step(request, response, body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => { server.closeAllConnections(); server.close(); });
  return { url: `http://127.0.0.1:${server.address().port}`, asked };
}

const about = (more) => ({ 'content-type': 'text/event-stream', 'x-buffer-run-id': runId, 'x-buffer-status': 'streaming', 'x-buffer-from': '0', 'x-buffer-next': '9', ...more });

// whole answers with text to a clean end.
export const whole = (text, headers) => (_, response) => response.writeHead(200, about(headers)).end(text);

// cut answers with text and then breaks the connection.
export const cut = (text, headers) => (_, response) => {
  response.writeHead(200, about(headers));
  if (text === '') response.flushHeaders();
  response.write(text, () => setImmediate(() => response.destroy()));
};

// open answers with text and says no more.
export const open = (text, headers) => (_, response) => {
  response.writeHead(200, about(headers));
  response.flushHeaders();
  if (text) response.write(text);
};

// lost takes the request and breaks the connection before it answers.
export const lost = (request) => request.socket.destroy();

// problem refuses as the buffer does.
export const problem = (status, code, headers = {}) => (_, response) =>
  response.writeHead(status, { 'content-type': 'application/problem+json', ...headers }).end(JSON.stringify({ status, code }));

export const json = (value) => (_, response) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));

// ask makes a streamed chat completion.
export const ask = (fetch, url, init = {}) => fetch(`${url}/openai/v1/chat/completions`, {
  method: 'POST', body: '{"model":"m","stream":true}', headers: { authorization: 'Bearer k', 'content-type': 'application/json' }, ...init,
});

// until waits for what a test has caused, and fails where that does not come.
export async function until(come) {
  const end = Date.now() + 10_000;
  while (!come()) {
    if (Date.now() > end) throw new Error(`in vain for ${come}`);
    await new Promise(setImmediate);
  }
}
