// Makes a page a sign of life of its visitor's session. One tab of a browser beats for
// all of them. The script /v1/presence.js of a server is made of this file.

/** What a page is a sign of life of. */
export interface PresenceOptions {
  /** The address of POST /v1/touch, or of a route of your own that passes it on. */
  url: string;
  /** The token of the session, if it does not come by its HttpOnly cookie. */
  token?: string | undefined;
  /** Is called once, in every tab, when the session has ended. */
  onEnded?: (how: Ended) => void;
}

/** How a session ended. */
export interface Ended {
  code: string;
  cause?: string;
  reason?: string;
}

const visibleEvery = 60_000;
const hiddenEvery = 120_000;

/**
 * Touches the session every minute while the page is visible, every two minutes while it
 * is hidden, and at once when it is shown. A page that goes says so. It returns what stops
 * that. Browsers that a program drives send nothing.
 */
export const startPresence = ({ url, token, onEnded }: PresenceOptions): (() => void) => {
  let over = navigator.webdriver; // nobody's presence
  let beating = false; // this tab beats, for all tabs of the browser
  let timer: ReturnType<typeof setTimeout> | undefined;
  let release = () => {};
  let queued: AbortController | undefined;
  const tabs = new BroadcastChannel(url);

  const send = (leave: boolean) =>
    fetch(leave ? url + '?leave=1' : url, {
      method: 'POST',
      keepalive: leave,
      credentials: token ? 'omit' : 'include',
      headers: token ? { Authorization: 'Bearer ' + token } : {},
    });

  const end = (how: Ended) => {
    over = true;
    stop();
    onEnded?.(how);
  };

  const beat = async () => {
    clearTimeout(timer);
    timer = setTimeout(beat, document.hidden ? hiddenEvery : visibleEvery);
    try {
      const answer = await send(false);
      if (answer.status === 401 && !over) {
        const { code, cause, reason } = await answer.json();
        tabs.postMessage({ code, cause, reason });
        end({ code, cause, reason });
      }
    } catch {
      // The network is away: the next beat tries again.
    }
  };

  const begin = () => {
    beating = true;
    void beat();
  };

  // A tab that beats holds a lock of the browser, and the others wait for it.
  const lock = (options: LockOptions) =>
    navigator.locks
      .request(url, options, () => {
        begin();
        return new Promise<void>((resolve) => (release = resolve));
      })
      .catch(() => {
        // A tab that was shown took the lock. One that gave up waiting is not beating.
        if (beating) {
          pause();
          wait();
        }
      });

  const wait = () => {
    queued = new AbortController();
    void lock({ signal: queued.signal });
  };

  const pause = () => {
    beating = false;
    clearTimeout(timer);
  };

  const stop = () => {
    pause();
    release();
    queued?.abort();
  };

  // The tab that was shown last beats: its timers are not held back.
  const start = () => {
    if (over || beating) return;
    if (!navigator.locks) return begin(); // no secure context: each tab beats
    if (document.hidden) return wait();
    queued?.abort();
    void lock({ steal: true });
  };

  const shown = () => {
    if (document.hidden) return;
    if (beating) void beat();
    else start();
  };

  // A page that goes says so, and lets another tab take over. Nothing is held while
  // a browser keeps it to come back to.
  const gone = () => {
    if (beating) send(true).catch(() => {});
    stop();
  };

  const back = (event: PageTransitionEvent) => event.persisted && start();

  tabs.onmessage = (message) => over || end(message.data);
  document.addEventListener('visibilitychange', shown);
  addEventListener('pagehide', gone);
  addEventListener('pageshow', back);
  start();
  return () => {
    over = true;
    stop();
    tabs.close();
    document.removeEventListener('visibilitychange', shown);
    removeEventListener('pagehide', gone);
    removeEventListener('pageshow', back);
  };
};
