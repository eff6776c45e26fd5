import { errorOf, RollcallError } from './error.js';
import { backoff, pause, spread, type Attempts } from './retry.js';
import { frames, type Frame } from './sse.js';

/** Where a stream comes from. */
export interface Source {
  url: string;
  /** The headers of each request; they may say where to go on. */
  headers: () => Record<string, string>;
  credentials: RequestCredentials | undefined;
  signal: AbortSignal | undefined;
}

const maxSilence = 60_000; // the server says something about every 15 s
const defaultRetry = 1_000;
const maxRetry = 60_000; // that a server may ask for, in either way

/**
 * Reads a stream without end, over one connection after another. It throws if the
 * server refuses, if it does not answer as often as attempts says, or the reason of the
 * signal. It calls `connected` at the begin of each connection.
 */
export async function* endless(o: Attempts, source: Source, connected: () => void = () => {}): AsyncGenerator<Frame, void, undefined> {
  let retry = defaultRetry;
  for (let failed = 0; ; ) {
    const connection = new Connection(o, source);
    let after = 0;
    try {
      connected();
      for await (const frame of connection.frames()) {
        failed = 0;
        if (frame.retry) retry = Math.min(frame.retry, maxRetry);
        yield frame;
      }
    } catch (error) {
      source.signal?.throwIfAborted();
      if (!passes(error) || failed + 1 >= o.attempts) throw error;
      after = Math.min(error.retryAfter ?? 0, maxRetry);
    } finally {
      connection.close();
    }
    if (connection.heard) failed = 0;
    failed++;
    await pause(spread(retry) + backoff(failed) + after, source.signal);
  }
}

/** Reports whether a failure may pass by itself. */
function passes(error: unknown): error is RollcallError {
  return error instanceof RollcallError && (error.code === 'unavailable' || error.code === 'rate_limited');
}

/** One connection of a stream. */
class Connection {
  heard = false;
  private readonly abort = new AbortController();
  private silence: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly o: Attempts,
    private readonly source: Source,
  ) {}

  async *frames(): AsyncGenerator<Frame, void, undefined> {
    const { url, headers, credentials, signal } = this.source;
    this.wait();
    try {
      const response = await this.o.fetch(url, {
        headers: { Accept: 'text/event-stream', ...headers() },
        signal: signal ? AbortSignal.any([signal, this.abort.signal]) : this.abort.signal,
        redirect: 'error',
        cache: 'no-store',
        ...(credentials && { credentials }),
      });
      if (!response.ok || !response.body) throw errorOf(response, await response.json().catch(() => undefined));
      yield* frames(response.body, () => {
        this.heard = true;
        this.wait();
      });
    } catch (error) {
      if (error instanceof RollcallError) throw error;
      throw new RollcallError('unavailable', `no answer from ${new URL(url).origin}`, { cause: error });
    }
  }

  /** Gives the server time for its next word. */
  private wait(): void {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.abort.abort(), maxSilence);
  }

  close(): void {
    clearTimeout(this.silence);
    this.abort.abort();
  }
}
