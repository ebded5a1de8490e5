// Chat completions, as far as the agent needs them.

export interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

export interface Message {
  role: string;
  content: string;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
}

// read puts the deltas of a stream together, and counts its events. Where it breaks off that is an error, or with
// broken its end.
export async function read(response: Response, broken = false): Promise<{ message: Message; events: number }> {
  const message: Message = { role: 'assistant', content: '' };
  let [rest, events] = ['', 0];
  const line = (text: string) => {
    if (text.trim() === '') events++;
    if (text.startsWith('data: {')) add(message, JSON.parse(text.slice(6)).choices?.[0]?.delta ?? {});
  };
  try {
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split('\n');
      rest = lines.pop()!;
      lines.forEach(line);
    }
  } catch (error) {
    if (!broken) throw error;
  }
  return { message, events };
}

interface Delta {
  content?: string | null;
  tool_calls?: { index: number; id?: string; function: { name?: string; arguments?: string } }[];
}

function add(message: Message, { content, tool_calls = [] }: Delta) {
  message.content += content ?? '';
  for (const { index, id = '', function: { name = '', arguments: given = '' } } of tool_calls) {
    message.tool_calls ??= [];
    message.tool_calls[index] ??= { id, type: 'function', function: { name, arguments: '' } };
    message.tool_calls[index].function.arguments += given;
  }
}
