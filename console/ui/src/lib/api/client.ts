// The one way to the server: JSON with the cookie of the sign-in, errors as Problem.

export type Params = Record<string, string | number | boolean | undefined | null>;

export interface Ask {
  query?: Params;
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

interface ProblemBody {
  code?: string;
  detail?: string;
  title?: string;
  field?: string;
  ended?: number;
}

/** What a request failed with. The code "offline" means that no answer came. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly field?: string,
    /** How many sessions had ended before a kick failed. */
    readonly ended?: number,
  ) {
    super(detail || code);
  }

  get offline() {
    return this.code === 'offline';
  }
}

/** Told of every answer, so that the frame knows how the connection is. */
export const watch: {
  answered: (response: Response) => void;
  failed: () => unknown;
  signedOut: () => void;
} = { answered() {}, failed() {}, signedOut() {} };

const patience = 20_000;

export function address(path: string, query: Params = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== '') params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

async function problemOf(response: Response) {
  const body: ProblemBody = await response.json().catch(() => ({}));
  return new Problem(response.status, body.code ?? `http_${response.status}`, body.detail ?? body.title ?? response.statusText, body.field, body.ended);
}

async function send(method: string, path: string, ask: Ask) {
  const headers: Record<string, string> = { Accept: 'application/json', ...ask.headers };
  if (method !== 'GET') {
    // No page of another origin can set either: the server takes changes with them only.
    headers['Content-Type'] = 'application/json';
    headers['Rollcall-Console'] = '1';
  }
  const limit = AbortSignal.timeout(patience);
  const init: RequestInit = {
    method,
    headers,
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    signal: ask.signal ? AbortSignal.any([ask.signal, limit]) : limit,
  };
  if (ask.body !== undefined) init.body = JSON.stringify(ask.body);
  try {
    const response = await fetch(address(path, ask.query), init);
    watch.answered(response);
    return response;
  } catch (error) {
    if (ask.signal?.aborted) throw error;
    watch.failed();
    throw new Problem(0, 'offline', '');
  }
}

export async function call<T>(method: string, path: string, ask: Ask = {}): Promise<T> {
  const response = await send(method, path, ask);
  if (!response.ok) {
    const problem = await problemOf(response);
    if (response.status === 401 && path !== '/v1/console/session') watch.signedOut();
    throw problem;
  }
  const text = await response.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

export const get = <T>(path: string, query: Params = {}, signal?: AbortSignal) => call<T>('GET', path, { query, ...(signal ? { signal } : {}) });
export const post = <T>(path: string, body: unknown, query: Params = {}) => call<T>('POST', path, { body, query });
/** For what takes no body. */
export const poke = <T>(path: string) => call<T>('POST', path);
export const put = <T>(path: string, body: unknown) => call<T>('PUT', path, { body });
export const patch = <T>(path: string, body: unknown) => call<T>('PATCH', path, { body });
export const del = <T>(path: string, query: Params = {}) => call<T>('DELETE', path, { query });

/** A part of a path, whatever it holds. */
export const part = encodeURIComponent;
