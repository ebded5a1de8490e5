// npm @microsoft/fetch-event-source, which follows a run of Messages. It comes back until it is told 204.
import { messageEvent, request } from '../anthropic.mjs';
import { fetchEventSource } from '../fetch-event-source.mjs';
import { Order, Over, start } from '../following.mjs';

export async function run(base, { events, seen, ...rest }) {
  const url = await start(base, '/v1/messages', request(rest), events);
  const order = new Order();
  let ends = 0;
  let status;
  await fetchEventSource(url, {
    async onopen(response) {
      status = response.status;
      if (status !== 200) throw new Over(`status ${status}`);
    },
    onmessage({ id, event, data }) {
      if (!id) return; // the buffer's own
      order.take(id);
      if (event === 'completed') ends++;
      else seen.add(messageEvent(JSON.parse(data)));
    },
    onclose() { throw new Error('closed'); },
    onerror(error) {
      if (error instanceof Over) throw error;
    },
  }).catch((error) => {
    if (status !== 204 || ends !== 1) throw error;
  });
}
