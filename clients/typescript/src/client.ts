import * as api from './api/index.js';
import { createClient, createConfig, type Client } from './api/client/index.js';
import { errorOf, RollcallError } from './error.js';
import { EventReader, FriendReader, type FriendChange, type RollcallEvent } from './events.js';
import { walk } from './page.js';
import { retrying, type Attempts } from './retry.js';
import { endless } from './stream.js';

/** The body of an operation of the API. */
type BodyOf<T extends { body?: unknown }> = NonNullable<T['body']>;
/** The query of an operation of the API. */
type QueryOf<T extends { query?: unknown }> = NonNullable<T['query']>;

/** What a login says. */
export type Login = BodyOf<api.LoginData>;
/** What a kick ends. */
export type Kick = BodyOf<api.KickData>;
/** Which sessions a list has. */
export type SessionFilter = Omit<BodyOf<api.QuerySessionsData>, 'limit' | 'page' | 'cursor'>;
/** Which friends a list has. */
export type FriendFilter = Pick<QueryOf<api.ListOnlineFriendsData>, 'window' | 'sort'>;

/** How a client asks its server. */
export interface Options extends Partial<Attempts> {
  /** The address of the server, such as `https://rollcall.example.com`. */
  url: string | URL;
  /** The API key (`rck_…`). A page in a browser must not have one. */
  key?: string;
  /** Whether cookies are sent: `include` for a page of another origin. */
  credentials?: RequestCredentials;
}

/** What may be said of a single call. */
export interface CallOptions {
  /** Ends the call; it then throws the reason of the signal. */
  signal?: AbortSignal;
}

/** Where a stream of events begins, and what it tells. */
export interface EventOptions extends CallOptions {
  /** Only these types, such as `session.ended`. */
  types?: string[];
  /** Only events of this user. */
  user?: string;
  /** Only ends of this cause, such as `kicked`. */
  cause?: string;
  /** The id of the event to begin behind, or `start` for the oldest that is kept; default now. */
  after?: string;
}

/**
 * Asks a Rollcall server. Every method throws a `RollcallError` if it fails. For routes
 * that have no method here, give `client` to the functions of `rollcall/api`:
 * `stats({ client: rollcall.client })`.
 */
export class Rollcall {
  /** The client that was generated from the API's description, with this one's retries and errors. */
  readonly client: Client;
  private readonly attempts: Attempts;
  private readonly base: string;

  constructor(private readonly options: Options) {
    this.base = String(options.url).replace(/\/+$/, '');
    this.attempts = {
      attempts: options.attempts ?? 4,
      timeout: options.timeout ?? 30_000,
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    };
    this.client = createClient(
      createConfig({
        baseUrl: this.base,
        auth: options.key,
        fetch: retrying(this.attempts),
        redirect: 'error',
        throwOnError: true,
        ...(options.credentials && { credentials: options.credentials }),
      }),
    );
    this.client.interceptors.error.use((body, response) => errorOf(response, body));
  }

  /** Starts a session, and returns its token: once. It may be sent again without harm. */
  async login(login: Login, { signal, idempotencyKey = randomKey() }: CallOptions & { idempotencyKey?: string } = {}) {
    const headers = { 'Idempotency-Key': idempotencyKey };
    return (await api.login({ ...this.call(signal), body: login, headers })).data;
  }

  /** A sign of life of the session of a token. It throws `session_ended` if that has ended. */
  async touch(token: string, { signal }: CallOptions = {}): Promise<api.Session> {
    const { data } = await api.touch({ ...this.call(signal), auth: token });
    return sessionIn(data);
  }

  /** The session's client goes away and leaves it open, as a closed page does. */
  async leave(token: string, { signal }: CallOptions = {}): Promise<api.Session> {
    const { data } = await api.touch({ ...this.call(signal), auth: token, query: { leave: true } });
    return sessionIn(data);
  }

  /** The live session of a token, or of an id with the API key. It is no sign of life. */
  async verify(of: string | { session: string }, { signal }: CallOptions = {}): Promise<api.Session> {
    const who = typeof of === 'string' ? { auth: of } : { body: of };
    return sessionIn((await api.verifyById({ ...this.call(signal), ...who })).data);
  }

  /** Ends a session: a logout, unless cause says that it was kicked. */
  async end(session: string, { signal, cause }: CallOptions & { cause?: 'logout' | 'kicked' } = {}) {
    return (await api.endSession({ ...this.call(signal), path: { id: session }, ...(cause && { query: { cause } }) })).data;
  }

  /** Ends a session, those of a user, those that meet conditions, or all. */
  async kick(kick: Kick, { signal }: CallOptions = {}) {
    // Those who log in between two attempts at a kick of many were not meant.
    const repeatable = kick.dry_run || !(kick.all || kick.filter);
    const { data } = await api.kick({ ...this.call(signal), body: kick, fetch: retrying(this.attempts, () => repeatable) });
    return data;
  }

