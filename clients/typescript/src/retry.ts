import { errorOf, RollcallError, retryAfterOf } from './error.js';

/** How often and how long a request is tried. */
export interface Attempts {
  /** How often a request is sent at most; default 4. */
  attempts: number;
  /** How long one attempt may take, in milliseconds; default 30,000. */
  timeout: number;
  /** What sends requests; default the global `fetch`. */
  fetch: typeof fetch;
}

const firstWait = 100;
const maxWait = 2_000;
const maxRetryAfter = 30_000;

/** Doubles with each attempt up to two seconds, spread over the upper half. */
export function backoff(attempt: number): number {
  return spread(Math.min(firstWait * 2 ** Math.min(attempt - 1, 10), maxWait));
}

/** A time in the upper half of a time, so that not everyone returns at once. */
export function spread(ms: number): number {
  return ms / 2 + (Math.random() * ms) / 2;
}

/** Waits, or throws the reason of the signal if that comes first. */
export function pause(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

// POSTs that may be sent twice: they only read, or do the same thing the second time.
const repeatable =
  /\/v1\/(touch|verify|beats|visits|sessions\/query|sessions\/[^/]+\/rotate|online\/(status|clear)|attendance\/marks|events\/tickets)$/;

/** Reports whether a request that may have been carried out can be sent again. */
export function mayRepeat(request: Request): boolean {
  return request.method !== 'POST' || request.headers.has('Idempotency-Key') || repeatable.test(new URL(request.url).pathname);
}

/**
 * Makes a fetch that tries again: after 429 and 503, minding Retry-After, and after a
 * connection that failed. A request that would do something else the second time is
 * tried again only after 429, as nothing was done then.
 */
export function retrying(o: Attempts, may: (request: Request) => boolean = mayRepeat): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    for (let attempt = 1; ; attempt++) {
      const outcome = await once(o, request);
      const again = attempt < o.attempts && (outcome.refused || (outcome.passing && may(request)));
      if (!again || outcome.after > maxRetryAfter) {
        if (outcome.response) return outcome.response;
        throw outcome.error;
      }
      await pause(backoff(attempt) + outcome.after, request.signal);
    }
  };
}

/** What came of one attempt, and what that says of another one. */
interface Outcome {
  response?: Response;
  error?: unknown;
  /** Nothing was done, and another attempt may be let in. */
  refused: boolean;
  /** The failure may pass; this attempt may have been carried out all the same. */
  passing: boolean;
  /** For so long the server asked to wait, in milliseconds. */
  after: number;
}

async function once(o: Attempts, request: Request): Promise<Outcome> {
  const late = AbortSignal.timeout(o.timeout);
  let response: Response;
  try {
    response = await o.fetch(request.clone(), { signal: AbortSignal.any([request.signal, late]) });
    response = await whole(response);
  } catch (error) {
    if (request.signal.aborted) throw request.signal.reason;
    const { origin } = new URL(request.url);
    return { error: new RollcallError('unavailable', `no answer from ${origin}`, { cause: error }), refused: false, passing: true, after: 0 };
  }
  const after = retryAfterOf(response) ?? 0;
  const passing = [502, 503, 504].includes(response.status) && !(await isFull(response));
  return { response, refused: response.status === 429, passing, after };
}

/** Reads an answer to its end, so that one that breaks off can be asked for again. */
async function whole(response: Response): Promise<Response> {
  const empty = response.status === 204 || response.status === 304;
  const read = new Response(empty ? null : await response.arrayBuffer(), response);
  Object.defineProperty(read, 'url', { value: response.url });
  return read;
}

/** Reports whether there is no room to write: that does not pass by itself. */
async function isFull(response: Response): Promise<boolean> {
  const body: unknown = await response.clone().json().catch(() => undefined);
  return errorOf(response, body).code === 'storage_full';
}
