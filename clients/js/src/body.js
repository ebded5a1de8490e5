// durableBody is the body of an answer that begins on a line and goes on over as many others as it
// takes: each cut is repaired from the byte after the last one delivered. It ends cleanly only as the run
// does, and else with a DurableError. An abort, or a reader that leaves, is no cut.
export function durableBody(line, run, slot) {
  const { marks, signal } = run;
  marks.of(line.response.headers.get('content-type'));
  const ending = new AbortController(); // for a reader that leaves as well, in the middle of a repair
  run.signal = ending.signal;
  let abort;

  const finish = () => {
    line.close();
    signal?.removeEventListener('abort', abort);
  };
  const leave = (reason) => {
    ending.abort(reason);
    finish();
    if (run.settings.cancel === 'run') run.cancel();
  };
  // next is the next bytes, or null at the end.
  const next = async () => {
    for (;;) {
      try {
        const { done, value } = await line.read();
        if (done) return null;
        if (value.length > 0) return value;
      } catch (cause) {
        line.close();
        ending.signal.throwIfAborted();
        line = await run.attach(cause);
      }
    }
  };

  return new ReadableStream({
    start(controller) {
      abort = () => {
        controller.error(signal.reason);
        leave(signal.reason);
      };
      if (signal?.aborted) abort(); // while the state was written
      signal?.addEventListener('abort', abort, { once: true });
    },
    // pull means that the reader has taken all that came before: only now that counts as reached.
    async pull(controller) {
      slot.reached(marks);
      let bytes;
      try {
        bytes = await next();
      } catch (error) {
        if (ending.signal.aborted) return; // the reader knows
        finish();
        throw error;
      }
      if (ending.signal.aborted) return;
      if (bytes) {
        run.backoff.progress();
        marks.add(bytes);
        controller.enqueue(bytes);
        return;
      }
      marks.end();
      slot.reached(marks);
      await slot.settled();
      finish();
      controller.close();
    },
    cancel: leave,
  }, { highWaterMark: 0 });
}
