// The conditions on sessions that an address of the console may have.

import type { SessionPage } from './api/types';
import { get } from './api/client';

export const filterNames = ['user', 'kind', 'app', 'device', 'ip', 'name', 'login_after', 'login_before', 'seen_within'] as const;
export type FilterName = (typeof filterNames)[number];
export type Filters = Record<string, string>;

/** The conditions in a query, attributes among them. */
export function filtersOf(query: URLSearchParams): Filters {
  const found: Filters = {};
  for (const [name, value] of query) {
    if (value && ((filterNames as readonly string[]).includes(name) || (name.startsWith('attr.') && name.length > 5))) found[name] = value;
  }
  return found;
}

/** The range that the beginning of an address stands for; "" if the text is none. */
export function rangeOf(text: string): string {
  if (/^\d{1,3}(\.\d{1,3}){3}(\/\d{1,2})?$/.test(text)) return text;
  const four = /^(\d{1,3}(?:\.\d{1,3}){0,2})\.?$/.exec(text);
  if (four?.[1] && text.includes('.')) {
    const parts = four[1].split('.');
    return `${[...parts, '0', '0', '0'].slice(0, 4).join('.')}/${8 * parts.length}`;
  }
  if (!text.includes(':') || !/^[0-9a-f:]+(\/\d{1,3})?$/i.test(text)) return '';
  if (text.includes('::') || text.includes('/')) return text;
  const parts = text.split(':').filter(Boolean);
  return parts.length >= 8 ? text : `${parts.join(':')}::/${16 * parts.length}`;
}

/**
 * What a search means beside conditions: an address, else a name's beginning or a
 * user's whole id, whichever finds more.
 */
export async function meaningOf(text: string, beside: Filters, signal: AbortSignal): Promise<Filters> {
  const range = rangeOf(text);
  if (range) return { ip: range };
  const total = (more: Filters) => get<SessionPage>('/v1/sessions', { ...beside, ...more, limit: 0 }, signal).then((p) => p.total);
  const [user, name] = await Promise.all([beside.user ? 0 : total({ user: text }), beside.name ? 0 : total({ name: text })]);
  return user > name ? { user: text } : { name: text };
}
