// Numbers, times and spans, in the reader's language and the server's time zone.
// Everything here reads the locale, so what is shown changes with it.

import { common } from './i18n/common';
import { i18n } from './i18n/index.svelte';
import { session } from './session.svelte';

const made = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat>();

function numbers(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = `n${i18n.locale}${JSON.stringify(options)}`;
  let format = made.get(key) as Intl.NumberFormat | undefined;
  if (!format) made.set(key, (format = new Intl.NumberFormat(i18n.locale, options)));
  return format;
}

function dates(options: Intl.DateTimeFormatOptions, zone = session.timezone): Intl.DateTimeFormat {
  const key = `d${i18n.locale}${zone}${JSON.stringify(options)}`;
  let format = made.get(key) as Intl.DateTimeFormat | undefined;
  if (!format) {
    try {
      format = new Intl.DateTimeFormat(i18n.locale, { ...options, timeZone: zone });
    } catch {
      format = new Intl.DateTimeFormat(i18n.locale, { ...options, timeZone: 'UTC' });
    }
    made.set(key, format);
  }
  return format;
}

type Instant = string | number | Date;

const ms = (at: Instant) => (typeof at === 'number' ? at : new Date(at).getTime());

export const number = (n: number) => numbers({ maximumFractionDigits: 0 }).format(n);
export const decimal = (n: number, digits = 1) => numbers({ maximumFractionDigits: digits }).format(n);
export const compact = (n: number) => (Math.abs(n) < 10_000 ? number(n) : numbers({ notation: 'compact', maximumFractionDigits: 1 }).format(n));
export const percent = (share: number, digits = 0) => numbers({ style: 'percent', maximumFractionDigits: digits }).format(share);
export const signedPercent = (share: number) => numbers({ style: 'percent', maximumFractionDigits: 0, signDisplay: 'exceptZero' }).format(share);

export function bytes(n: number) {
  const names = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte'];
  let step = 0;
  while (n >= 1000 && step < names.length - 1) {
    n /= 1000;
    step += 1;
  }
  return numbers({ style: 'unit', unit: names[step]!, unitDisplay: 'short', maximumFractionDigits: n < 10 && step > 0 ? 1 : 0 }).format(n);
}

const clockOptions: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' };

/** 12:04:11 */
export const time = (at: Instant) => dates(clockOptions).format(ms(at));
/** 12:04 */
export const minute = (at: Instant) => dates({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(ms(at));
/** The year, where it is not the one that it is now. */
const otherYear = (at: Instant): Intl.DateTimeFormatOptions => (civil(at).slice(0, 4) === civil(Date.now()).slice(0, 4) ? {} : { year: 'numeric' });
/** 3 Nov, 12:04:11 */
export const dateTime = (at: Instant) => dates({ ...otherYear(at), month: 'short', day: 'numeric', ...clockOptions }).format(ms(at));
/** With the year and the weekday, for what is shown on hover. */
export const exact = (at: Instant) =>
  `${dates({ weekday: 'short', year: 'numeric', month: 'short', day: 'numeric', ...clockOptions }).format(ms(at))} ${zoneName()}`;
/** 3 Nov 2026, of an instant. */
export const date = (at: Instant) => dates({ year: 'numeric', month: 'short', day: 'numeric' }).format(ms(at));
/** Tue 3 Nov, 12:04 */
export const weekdayMinute = (at: Instant) => dates({ ...otherYear(at), weekday: 'short', day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(ms(at));

/** Of a civil day, YYYY-MM-DD, which has no time zone. */
export const dayOf = (day: string) => new Date(`${day}T00:00:00Z`);
export const day = (text: string) => dates({ day: 'numeric', month: 'short', year: 'numeric' }, 'UTC').format(dayOf(text));
export const shortDay = (text: string) => dates({ day: 'numeric', month: 'short' }, 'UTC').format(dayOf(text));
export const longDay = (text: string) => dates({ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' }, 'UTC').format(dayOf(text));
export const month = (text: string) => dates({ month: 'short' }, 'UTC').format(dayOf(text));
export const monthYear = (text: string) => dates({ month: 'short', year: 'numeric' }, 'UTC').format(dayOf(text));
export const weekday = (text: string) => dates({ weekday: 'short' }, 'UTC').format(dayOf(text));

/** The civil day of an instant in the server's time zone. */
export function civil(at: Instant) {
  return new Intl.DateTimeFormat('sv-SE', { timeZone: safeZone() }).format(ms(at));
}

function safeZone() {
  try {
    new Intl.DateTimeFormat('en', { timeZone: session.timezone });
    return session.timezone;
  } catch {
    return 'UTC';
  }
}

export function shiftDay(text: string, days: number) {
  const at = dayOf(text);
  at.setUTCDate(at.getUTCDate() + days);
  return at.toISOString().slice(0, 10);
}

/** UTC+08:00 */
export function zoneName() {
  const name =
    new Intl.DateTimeFormat('en', { timeZone: safeZone(), timeZoneName: 'longOffset' }).formatToParts(Date.now()).find((p) => p.type === 'timeZoneName')?.value ??
    'UTC';
  return name.replace('GMT', 'UTC');
}

/** A length of time in its largest unit: 14 s, 3 min, 2 h, 5 d, 9 y. */
export function span(milliseconds: number) {
  const { units } = i18n.of(common);
  const s = Math.max(0, Math.floor(milliseconds / 1000));
  if (s < 60) return `${s}${units.gap}${units.s}`;
  if (s < 3600) return `${Math.floor(s / 60)}${units.gap}${units.min}`;
  if (s < 86_400) return `${Math.floor(s / 3600)}${units.gap}${units.h}`;
  if (s < 2 * 31_556_952) return `${number(Math.floor(s / 86_400))}${units.gap}${units.d}`;
  return `${number(Math.floor(s / 31_556_952))}${units.gap}${units.y}`;
}

/** A length of time in two units: 3 min 12 s, 2 h 5 min. */
export function longSpan(milliseconds: number) {
  const { units } = i18n.of(common);
  const s = Math.max(0, Math.floor(milliseconds / 1000));
  const part = (n: number, unit: string) => `${number(n)}${units.gap}${unit}`;
  if (s < 60) return part(s, units.s);
  const [big, small] =
    s < 3600
      ? [part(Math.floor(s / 60), units.min), s % 60 ? part(s % 60, units.s) : '']
      : s < 86_400
        ? [part(Math.floor(s / 3600), units.h), Math.floor((s % 3600) / 60) ? part(Math.floor((s % 3600) / 60), units.min) : '']
        : [part(Math.floor(s / 86_400), units.d), Math.floor((s % 86_400) / 3600) ? part(Math.floor((s % 86_400) / 3600), units.h) : ''];
  return small ? `${big} ${small}` : big;
}

export const ago = (at: Instant, now: number) => {
  const { ago, justNow } = i18n.of(common);
  const passed = now - ms(at);
  return passed < 1000 ? justNow : ago(span(passed));
};

/** A length in milliseconds, short: 0.4 ms, 12 ms, 1.2 s. */
export function milliseconds(n: number) {
  const { units } = i18n.of(common);
  if (n >= 1000) return `${decimal(n / 1000)}${units.gap}${units.s}`;
  return `${decimal(n, n < 10 ? 2 : 0)} ms`;
}
