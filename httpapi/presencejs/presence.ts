// Makes a page a sign of life of its visitor's session. One tag does it:
//
//   <script src="https://rollcall.example.com/v1/presence.js" async></script>
//
// The session comes by its HttpOnly cookie, or as data-token="rct_…". A session that
// has ended raises "rollcall:ended" on the document, with {code, cause, reason}. What it
// does is a module of the npm package too.

import { startPresence } from "../../clients/typescript/src/presence";

const script = document.currentScript as HTMLScriptElement;
const { token, url = "/v1/touch" } = script.dataset;

startPresence({
  url: new URL(url, script.src).href,
  token,
  onEnded: (detail) => document.dispatchEvent(new CustomEvent("rollcall:ended", { detail })),
});
