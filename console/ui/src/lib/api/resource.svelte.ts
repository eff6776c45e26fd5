import { untrack } from 'svelte';
import { Problem } from './client';

/** Something that is read from the server and read again. */
export class Resource<T> {
  data = $state.raw<T>();
  error = $state.raw<Problem>();
  /** Until the first answer to what is asked now. */
  loading = $state(true);
  /** Reads again, keeping what is shown until the answer comes. */
  again: () => void = () => {};
}

export interface ReadOptions {
  /** Milliseconds between two looks, while the page is seen. */
  every?: number;
  /** Whether what was there before is kept while something else is asked for. */
  keep?: boolean;
}

const retryAfter = 3000;

/**
 * Reads while the component lives. What the reader touches before its first await is
 * watched: when it changes, it reads again. A reader that returns undefined waits.
 */
export function read<T>(reader: (signal: AbortSignal) => Promise<T> | undefined, options: ReadOptions = {}): Resource<T> {
  const it = new Resource<T>();
  let running: AbortController | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;

  const begin = (fresh: boolean) => {
    running?.abort();
    clearTimeout(again);
    const own = (running = new AbortController());
    const asked = reader(own.signal);
    untrack(() => {
      if (fresh) {
        it.loading = true;
        if (!options.keep) it.data = undefined;
      }
      if (!asked) {
        it.loading = false;
        return;
      }
      asked.then(
        (data) => {
          if (own.signal.aborted) return;
          it.data = data;
          it.error = undefined;
          it.loading = false;
        },
        (error: unknown) => {
          if (own.signal.aborted) return;
          it.error = error instanceof Problem ? error : new Problem(0, 'client', String(error));
          // Without an answer there is nothing to show: it is asked again by itself.
          if (it.error.offline) again = setTimeout(() => begin(false), retryAfter);
          else it.loading = false;
        },
      );
    });
  };

  $effect(() => {
    begin(true);
    it.again = () => untrack(() => begin(false));
    const look = () => document.visibilityState === 'visible' && it.again();
    const timer = options.every ? setInterval(look, options.every) : undefined;
    return () => {
      clearInterval(timer);
      clearTimeout(again);
      running?.abort();
    };
  });
  return it;
}
