// Makes a page a sign of life of its visitor's session. One tag does it:
//
//   <script src="https://rollcall.example.com/v1/presence.js" async></script>
//
// The session comes by its HttpOnly cookie, or as data-token="rct_…". A session that
// has ended raises "rollcall:ended" on the document, with {code, cause, reason}.

export {};

const script = document.currentScript as HTMLScriptElement;
const { token, url: path = "/v1/touch" } = script.dataset;
const url = new URL(path, script.src).href;

const visibleEvery = 60_000;
const hiddenEvery = 120_000;

// What tells the page, and the other tabs, how the session ended.
interface Ended {
  code: string;
  cause?: string;
  reason?: string;
}

const tabs = new BroadcastChannel(url);
let beating = false; // this tab beats, for all tabs of the browser
let ended = false;
let timer: number | undefined;
let release = () => {};
let queued: AbortController | undefined;

const send = (leave: boolean) =>
  fetch(leave ? url + "?leave=1" : url, {
    method: "POST",
    keepalive: leave,
    credentials: token ? "omit" : "include",
    headers: token ? { Authorization: "Bearer " + token } : {},
  });

const end = (how: Ended) => {
  ended = true;
  stop();
  document.dispatchEvent(new CustomEvent("rollcall:ended", { detail: how }));
};

const beat = async () => {
  clearTimeout(timer);
  timer = setTimeout(beat, document.hidden ? hiddenEvery : visibleEvery);
  try {
    const answer = await send(false);
    if (answer.status === 401 && !ended) {
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
  if (ended || beating) return;
  if (!navigator.locks) return begin(); // no secure context: each tab beats
  if (document.hidden) return wait();
  queued?.abort();
  void lock({ steal: true });
};

// Browsers that a program drives are nobody's presence.
if (!navigator.webdriver) {
  tabs.onmessage = (message) => ended || end(message.data);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    if (beating) void beat();
    else start();
  });
  // A page that goes says so, and lets another tab take over. Nothing is held while
  // a browser keeps it to come back to.
  addEventListener("pagehide", () => {
    if (beating) send(true).catch(() => {});
    stop();
  });
  addEventListener("pageshow", (event) => event.persisted && start());
  start();
}
