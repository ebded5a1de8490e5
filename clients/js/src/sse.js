// jsonEvents turns the bytes of an event stream into the JSON values of its data, less the closing [DONE].
export function jsonEvents() {
  const utf8 = new TextDecoder();
  let text = '';
  let data = [];
  const line = (line, controller) => {
    if (line.startsWith('data:')) {
      data.push(line.slice(line[5] === ' ' ? 6 : 5));
    } else if (line === '' && data.length > 0) {
      const event = data.join('\n');
      data = [];
      if (event !== '[DONE]') controller.enqueue(JSON.parse(event));
    }
  };
  return new TransformStream({
    transform(bytes, controller) {
      text += utf8.decode(bytes, { stream: true });
      const lines = text.split(/\r\n|\n|\r(?!$)/);
      text = lines.pop();
      for (const each of lines) line(each, controller);
    },
    flush(controller) {
      for (const each of [...text.split(/\r\n|\n|\r/), '']) line(each, controller);
    },
  });
}
