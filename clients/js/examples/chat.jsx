// A chat of the AI SDK whose answers survive cuts and reloads; its state is in localStorage. The buffer
// stands before your own server: `spool serve --config` with
//
//   providers: { app: { base_url: "http://127.0.0.1:3000", dialect: generic, generates: true } }
import { useEffect } from 'react';
import { useChat } from '@ai-sdk/react';
import { createDurableTransport } from '@spool-dev/client';

const transport = createDurableTransport({ api: 'http://127.0.0.1:8787/app/api/chat', store: localStorage });

export function Chat({ id }) {
  const kept = JSON.parse(localStorage.getItem(`messages:${id}`) ?? '[]');
  const { messages, sendMessage, status, error, stop } = useChat({ id, messages: kept, transport, resume: true });
  useEffect(() => { // an answer is kept when it is whole: until then its run is read again
    if (status !== 'streaming') localStorage.setItem(`messages:${id}`, JSON.stringify(messages));
  }, [id, messages, status]);
  return (
    <form action={(data) => sendMessage({ text: data.get('text') })}>
      {messages.map(({ id, role, parts }) => <p key={id}>{role}: {parts.map((part) => part.text)}</p>)}
      <input name="text" />
      <button type="button" onClick={stop}>Stop</button>
      <output>{error?.message ?? status}</output>
    </form>
  );
}
