// As much of a browser as the presence of a page needs.

/** @type {Map<string, Set<(event: any) => void>>} */
const listeners = new Map();
/** @param {string} name @param {(event: any) => void} listener */
const addEventListener = (name, listener) => listeners.set(name, (listeners.get(name) ?? new Set()).add(listener));
/** @param {string} name @param {(event: any) => void} listener */
const removeEventListener = (name, listener) => listeners.get(name)?.delete(listener);

export const page = { hidden: false, addEventListener, removeEventListener };

Object.assign(globalThis, { document: page, addEventListener, removeEventListener });
Object.defineProperty(globalThis, 'navigator', { value: { webdriver: false }, configurable: true });

/** @param {string} name @param {unknown} [event] */
export function happens(name, event = {}) {
  for (const listener of listeners.get(name) ?? []) listener(event);
}

/** How many listeners there are. */
export const listening = () => [...listeners.values()].reduce((n, of) => n + of.size, 0);
