// npm eventsource, which follows a run of Responses. It comes back by itself, until it is told 204.
import { EventSource } from 'eventsource';
import { Order, start } from '../following.mjs';
import { responsesEvent } from '../openai.mjs';

const names = [
  'created', 'in_progress', 'output_item.added', 'content_part.added', 'output_text.delta', 'output_text.done',
  'content_part.done', 'output_item.done', 'completed',
].map((name) => `response.${name}`);

export async function run(base, { prompt, model = 'lab', events, seen }) {
  const source = new EventSource(await start(base, '/v1/responses', { model, input: prompt }, events));
  const order = new Order();
  let ends = 0;
  await new Promise((resolve, reject) => {
    const listen = (name, add) => source.addEventListener(name, ({ data, lastEventId }) => {
      try {
        order.take(lastEventId);
        add(data);
      } catch (error) {
        reject(error);
      }
    });
    for (const name of names) listen(name, (data) => seen.add(responsesEvent(JSON.parse(data))));
    listen('completed', () => { ends++; });
    source.addEventListener('error', ({ code, message }) => {
      if (source.readyState !== EventSource.CLOSED) return; // it comes back
      if (code === 204 && ends === 1) resolve();
      else reject(new Error(`closed after ${ends} ends: ${message}`));
    });
  }).finally(() => source.close());
}
