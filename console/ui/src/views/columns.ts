// The columns of the list of sessions, and which of them the reader has chosen.
import { keep, kept } from '../lib/settings.svelte';

export const allColumns = ['user', 'name', 'kind', 'app', 'device', 'ip', 'login_at', 'seen_at', 'expires_at', 'attrs', 'id'] as const;
export type Column = (typeof allColumns)[number];

const usual: Column[] = ['user', 'app', 'device', 'ip', 'login_at', 'seen_at', 'expires_at'];

export function keptColumns(): Column[] {
  const names = kept('columns')?.split(',').filter((n): n is Column => (allColumns as readonly string[]).includes(n));
  return names?.length ? names : usual;
}

export const keepColumns = (columns: Column[]) => keep('columns', columns.join(','));
