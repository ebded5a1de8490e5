// npm @anthropic-ai/sdk, messages.create({ stream: true }): the raw stream iterator.
import { connect, messageEvent, request } from '../anthropic.mjs';

export async function run(base, { seen, ...rest }) {
  const stream = await connect(base, rest).messages.create({ ...request(rest), stream: true });
  for await (const event of stream) seen.add(messageEvent(event));
}