  /** Signs of life of up to 10,000 users. */
  async beat(users: string[], { signal }: CallOptions = {}): Promise<void> {
    await api.beat({ ...this.call(signal), body: { users } });
  }

  /** How many users are online; `window: 'all'` for all who are known. */
  async onlineCount({ signal, window }: CallOptions & { window?: string } = {}): Promise<number> {
    const { data } = await api.countOnline({ ...this.call(signal), ...(window && { query: { window } }) });
    return data.count;
  }

  /** The users who are online, last seen first, page by page as they are read. */
  online({ signal, window }: CallOptions & { window?: string } = {}): AsyncGenerator<api.Seen, void, undefined> {
    return walk(async (cursor) => {
      const query = { limit: 1000, ...(window && { window }), ...(cursor && { cursor }) };
      return (await api.listOnline({ ...this.call(signal), query })).data;
    });
  }

  /** The live sessions that meet all conditions, newest login first unless said. */
  sessions(filter: SessionFilter = {}, { signal }: CallOptions = {}): AsyncGenerator<api.Session, void, undefined> {
    return walk(async (cursor) => {
      const body = { ...filter, limit: 1000, ...(cursor && { cursor }) };
      return (await api.querySessions({ ...this.call(signal), body })).data;
    });
  }

  /** Whether users are online, in the order asked; up to 1,000. */
  async status(users: string[], { signal }: CallOptions = {}): Promise<api.Status[]> {
    return (await api.status({ ...this.call(signal), body: { users } })).data.items;
  }

  /** The friends of a user who are online, last seen first unless said. */
  friendsOnline(user: string, filter: FriendFilter = {}, { signal }: CallOptions = {}): AsyncGenerator<api.Friend, void, undefined> {
    return walk(async (cursor) => {
      const query = { ...filter, limit: 1000, ...(cursor && { cursor }) };
      return (await api.listOnlineFriends({ ...this.call(signal), path: { user: inPath(user) }, query })).data;
    });
  }

  /**
   * The friends of an end user who come and go, without end: first a `snapshot`, and a new
   * one after each connection that was lost. It ends after `session.ended`. The token may
   * come by its cookie instead, in a browser.
   */
  async *liveFriends({ token, signal }: CallOptions & { token?: string } = {}): AsyncGenerator<FriendChange, void, undefined> {
    const reader = new FriendReader();
    const source = this.source('/v1/me/friends/events', {}, () => this.authorization(token), signal);
    for await (const frame of endless(this.attempts, source, () => reader.connected())) {
      const change = reader.take(frame);
      if (change) yield change;
      if (change?.type === 'session.ended') return;
    }
  }

  /**
   * What happens, as it happens, without end. A connection that is lost is made again and
   * goes on behind the last event; events that come again by that are left out. `reset` is
   * told where events are missing.
   */
  async *events({ signal, after, ...filter }: EventOptions = {}): AsyncGenerator<RollcallEvent, void, undefined> {
    const reader = new EventReader(after ?? (await this.lastEvent(signal)));
    const headers = () => ({ ...this.authorization(), 'Last-Event-ID': reader.place });
    const { types, user, cause } = filter;
    const query = { ...(types && { types: types.join(',') }), ...(user && { user }), ...(cause && { cause }) };
    for await (const frame of endless(this.attempts, this.source('/v1/events', query, headers, signal))) {
      const event = reader.take(frame);
      if (event) yield event;
    }
  }

  /** The id of the newest event; events behind it are those from now on. */
  async lastEvent(signal?: AbortSignal): Promise<string> {
    const headers = { Accept: 'application/json' };
    const { data } = await this.client.get<{ 200: { next: string } }, unknown, true>({
      ...this.call(signal), url: '/v1/events', query: { limit: 1 }, headers, security: [{ scheme: 'bearer', type: 'http' }], parseAs: 'json',
    });
    return data.next;
  }

  private call(signal: AbortSignal | undefined) {
    return { client: this.client, throwOnError: true as const, ...(signal && { signal }) };
  }

  private authorization(credential = this.options.key): Record<string, string> {
    return credential ? { Authorization: `Bearer ${credential}` } : {};
  }

  private source(path: string, query: Record<string, string>, headers: () => Record<string, string>, signal: AbortSignal | undefined) {
    const asked = new URLSearchParams(query).toString();
    return { url: this.base + path + (asked && `?${asked}`), headers, signal, credentials: this.options.credentials };
  }
}

function sessionIn(data: unknown): api.Session {
  return (data as { session: api.Session }).session;
}

/** A retry key: 128 random bits. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
}

/** fetch takes these two for parts of the path itself, however they are written. */
function inPath(user: string): string {
  if (user === '.' || user === '..') {
    throw new RollcallError('invalid_argument', `cannot be ${user} in an address that fetch asks for`, { field: 'user' });
  }
  return user;
}
