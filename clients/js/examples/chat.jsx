// A chat of the AI SDK whose answers survive cuts and reloads; its state is in localStorage. The buffer
// stands before your own server: `spool serve --config` with
//
//   providers: { app: { base_url: "http://127.0.0.1:3000", dialect: generic, generates: true } }
import { useChat } from '@ai-sdk/react';
import { createDurableTransport } from '@spool-dev/client';

const transport = createDurableTransport({ api: 'http://127.0.0.1:8787/app/api/chat', store: localStorage });

export function Chat({ id }) {
  const { messages, sendMessage, stop } = useChat({ id, transport, resume: true });
  return (
    <form action={(data) => sendMessage({ text: data.get('text') })}>
      {messages.map(({ id, role, parts }) => <p key={id}>{role}: {parts.map((part) => part.text)}</p>)}
      <input name="text" />
      <button type="button" onClick={stop}>Stop</button>
    </form>
  );
}
