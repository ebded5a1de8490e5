// npm openai: after four events of the raw stream, responses.stream() of what exists takes over. It
// asks for the whole and shows what came after.
import { connect, responsesEvent } from '../openai.mjs';

const taken = 4; // events

export async function run(base, { prompt, model = 'lab', seen, ...rest }) {
  const { responses } = connect(base, rest);
  let id, last;
  for await (const event of await responses.create({ model, stream: true, input: prompt })) {
    id ??= event.response?.id;
    last = event.sequence_number;
    seen.add(responsesEvent(event));
    if (seen.events === taken) break;
  }
  const stream = responses.stream({ response_id: id, starting_after: last });
  for await (const event of stream) seen.add(responsesEvent(event));
  seen.finish = (await stream.finalResponse()).status;
  const { status, output_text } = await responses.retrieve(id);
  if (status !== seen.finish || output_text !== seen.text) throw new Error(`retrieved as ${status}: ${output_text}`);
}
