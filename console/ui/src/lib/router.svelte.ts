// The URL is the state: the path is the view, the query is what it shows.

const base = import.meta.env.BASE_URL;

export type Query = Record<string, string | number | undefined | null>;

class Route {
  /** Below the base, without slashes at its ends: "", "sessions", "users/alice". */
  path = $state('');
  query = $state.raw(new URLSearchParams());

  constructor() {
    this.read();
    addEventListener('popstate', () => this.read());
  }

  read() {
    this.path = location.pathname.startsWith(base) ? location.pathname.slice(base.length).replace(/\/+$/, '') : '';
    this.query = new URLSearchParams(location.search);
  }

  get view() {
    return this.path.split('/', 1)[0] ?? '';
  }

  /** What follows the view's name, decoded. */
  get rest() {
    const slash = this.path.indexOf('/');
    if (slash < 0) return '';
    try {
      return decodeURIComponent(this.path.slice(slash + 1));
    } catch {
      return this.path.slice(slash + 1);
    }
  }

  get(name: string) {
    return this.query.get(name) ?? '';
  }
}

export const route = new Route();

function queryText(query: Query | URLSearchParams) {
  const params = query instanceof URLSearchParams ? query : new URLSearchParams();
  if (!(query instanceof URLSearchParams)) {
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null && value !== '') params.set(name, String(value));
    }
  }
  const text = params.toString();
  return text ? `?${text}` : '';
}

/** The address of a view. */
export function to(view: string, query: Query | URLSearchParams = {}) {
  return base + view + queryText(query);
}

export function toUser(user: string, query: Query = {}) {
  return to(`users/${encodeURIComponent(user)}`, query);
}

export function go(address: string, replace = false) {
  if (address === location.pathname + location.search) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', address);
  const from = route.path;
  route.read();
  if (route.path !== from) scrollTo(0, 0);
}

/** Changes some of the query; a value of undefined or "" takes a name out of it. */
export function ask(changes: Query, replace = false) {
  const params = new URLSearchParams(route.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === '') params.delete(name);
    else params.set(name, String(value));
  }
  go(location.pathname + queryText(params), replace);
}

/** Follows links inside the console without loading the page again. */
export function follow(event: MouseEvent) {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin || !link.pathname.startsWith(base)) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
