// A fetch whose streams mend themselves: each cut is resumed through Cloudflare's
// own client (npm workers-ai-provider), which asks for
// {root}/ai-gateway/gateways/{gateway}/run/{id}/resume?from={events so far}.
import { createResumableStream } from 'workers-ai-provider';

export function resumingFetch(root, onReconnect) {
  const binding = {
    fetch(address, init) {
      const { pathname, search } = new URL(address);
      return fetch(root + pathname + search, init);
    },
  };
  return async (input, init) => {
    const answer = await fetch(input, init);
    const runId = answer.headers.get('cf-aig-run-id');
    if (!runId || !answer.body) return answer;
    const body = createResumableStream({ binding, gateway: 'lab', runId, initial: answer.body, signal: init?.signal, onReconnect });
    return new Response(body, { status: answer.status, headers: answer.headers });
  };
}
