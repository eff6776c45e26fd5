// The users behind a figure, worked out of the lists of who was there when.

import { get, Problem } from './api/client';
import type { ActivePage, EventPage, SeenPage } from './api/types';
import { dayOf, shiftDay } from './format';

export type Period = 'day' | 'week' | 'month';

/** More than this many users are not gone through in a browser. */
const most = 20_000;

/** The first day of the period that comes n periods after the one that begins with start. */
export function periodAfter(start: string, period: Period, n: number) {
  if (period === 'day') return shiftDay(start, n);
  if (period === 'week') return shiftDay(start, 7 * n);
  const at = dayOf(start);
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + n, 1)).toISOString().slice(0, 10);
}

export const lastDay = (start: string, period: Period) => shiftDay(periodAfter(start, period, 1), -1);

export interface Asked {
  from: string;
  to: string;
  kind?: string | undefined;
}

/** All who were there on any day of a range. */
export async function activeIn(asked: Asked, signal: AbortSignal): Promise<Set<string>> {
  const users = new Set<string>();
  let cursor: string | undefined;
  do {
    const page: ActivePage = await get<ActivePage>('/v1/attendance/active', { ...asked, limit: 1000, cursor }, signal);
    if (page.total > most) throw new Problem(0, 'too_many', '');
    for (const user of page.items) users.add(user);
    cursor = page.next;
  } while (cursor);
  return users;
}

/** All who were there before a day, as far back as one question reaches. */
const before = (day: string, kind: string | undefined, signal: AbortSignal) => activeIn({ from: shiftDay(day, -3650), to: shiftDay(day, -1), kind }, signal);

const without = (a: Set<string>, b: Set<string>) => [...a].filter((u) => !b.has(u));
const both = (a: Iterable<string>, b: Set<string>) => [...a].filter((u) => b.has(u));

export interface Cell {
  start: string;
  distance: number;
  period: Period;
  cohort: 'first' | 'recurring';
  measure: 'on' | 'on_or_after';
  kind?: string | undefined;
  to: string;
}

/** The users of a cohort who came back. */
export async function cohortUsers(c: Cell, signal: AbortSignal): Promise<string[]> {
  const { kind } = c;
  const members = await activeIn({ from: c.start, to: lastDay(c.start, c.period), kind }, signal);
  const cohort = c.cohort === 'first' ? without(members, await before(c.start, kind, signal)) : [...members];
  if (c.distance === 0) return cohort;
  const from = periodAfter(c.start, c.period, c.distance);
  return both(cohort, await activeIn({ from, to: c.measure === 'on' ? lastDay(from, c.period) : c.to, kind }, signal));
}

/** The users of a part of a period's life-cycle bar. */
export async function cycleUsers(part: 'new' | 'returning' | 'resurrecting' | 'dormant', start: string, period: Period, kind: string | undefined, signal: AbortSignal): Promise<string[]> {
  const prior = periodAfter(start, period, -1);
  const [now, then] = await Promise.all([activeIn({ from: start, to: lastDay(start, period), kind }, signal), activeIn({ from: prior, to: lastDay(prior, period), kind }, signal)]);
  if (part === 'dormant') return without(then, now);
  if (part === 'returning') return both(now, then);
  const fresh = without(now, then);
  const known = await before(prior, kind, signal);
  return fresh.filter((u) => known.has(u) === (part === 'resurrecting'));
}

/** The users who were there on exactly so many days of a range. */
export async function usersOfDays(asked: Asked, days: number, signal: AbortSignal): Promise<string[]> {
  const counts = new Map<string, number>();
  for (let day = asked.from; day <= asked.to; day = shiftDay(day, 1)) {
    for (const user of await activeIn({ from: day, to: day, kind: asked.kind }, signal)) counts.set(user, (counts.get(user) ?? 0) + 1);
  }
  return [...counts].filter(([, n]) => n === days).map(([user]) => user).sort();
}

/** How many pages of events are gone through for a moment of the past. */
const mostPages = 60;

/**
 * The users who were online at a moment, out of the events of coming and going since then:
 * those whose first one is that they went, and those who are online without one. A problem
 * "before_log" has the time at which the log begins.
 */
export async function onlineAt(at: number, signal: AbortSignal): Promise<string[]> {
  // Who is online comes first: who goes meanwhile is found among the events.
  const here = new Set<string>();
  let cursor: string | undefined;
  do {
    const page: SeenPage = await get<SeenPage>('/v1/online', { limit: 1000, cursor }, signal);
    if (page.total > most) throw new Problem(0, 'too_many', '');
    for (const s of page.items) here.add(s.user);
    cursor = page.next;
  } while (cursor);

  const first = new Map<string, boolean>(); // whether the first event after the moment is that the user went
  let after = 'start';
  let reaches = false;
  for (let n = 0; ; n += 1) {
    const page = await get<EventPage>('/v1/events', { after, types: 'user.online,user.offline', limit: 1000 }, signal);
    const oldest = page.items[0];
    if (!reaches && oldest) {
      if (new Date(oldest.at).getTime() > at) throw new Problem(0, 'before_log', oldest.at);
      reaches = true;
    }
    for (const e of page.items) {
      if (e.user && !first.has(e.user) && new Date(e.at).getTime() > at) first.set(e.user, e.type === 'user.offline');
    }
    if (!page.items.length || page.next === after) break;
    if (n >= mostPages) throw new Problem(0, 'too_many', '');
    after = page.next;
  }
  if (!reaches) throw new Problem(0, 'before_log', '');
  const found = [...first].filter(([, went]) => went).map(([user]) => user);
  for (const user of here) if (!first.has(user)) found.push(user);
  return found.sort();
}
