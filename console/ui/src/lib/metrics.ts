// What the console takes from the metrics of the server, in the text form of Prometheus.

export interface Sampled {
  at: number;
  values: Map<string, number>;
}

export async function sampleMetrics(signal: AbortSignal): Promise<Sampled> {
  const response = await fetch('/metrics', { signal, credentials: 'same-origin', cache: 'no-store', headers: { Accept: 'text/plain' } });
  if (!response.ok) throw new Error(String(response.status));
  const values = new Map<string, number>();
  for (const line of (await response.text()).split('\n')) {
    if (!line.startsWith('rollcall_') && !line.startsWith('process_')) continue;
    const space = line.lastIndexOf(' ');
    values.set(line.slice(0, space), Number(line.slice(space + 1)));
  }
  return { at: performance.now(), values };
}

const label = (name: string, key: string) => new RegExp(`[{,]${key}="([^"]*)"`).exec(name)?.[1] ?? '';

/** The sum of all series of a name, or undefined. */
export function sumOf(s: Sampled, name: string): number | undefined {
  let sum: number | undefined;
  for (const [key, value] of s.values) if ((key === name || key.startsWith(`${name}{`)) && !Number.isNaN(value)) sum = (sum ?? 0) + value;
  return sum;
}

export interface Command {
  name: string;
  total: number;
  /** A second, between two samples. */
  rate: number;
  p50: number | undefined;
  p99: number | undefined;
}

/** Rates of commands between two samples, and percentiles of what came between. */
export function commands(old: Sampled, now: Sampled): Command[] {
  const seconds = Math.max(0.001, (now.at - old.at) / 1000);
  const found = new Map<string, { total: number; before: number; buckets: [number, number][]; all: [number, number][] }>();
  for (const [key, value] of now.values) {
    if (key.startsWith('rollcall_command_seconds_count')) {
      const it = entry(label(key, 'command'));
      it.total += value;
      it.before += old.values.get(key) ?? 0;
    } else if (key.startsWith('rollcall_command_seconds_bucket')) {
      const le = label(key, 'le');
      const bound = le === '+Inf' ? Infinity : Number(le);
      const it = entry(label(key, 'command'));
      it.buckets.push([bound, value - (old.values.get(key) ?? 0)]);
      it.all.push([bound, value]);
    }
  }
  function entry(name: string) {
    let it = found.get(name);
    if (!it) found.set(name, (it = { total: 0, before: 0, buckets: [], all: [] }));
    return it;
  }
  return [...found]
    .filter(([, c]) => c.total > 0)
    .map(([name, c]) => {
      const buckets = c.total - c.before >= 20 ? c.buckets : c.all;
      return { name, total: c.total, rate: (c.total - c.before) / seconds, p50: quantile(buckets, 0.5), p99: quantile(buckets, 0.99) };
    })
    .sort((a, b) => b.rate - a.rate || b.total - a.total);
}

/** In milliseconds, as far as the bounds of buckets tell. */
function quantile(buckets: [number, number][], q: number): number | undefined {
  const sums = new Map<number, number>();
  for (const [bound, n] of buckets) sums.set(bound, (sums.get(bound) ?? 0) + n);
  const sorted = [...sums].sort((a, b) => a[0] - b[0]);
  const total = sorted.at(-1)?.[1] ?? 0;
  if (!total) return undefined;
  let low = 0;
  let below = 0;
  for (const [bound, n] of sorted) {
    if (n >= q * total) {
      if (bound === Infinity) return low * 1000;
      return 1000 * (low + ((bound - low) * (q * total - below)) / Math.max(1, n - below));
    }
    low = bound;
    below = n;
  }
  return low * 1000;
}
