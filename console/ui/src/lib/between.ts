import type { Sample } from './api/types';

/**
 * Returns how many were online at a time, in milliseconds, between the samples of steps
 * that follow each other; null beside a gap. The curve goes through each sample without a
 * kink, and never above or below two neighbours (Fritsch and Butland, 1984).
 */
export function between(samples: Sample[], step: number, middle: number): (at: number) => number | null {
  const times = samples.map((s) => new Date(s.at).getTime() + middle);
  const joined = (n: number) => n >= 0 && n + 1 < times.length && times[n + 1]! - times[n]! <= step * 1.5;
  const rise = (n: number) => (samples[n + 1]!.online - samples[n]!.online) / (times[n + 1]! - times[n]!);

  // The slope at a sample: none at a peak, and elsewhere nearer to the flatter side.
  const slope = (n: number) => {
    if (!joined(n - 1) || !joined(n)) return joined(n) ? rise(n) : rise(n - 1);
    const [before, after] = [rise(n - 1), rise(n)];
    return before * after > 0 ? (2 * before * after) / (before + after) : 0;
  };

  return (at) => {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (times[mid]! <= at) low = mid + 1;
      else high = mid;
    }
    const n = low - 1;
    if (n < 0) return null;
    if (times[n] === at) return samples[n]!.online;
    if (!joined(n)) return null;
    const length = times[n + 1]! - times[n]!;
    const x = (at - times[n]!) / length;
    const [from, to] = [samples[n]!.online, samples[n + 1]!.online];
    return from + (to - from) * x * x * (3 - 2 * x) + length * x * (1 - x) * (slope(n) * (1 - x) - slope(n + 1) * x);
  };
}
