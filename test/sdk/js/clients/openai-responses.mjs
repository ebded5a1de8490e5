// npm openai, Responses: the raw stream iterator.
import { connect, responsesEvent } from '../openai.mjs';

export async function run(base, { prompt, model = 'lab', seen, ...rest }) {
  const stream = await connect(base, rest).responses.create({ model, stream: true, input: prompt });
  for await (const event of stream) seen.add(responsesEvent(event));
}
