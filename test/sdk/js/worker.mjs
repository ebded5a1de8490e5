// An agent as a Worker. A request is a job {base, baseUrl, model, store, resume}: its answer is the text of
// one chat completion, as it comes. store is the URL of one that is had over HTTP.
import { durableFetch } from './client/index.js';
import OpenAI from './openai/index.mjs';

const overHTTP = (url) => ({
  async get(name) {
    const kept = await fetch(`${url}/${encodeURIComponent(name)}`);
    return kept.ok ? kept.text() : null;
  },
  set: (name, value) => fetch(`${url}/${encodeURIComponent(name)}`, { method: 'PUT', body: value }),
});

async function answer({ base, baseUrl, model, store, resume }, text) {
  const fetch = durableFetch({ baseUrl, id: 'count', store: overHTTP(store), resume, retry: { base: 2, cap: 20 } });
  const client = new OpenAI({ apiKey: 'k', baseURL: `${base}/v1`, maxRetries: 0, fetch });
  const stream = await client.chat.completions.create({ model, stream: true, messages: [{ role: 'user', content: 'slowly' }] });
  for await (const { choices } of stream) await text.write(new TextEncoder().encode(choices[0]?.delta?.content ?? ''));
  await text.close();
}

export default {
  async fetch(request, env, context) {
    if (request.method === 'GET') return new Response('ready');
    const { readable, writable } = new TransformStream();
    const text = writable.getWriter();
    context.waitUntil(answer(await request.json(), text).catch((error) => text.abort(error)));
    return new Response(readable);
  },
};
