// LangChain's stream() of one chat model of whatever provider.
export async function readChat(model, { prompt, seen }) {
  for await (const { content, tool_call_chunks: calls } of await model.stream(prompt)) {
    const text = typeof content === 'string' ? content : content?.[0]?.text;
    const tools = calls?.map(({ name, args }) => (name ?? '') + (args ?? ''));
    seen.add({ text, tools: tools?.join('') });
  }
}
