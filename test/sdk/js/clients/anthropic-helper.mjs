// npm @anthropic-ai/sdk, messages.stream(): the helper that accumulates.
import { connect, messageEvent, request } from '../anthropic.mjs';

export async function run(base, { seen, ...rest }) {
  const stream = connect(base, rest).messages.stream(request(rest));
  for await (const event of stream) seen.add(messageEvent(event));
  seen.finish = (await stream.finalMessage()).stop_reason;
}
