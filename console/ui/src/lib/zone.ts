// Times that a reader types are those of the server's zone, as all times that are shown.

const shapes = new Map<string, Intl.DateTimeFormat>();

/** 2026-11-22 23:46:00, as clocks in the zone show it. */
function wall(at: number, zone: string) {
  let shape = shapes.get(zone);
  if (!shape) {
    const parts = { year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const;
    try {
      shape = new Intl.DateTimeFormat('sv-SE', { ...parts, timeZone: zone });
    } catch {
      shape = new Intl.DateTimeFormat('sv-SE', { ...parts, timeZone: 'UTC' });
    }
    shapes.set(zone, shape);
  }
  return shape.format(at);
}

/** How far the zone's clocks are ahead of UTC at an instant, in milliseconds. */
function ahead(at: number, zone: string) {
  const second = Math.floor(at / 1000) * 1000;
  return Date.parse(`${wall(second, zone).replace(' ', 'T')}Z`) - second;
}

/**
 * The instant of a civil time such as 2026-11-22T23:46, or NaN. Of a time that clocks show
 * twice it is the first. One that they skip is read as if they had not been put forward.
 */
export function instantOf(civil: string, zone: string) {
  const text = /T\d\d:\d\d$/.test(civil) ? `${civil}:00` : civil;
  const asUTC = Date.parse(`${text}Z`);
  if (Number.isNaN(asUTC)) return NaN;
  const day = 86_400_000;
  // A zone has one of two offsets around a change: that of before it comes first.
  for (const near of [asUTC - day, asUTC + day]) {
    const at = asUTC - ahead(near, zone);
    if (ahead(at, zone) === asUTC - at) return at;
  }
  return asUTC - ahead(asUTC - day, zone);
}

/** The civil time of an instant, to the minute, as a field of date and time takes it. */
export const civilMinute = (at: number, zone: string) => wall(at, zone).slice(0, 16).replace(' ', 'T');
