// npm openai, responses.stream(): the helper that accumulates.
import { connect, responsesEvent } from '../openai.mjs';

export async function run(base, { prompt, model = 'lab', seen, ...rest }) {
  const stream = connect(base, rest).responses.stream({ model, input: prompt });
  for await (const event of stream) seen.add(responsesEvent(event));
  seen.finish = (await stream.finalResponse()).status;
}
