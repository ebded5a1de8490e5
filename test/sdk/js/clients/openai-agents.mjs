// npm @openai/agents: a streamed agent with one tool, over Responses.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from '@openai/agents';
import { call } from '../reading.mjs';

setTracingDisabled(true);

const weather = tool({
  name: 'get_weather',
  description: 'The weather of a city.',
  strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' }, unit: { type: 'string' } }, required: ['city'], additionalProperties: true },
  execute: () => '18 degrees',
});

export async function run(base, { prompt, model = 'lab', seen }) {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: 'k', baseURL: `${base}/v1` }), tracingDisabled: true });
  const stream = await runner.run(new Agent({ name: 'tester', model, instructions: 'Answer.', tools: [weather] }), prompt, { stream: true });
  for await (const event of stream) seen.add(eventOf(event));
  await stream.completed;
  seen.finish = stream.finalOutput;
}

function eventOf(event) {
  if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') return { text: event.data.delta };
  const item = event.item?.rawItem;
  if (event.name === 'tool_called') return { tools: call(item.name, item.arguments) };
  return {};
}
