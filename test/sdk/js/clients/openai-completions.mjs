// npm openai, legacy Completions: the raw stream iterator.
import { connect } from '../openai.mjs';

export async function run(base, { prompt, model = 'lab', seen, ...rest }) {
  const stream = await connect(base, rest).completions.create({ model, stream: true, prompt });
  for await (const { choices } of stream) seen.add({ text: choices?.[0]?.text, finish: choices?.[0]?.finish_reason });
}
