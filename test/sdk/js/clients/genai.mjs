// npm @google/genai, generateContentStream.
import { GoogleGenAI } from '@google/genai';
import { call } from '../reading.mjs';

export async function run(base, { prompt, model = 'gemini-2.5-flash', fetch, seen }) {
  const client = new GoogleGenAI({ apiKey: 'k', vertexai: false, httpOptions: { baseUrl: base, fetch } });
  const stream = await client.models.generateContentStream({ model, contents: prompt });
  for await (const chunk of stream) {
    const tools = chunk.functionCalls?.map(({ name, args }) => call(name, args));
    seen.add({ text: chunk.text, tools: tools?.join(''), finish: chunk.candidates?.[0]?.finishReason });
  }
}
