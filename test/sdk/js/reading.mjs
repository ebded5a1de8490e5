// A Reading is what one client has seen of one stream. It is filled while the
// stream goes on, so that it tells how far the client came before an error.
export class Reading {
  events = 0;
  text = '';
  tools = '';
  finish = null;

  add({ text, tools, finish }) {
    this.events++;
    this.text += text ?? '';
    this.tools += tools ?? '';
    this.finish = finish ?? this.finish;
  }
}

// call renders a whole tool call the way in which the deltas of one add up.
export const call = (name, input) => name + (typeof input === 'string' ? input : JSON.stringify(input));
