// npm openai, Responses: the raw stream iterator; where it breaks, retrieve() goes on after the last
// event that came.
import { connect, responsesEvent } from '../openai.mjs';

export async function run(base, { prompt, model = 'lab', seen, ...rest }) {
  const { responses } = connect(base, rest);
  let id, last;
  const read = async (stream) => {
    for await (const event of stream) {
      id ??= event.response?.id;
      last = event.sequence_number;
      seen.add(responsesEvent(event));
    }
  };
  try {
    await read(await responses.create({ model, stream: true, input: prompt }));
  } catch (error) {
    if (!id) throw error;
    await read(await responses.retrieve(id, { stream: true, starting_after: last }));
  }
}
