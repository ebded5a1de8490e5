// useChat with the AI SDK's own transport, which needs to be told where a run is resumed, and no more.
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport } from 'ai';

const root = 'http://127.0.0.1:8787';

const transport = new DefaultChatTransport({
  api: `${root}/app/api/chat`,
  async fetch(...request) {
    const response = await fetch(...request);
    const run = response.headers.get('x-buffer-run-id');
    if (run) localStorage.setItem('run', run);
    return response;
  },
  prepareReconnectToStreamRequest: () => ({ api: `${root}/runs/${localStorage.getItem('run')}/stream?resume=1` }),
});

export function StockChat({ id }) {
  const { messages, sendMessage, status, error } = useChat({ id, transport, resume: localStorage.getItem('run') !== null });
  return (
    <form action={(data) => sendMessage({ text: data.get('text') })}>
      {messages.map(({ id, role, parts }) => <p key={id}>{role}: {parts.map((part) => part.text)}</p>)}
      <input name="text" />
      <output>{error?.message ?? status}</output>
    </form>
  );
}
