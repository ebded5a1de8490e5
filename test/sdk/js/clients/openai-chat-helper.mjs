// npm openai, chat.completions.stream(): the helper that accumulates.
import { chatChunk, connect } from '../openai.mjs';

export async function run(base, { prompt, model = 'lab', seen, ...rest }) {
  const stream = connect(base, rest).chat.completions.stream({ model, messages: [{ role: 'user', content: prompt }] });
  for await (const chunk of stream) seen.add(chatChunk(chunk));
  const completion = await stream.finalChatCompletion();
  seen.finish = completion.choices[0].finish_reason;
}
