// Who looks at the console.

import { call, Problem, watch } from './api/client';
import type { ConsoleSession, ConsoleState, Role } from './api/types';
import { clock } from './clock.svelte';
import { live } from './live.svelte';

const ranks: Record<Role, number> = { reader: 0, writer: 1, admin: 2 };
const path = '/v1/console/session';

class Session {
  /** undefined until it is known, null when nobody is signed in. */
  who = $state.raw<ConsoleSession | null>();
  /** Why the sign-in view shows: the link failed, or the sign-in ended. */
  problem = $state.raw<Problem>();
  ended = $state(false);
  /** A trusted proxy names somebody who may sign in. */
  proxied = $state(false);

  /** Asks who is signed in, after trying the one-time link in the address. */
  async begin() {
    watch.signedOut = () => {
      if (this.who) {
        this.who = null;
        this.ended = true;
      }
    };
    const link = takeLink();
    if (link) {
      await this.signIn({ link });
      if (this.who) return;
    }
    try {
      const state = await call<ConsoleState>('GET', path);
      this.proxied = state.proxy ?? false;
      if (this.proxied && !this.problem) await this.signIn({ proxy: true });
      else this.who = state.session ?? null;
    } catch (error) {
      this.problem = error as Problem;
      setTimeout(() => void this.begin(), 3000);
    }
  }

  async signIn(how: { link: string } | { key: string } | { proxy: true }) {
    this.problem = undefined;
    try {
      this.who = await call<ConsoleSession>('POST', path, { body: how });
      this.ended = false;
    } catch (error) {
      this.problem = error as Problem;
      this.who = null;
    }
  }

  async signOut() {
    live.stop(); // before the server cuts it
    await call('DELETE', path).catch(() => {});
    this.who = null;
    this.ended = false;
    this.problem = undefined;
  }

  may(role: Role) {
    return this.who ? ranks[this.who.role] >= ranks[role] : false;
  }

  /** Whether a program needs an API key here. */
  get keyed() {
    return this.who?.by !== 'off';
  }

  get archived() {
    return this.who?.server.archive ?? false;
  }

  get timezone() {
    return this.who?.server.timezone || 'UTC';
  }

  get window() {
    return this.who?.server.window_seconds ?? 300;
  }
}

/** The one-time link's secret, which leaves the address at once. */
function takeLink() {
  const found = /^#link=(.+)$/.exec(location.hash);
  if (!found?.[1]) return '';
  history.replaceState(null, '', location.pathname + location.search);
  try {
    return decodeURIComponent(found[1]);
  } catch {
    return found[1];
  }
}

export const session = new Session();
watch.answered = (response) => clock.learn(response);
