// How the console hears of changes: a stream of events, or a look every five seconds
// where a stream does not come through. What comes is handed on a few times a second,
// however much comes.

import { get, watch } from './api/client';
import type { EventPage, RollEvent } from './api/types';
import { clock } from './clock.svelte';

const types = [
  'session.started',
  'session.ended',
  'user.online',
  'user.offline',
  'user.banned',
  'user.unbanned',
  'user.erased',
  'archive.completed',
  'archive.failed',
] as const;

export type EventType = (typeof types)[number];

/** What came since the last time: how many of each type, and the newest of them. */
export interface Batch {
  counts: Partial<Record<EventType, number>>;
  /** The newest, oldest first; no more than `most` of them. */
  events: RollEvent[];
  total: number;
  /** Events are missing: read everything anew. */
  reset: boolean;
}

const most = 200; // events of a batch that are looked into
const pace = 300; // milliseconds between two batches
const pollEvery = 5000;
const streamAgain = 30_000;
const replayed = 60_000; // what a page missed in so long comes as events; after more all is read anew

type State = 'connecting' | 'live' | 'polling' | 'away';

class Live {
  state = $state<State>('connecting');
  /** Since when the server does not answer, in milliseconds. */
  awaySince = $state(0);

  private source: EventSource | undefined;
  private timers = new Set<ReturnType<typeof setTimeout>>();
  private flushing: ReturnType<typeof setTimeout> | undefined;
  private last = '';
  private waiting: string[] = [];
  private counts: Batch['counts'] = {};
  private total = 0;
  private reset = false;
  private readonly readers = new Set<(batch: Batch) => void>();
  private fails = 0;
  private open = false;
  private hiddenAt = 0;
  private looking = false;

  start() {
    if (this.open) return;
    this.open = true;
    this.connect();
  }

  /** Learns from every request how the connection is. */
  constructor() {
    watch.failed = () => this.open && this.failed();
    const answered = watch.answered;
    watch.answered = (response) => {
      answered(response);
      if (response.status < 500) this.fails = 0;
      if (this.open && this.state === 'away') this.back();
    };
    addEventListener('offline', () => this.open && this.failed(true));
    addEventListener('online', () => this.connect());
    document.addEventListener('visibilitychange', () => this.seen());
  }

  /**
   * A page that nobody sees holds no stream: a browser opens six connections to a server
   * over HTTP/1.1, and the seventh tab would wait for ever. What came meanwhile is told
   * when it is seen again.
   */
  private seen() {
    if (document.visibilityState !== 'visible') {
      this.source?.close();
      this.source = undefined;
      this.hiddenAt = Date.now();
      return;
    }
    if (!this.last || Date.now() - this.hiddenAt > replayed) {
      this.last = '';
      this.tellReset();
    }
    this.connect();
  }

  stop() {
    this.open = false;
    this.source?.close();
    this.source = undefined;
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    this.state = 'connecting';
    this.awaySince = 0;
  }

  /** Hears batches until the function that is returned is called. */
  hear(reader: (batch: Batch) => void) {
    this.readers.add(reader);
    return () => this.readers.delete(reader);
  }

  private later(what: () => void, after: number) {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      if (this.open) what();
    }, after);
    this.timers.add(timer);
  }

  private connect() {
    if (!this.open || document.visibilityState !== 'visible') return;
    this.source?.close();
    const source = (this.source = new EventSource(this.last ? `/v1/events?after=${encodeURIComponent(this.last)}` : '/v1/events'));
    source.onopen = () => {
      const wasAway = this.state === 'away';
      this.state = 'live';
      this.awaySince = 0;
      this.fails = 0;
      if (wasAway) this.tellReset();
    };
    source.onerror = () => {
      if (this.source !== source) return;
      if (source.readyState === EventSource.CLOSED) {
        // The server or something on the way refuses streams.
        this.source = undefined;
        this.poll();
        this.later(() => this.connect(), streamAgain);
      } else {
        this.probe();
      }
    };
    for (const type of types) source.addEventListener(type, (event) => this.take(type, event as MessageEvent<string>));
    source.addEventListener('reset', () => this.tellReset());
  }

  private take(type: EventType, event: MessageEvent<string>) {
    if (event.lastEventId) this.last = event.lastEventId;
    this.counts[type] = (this.counts[type] ?? 0) + 1;
    this.total += 1;
    this.waiting.push(event.data);
    if (this.waiting.length > 2 * most) this.waiting.splice(0, this.waiting.length - most);
    this.soon();
  }

  private tellReset() {
    this.reset = true;
    this.soon();
  }

  private soon() {
    this.flushing ??= setTimeout(() => this.flush(), pace);
  }

  private flush() {
    this.flushing = undefined;
    const batch: Batch = {
      counts: this.counts,
      events: this.waiting.slice(-most).map((text) => JSON.parse(text) as RollEvent),
      total: this.total,
      reset: this.reset,
    };
    this.counts = {};
    this.waiting = [];
    this.total = 0;
    this.reset = false;
    for (const reader of this.readers) reader(batch);
  }

  /** After a stream broke: is the server away, or the stream alone? */
  private probe() {
    this.later(() => {
      if (this.state === 'live' && this.source?.readyState === EventSource.OPEN) return;
      get('/v1/online/count').then(
        () => {
          if (this.source?.readyState !== EventSource.OPEN && this.state !== 'polling') this.later(() => this.source?.readyState !== EventSource.OPEN && this.poll(), 2000);
        },
        () => {},
      );
    }, 500);
  }

  private async poll() {
    if (!this.open || this.looking || document.visibilityState !== 'visible' || this.source?.readyState === EventSource.OPEN) return;
    this.looking = true;
    try {
      const asked = this.last ? { after: this.last, limit: 1000 } : { limit: 1 };
      const page = await get<EventPage>('/v1/events', asked);
      this.state = 'polling';
      this.awaySince = 0;
      this.last = page.next;
      if (page.reset) this.tellReset();
      for (const event of asked.after ? page.items : []) {
        const type = event.type as EventType;
        this.counts[type] = (this.counts[type] ?? 0) + 1;
        this.total += 1;
        this.waiting.push(JSON.stringify(event));
      }
      if (page.items.length) this.soon();
    } catch {
      // failed() has been told.
    }
    this.looking = false;
    this.later(() => void this.poll(), pollEvery);
  }

  private failed(sure = false) {
    this.fails += 1;
    if (!sure && this.fails < 2 && this.state === 'live') {
      this.probe();
      return;
    }
    if (this.state === 'away') return;
    this.state = 'away';
    this.awaySince = clock.exact;
    this.knock();
  }

  /** While the server is away: is it back? */
  private knock() {
    this.later(() => {
      if (this.state !== 'away') return;
      get('/v1/online/count').then(
        () => {},
        () => this.knock(),
      );
    }, 2000);
  }

  private back() {
    this.state = 'connecting';
    this.awaySince = 0;
    this.tellReset();
    this.connect();
  }
}

export const live = new Live();

/**
 * Calls what at most once in `every` milliseconds, and once more after the last call.
 * cancel takes back what is still to come: a view that goes calls it.
 */
export function paced(what: () => void, every: number) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let next = 0;
  const call = () => {
    if (timer !== undefined) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        next = Date.now() + every;
        what();
      },
      Math.max(0, next - Date.now()),
    );
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}
