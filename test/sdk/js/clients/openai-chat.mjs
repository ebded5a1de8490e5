// npm openai, Chat Completions: the raw stream iterator.
import { chatChunk, connect } from '../openai.mjs';

export async function run(base, { prompt, model = 'lab', seen, ...rest }) {
  const stream = await connect(base, rest).chat.completions.create({
    model,
    stream: true,
    stream_options: { include_usage: true },
    messages: [{ role: 'user', content: prompt }],
  });
  for await (const chunk of stream) seen.add(chatChunk(chunk));
}
