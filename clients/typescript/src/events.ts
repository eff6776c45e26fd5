import type { Event, Friend } from './api/index.js';
import type { Frame } from './sse.js';

/** Events are missing: they are no longer kept, or the store is another one. Read the lists anew. */
export interface Reset {
  type: 'reset';
}

/** What a stream of events tells. */
export type RollcallEvent = Event | Reset;

/** What happens among the friends of a user. */
export type FriendChange =
  | { type: 'snapshot'; friends: Friend[] }
  | { type: 'online' | 'offline'; user: string; at: string }
  | { type: 'session.ended'; at?: string; cause: string; reason?: string };

/** How many ids are remembered: a resume may repeat the last seconds. */
const keptIds = 4096;

/** Tells events that come again from new ones, and knows where to go on. */
export class EventReader {
  private told = new Set<string>();

  constructor(public place: string) {}

  /** Takes a frame, and returns the event in it if that is new. */
  take(frame: Frame): RollcallEvent | undefined {
    if (frame.id) this.place = frame.id;
    if (frame.event === 'reset') {
      this.told.clear();
      return { type: 'reset' };
    }
    if (frame.data === '') return undefined;
    const event = JSON.parse(frame.data) as Event;
    if (this.told.has(event.id)) return undefined;
    this.told.add(event.id);
    if (this.told.size > keptIds) this.told.delete(this.told.values().next().value!);
    return event;
  }
}

/** Puts the parts of a snapshot together. */
export class FriendReader {
  private parts: Friend[] = [];

  /** A connection begins, and with it a new snapshot. */
  connected(): void {
    this.parts = [];
  }

  /** Takes a frame, and returns what it tells, if that is whole. */
  take(frame: Frame): FriendChange | undefined {
    if (frame.data === '') return undefined;
    const data = JSON.parse(frame.data);
    switch (frame.event) {
      case 'snapshot':
        this.parts.push(...(data.items as Friend[]));
        return data.complete ? { type: 'snapshot', friends: this.parts } : undefined;
      case 'online':
      case 'offline':
      case 'session.ended':
        return { type: frame.event, ...data };
    }
    return undefined; // of a newer server
  }
}
