const ends = ['completed', 'interrupted', 'failed', 'cancelled'];

// followRun shows a run to a page through EventSource, which reconnects by itself and loses nothing.
// url is that of the run's /events, with a token. onData gets the data of each event with its type and
// position, onEnd once what became of the run: {state, …}, or state `gone` where there is none to read.
// types are the names of the provider's events, where they have names. It returns what stops it.
export function followRun(url, { onData, onEnd = () => {}, types = ['message'], EventSource = globalThis.EventSource }) {
  const source = new EventSource(url);
  const position = ({ lastEventId }) => Number(lastEventId.slice(lastEventId.lastIndexOf(':') + 1));
  let leaving = false; // a page that unloads closes its sources with an error, which says nothing of the run
  const leave = () => { leaving = true; };
  const stop = () => {
    globalThis.removeEventListener?.('pagehide', leave);
    source.close();
  };
  const finish = (end) => { stop(); onEnd(end); };
  for (const type of types) {
    source.addEventListener(type, (event) => {
      if (event.data !== undefined) onData(event.data, { type, position: position(event) });
    });
  }
  for (const state of ends) {
    source.addEventListener(state, (event) => finish({ ...JSON.parse(event.data), state, position: position(event) }));
  }
  globalThis.addEventListener?.('pagehide', leave);
  source.addEventListener('error', (event) => { // has data where it is the provider's own event of that name
    if (event.data === undefined && source.readyState === 2 && !leaving) finish({ state: 'gone' });
  });
  return stop;
}
