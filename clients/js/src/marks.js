const LF = 10, CR = 13;

// Marks counts an answer as its reader takes it: bytes are all of them, position is that of the first
// chunk that is not known to be whole, and mark is the byte where that begins. Chunks are events of an
// event stream, or lines; other bodies do not show theirs, and all of one is open until it ends.
export class Marks {
  #cut = () => {};
  #ends = 0; // line ends in a row
  #cr = false; // the byte before was one
  #due = false; // a chunk has ended on that CR, if no LF follows

  constructor({ position = 0, bytes = 0 } = {}) {
    this.position = position;
    this.bytes = this.mark = bytes;
  }

  // of says what body it is.
  of(contentType) {
    if (/event-stream/.test(contentType)) this.#cut = this.#event;
    if (/ndjson|jsonl|stream\+json/.test(contentType)) this.#cut = this.#line;
  }

  // add takes the next bytes.
  add(bytes) {
    for (let i = 0; i < bytes.length; i++) this.#cut(bytes[i], this.bytes + i);
    this.bytes += bytes.length;
  }

  // end says that the body is whole. What follows the last blank line is a chunk as well.
  end() {
    if (this.bytes > this.mark) this.#ended(this.bytes);
  }

  #ended(at) {
    this.position++;
    this.mark = at;
    this.#ends = 0;
    this.#due = false;
  }

  #line(byte, at) {
    if (byte === LF) this.#ended(at + 1);
  }

  // #event ends a chunk with a blank line: two line ends, each LF, CR or both.
  #event(byte, at) {
    const afterCR = this.#cr;
    this.#cr = byte === CR;
    if (afterCR && byte === LF) {
      if (this.#due) this.#ended(at + 1);
      return;
    }
    if (this.#due) this.#ended(at);
    if (byte !== LF && byte !== CR) {
      this.#ends = 0;
    } else if (++this.#ends === 2) {
      if (byte === LF) this.#ended(at + 1);
      else this.#due = true;
    }
  }
}
