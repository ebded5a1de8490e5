// npm @microsoft/fetch-event-source, which makes the call itself: POST to Messages.
import { messageEvent, request } from '../anthropic.mjs';
import { fetchEventSource } from '../fetch-event-source.mjs';

export async function run(base, { seen, fetch, ...rest }) {
  await fetchEventSource(`${base}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'k', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ ...request(rest), stream: true }),
    fetch,
    async onopen(response) {
      if (!response.ok) throw Object.assign(new Error(await response.text()), { status: response.status });
    },
    onmessage({ event, data }) {
      if (event === 'error') throw new Error(data);
      if (event !== 'ping') seen.add(messageEvent(JSON.parse(data)));
    },
    onerror(error) { throw error; }, // it would send the call again
  });
}
