import type { Problem } from './api/index.js';

/** The code of an error; stable, for programs to look at. */
export type ErrorCode = Problem['code'];

/** Every error of this package: what the server refused, and what never reached it. */
export class RollcallError extends Error {
  override readonly name = 'RollcallError';

  /** What kind of error it is, such as `session_ended` or `rate_limited`. */
  readonly code: ErrorCode;
  /** The part of the request at fault, if there is one. */
  readonly field: string | undefined;
  /** What is wrong, in words. */
  readonly detail: string;
  /** The HTTP status; `undefined` if no answer came. */
  readonly status: number | undefined;
  /** How long the server asked to wait, in milliseconds. */
  readonly retryAfter: number | undefined;
  /**
   * The whole answer of the server, with `cause` and `reason` of a session that has
   * ended, and `conflicts` of a login that reached a limit.
   */
  readonly problem: Problem | undefined;

  constructor(code: ErrorCode, detail: string, more: ErrorDetails = {}) {
    super(more.field ? `${code}: ${more.field} ${detail}` : `${code}: ${detail}`, { cause: more.cause });
    this.code = code;
    this.detail = detail;
    this.field = more.field;
    this.status = more.status;
    this.retryAfter = more.retryAfter;
    this.problem = more.problem;
  }
}

/** What an error knows besides its code and words. */
export interface ErrorDetails {
  field?: string;
  status?: number;
  retryAfter?: number;
  problem?: Problem;
  /** The error below this one. */
  cause?: unknown;
}

/** Words an answer that is an error. The body is what its JSON or text holds. */
export function errorOf(response: Response, body: unknown): RollcallError {
  const more: ErrorDetails = { status: response.status };
  const wait = retryAfterOf(response);
  if (wait !== undefined) more.retryAfter = wait;
  if (isProblem(body)) {
    if (body.field) more.field = body.field;
    return new RollcallError(body.code, body.detail ?? body.title ?? '', { ...more, problem: body });
  }
  return new RollcallError(
    strangeCodes[response.status] ?? 'internal',
    `${response.url} answered ${response.status}, and not as Rollcall does: is the address right?`,
    more,
  );
}

const strangeCodes: Record<number, ErrorCode> = {
  401: 'unauthenticated',
  403: 'forbidden',
  413: 'too_large',
  429: 'rate_limited',
  502: 'unavailable',
  503: 'unavailable',
  504: 'unavailable',
};

function isProblem(body: unknown): body is Problem {
  return typeof body === 'object' && body !== null && typeof (body as Problem).code === 'string';
}

/** Reads Retry-After: seconds or a date, in milliseconds from now. */
export function retryAfterOf(response: Response): number | undefined {
  const text = response.headers.get('Retry-After');
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
