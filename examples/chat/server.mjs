// A chat whose page may be reloaded at any moment: the server makes the call, the page reads the run.
//
//   spool serve --cors-origin http://127.0.0.1:3000
//   node examples/chat/server.mjs [BASE] [PORT]
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const [base = 'http://127.0.0.1:8787', port = '3000'] = process.argv.slice(2);
const { OPENAI_API_KEY, MODEL = 'gpt-5-mini' } = process.env;
const biggest = 1 << 20; // bytes of a question with its history

// ask makes the call with the page's key, and says where its answer can be read, and with what token. Asked again
// with the same key it is the same run, with a new token. Nobody reads the answer here: the run goes on to its end.
async function ask({ key, messages }) {
  const response = await fetch(`${base}/openai/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': `chat:${key}`, // a real server puts its user's name here
      'x-buffer-mint-token': '1h',
      ...(OPENAI_API_KEY ? { authorization: `Bearer ${OPENAI_API_KEY}` } : {}),
    },
    body: JSON.stringify({ model: MODEL, stream: true, messages }),
  });
  await response.body.cancel();
  const run = response.headers.get('x-buffer-run-id');
  if (!response.ok || !run) return { status: response.ok ? 502 : response.status, answer: {} };
  const token = response.headers.get('x-buffer-token');
  return { status: 200, answer: { run, events: `${base}/runs/${run}/events?token=${token}` } };
}

async function json(request) {
  let text = '';
  for await (const piece of request.setEncoding('utf8')) {
    if ((text += piece).length > biggest) throw new RangeError('too long');
  }
  return JSON.parse(text);
}

const file = (path) => readFile(new URL(path, import.meta.url));

const server = createServer(async (request, response) => {
  const send = (status, type, body) => response.writeHead(status, { 'content-type': type }).end(body);
  try {
    const route = `${request.method} ${request.url}`;
    if (route === 'GET /') return send(200, 'text/html; charset=utf-8', await file('index.html'));
    if (route === 'GET /events.js') return send(200, 'text/javascript', await file('../../clients/js/src/events.js'));
    if (route !== 'POST /ask') return send(404, 'text/plain', 'not found');
    const { status, answer } = await ask(await json(request));
    send(status, 'application/json', JSON.stringify(answer));
  } catch (error) {
    send(error instanceof SyntaxError ? 400 : 502, 'text/plain', error.message);
  }
});
server.listen(Number(port), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
