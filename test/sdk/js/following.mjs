// What clients need that follow a run through /events.

// start makes a call, leaves it at once, and returns where at another root its events are, with a token
// as pages have one.
export async function start(base, path, body, root) {
  const leave = new AbortController();
  const { headers, status } = await fetch(base + path, {
    method: 'POST', signal: leave.signal, body: JSON.stringify({ ...body, stream: true }),
    headers: { 'content-type': 'application/json', 'x-buffer-mint-token': '10m' },
  });
  leave.abort();
  const token = headers.get('x-buffer-token');
  if (!token) throw new Over(`the call: status ${status}`);
  return `${root}/runs/${headers.get('x-buffer-run-id')}/events?token=${token}`;
}

// Over is an error after which nobody should come back.
export class Over extends Error {}

// Order checks that events come once each and in order, whatever was cut between them.
export class Order {
  next = 0;

  take(id) {
    if (!id.endsWith(`:${this.next}`)) throw new Over(`event ${id} where ${this.next} was to come`);
    this.next++;
  }
}
