import { RollcallError } from './error.js';

/** A page of a list. */
export interface Page<T> {
  items: T[];
  next?: string;
}

/**
 * Follows a list's cursors, page by page. A cursor that comes again would make the
 * list endless: that is an error.
 */
export async function* walk<T>(ask: (cursor: string | undefined) => Promise<Page<T>>): AsyncGenerator<T, void, undefined> {
  const circle = new Circle();
  for (let cursor: string | undefined; ; ) {
    const page = await ask(cursor);
    yield* page.items;
    if (!page.next) return;
    if (circle.closes(page.next)) {
      throw new RollcallError('internal', 'the server gave the same cursor again: the list would never end');
    }
    cursor = page.next;
  }
}

/**
 * Notices that a row of cursors goes round, in constant space: it compares each with
 * one that stood at a power of two (Brent, 1980).
 */
class Circle {
  private mark = '';
  private steps = 0;
  private upTo = 0;

  closes(cursor: string): boolean {
    if (cursor === this.mark) return true;
    if (this.steps === this.upTo) {
      this.mark = cursor;
      this.steps = 0;
      this.upTo = Math.max(1, 2 * this.upTo);
    }
    this.steps++;
    return false;
  }
}
