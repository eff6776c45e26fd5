import { RollcallError } from './error.js';

/** One event of a stream of server-sent events. */
export interface Frame {
  id: string;
  event: string;
  data: string;
  /** How long to wait before connecting again, in milliseconds. */
  retry: number | undefined;
}

const maxFrame = 1 << 20; // characters

/**
 * Reads the frames of a stream until it ends. It calls `heard` for everything that comes,
 * comments too.
 */
export async function* frames(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<Frame, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let frame = emptyFrame();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      text += decoder.decode(value, { stream: true });
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) {
        if (!addLine(frame, line.replace(/\r$/, ''))) continue;
        yield frame;
        frame = emptyFrame();
      }
      if (text.length + frame.data.length > maxFrame) {
        throw new RollcallError('internal', 'an event is larger than 1 MiB');
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

const emptyFrame = (): Frame => ({ id: '', event: '', data: '', retry: undefined });

/** Adds a line to a frame, and reports whether the frame ends with it. */
function addLine(frame: Frame, line: string): boolean {
  if (line === '') return true;
  const colon = line.indexOf(':');
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
  switch (name) { // a comment has no name
    case 'id':
      frame.id = value;
      break;
    case 'event':
      frame.event = value;
      break;
    case 'data':
      frame.data += frame.data === '' ? value : '\n' + value;
      break;
    case 'retry':
      if (/^\d+$/.test(value)) frame.retry = Number(value);
  }
  return false;
}
