// The presence of a page, in as much of a browser as it needs. The script that is made of
// the same source is tested in a true one.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startPresence } from 'rollcall/presence';

import { happens, listening, page } from './browser.js';

/** Answers touches with a status, and notes what was asked. @param {() => number} status */
function touches(status) {
  /** @type {{ url: string, init: RequestInit | undefined }[]} */
  const asked = [];
  globalThis.fetch = async (input, init) => {
    asked.push({ url: String(input), init });
    return new Response(JSON.stringify({ code: 'session_ended', cause: 'kicked', reason: 'enough' }), { status: status() });
  };
  return asked;
}

test('a page beats when it is shown, says that it goes, and stops', () => {
  const asked = touches(() => 200);
  const stop = startPresence({ url: 'https://example.com/v1/touch', token: 'rct_1' });
  assert.equal(asked.length, 1);
  assert.deepEqual(asked[0]?.init?.headers, { Authorization: 'Bearer rct_1' });
  page.hidden = true;
  happens('visibilitychange');
  assert.equal(asked.length, 1);
  page.hidden = false;
  happens('visibilitychange');
  assert.equal(asked.length, 2);
  happens('pagehide');
  assert.deepEqual([asked[2]?.url, asked[2]?.init?.keepalive], ['https://example.com/v1/touch?leave=1', true]);
  happens('pageshow', { persisted: true });
  assert.equal(asked.length, 4);
  stop();
  assert.equal(listening(), 0);
  happens('pageshow', { persisted: true });
  assert.equal(asked.length, 4);
});

test('a page is told once how its session ended, and beats no more', async () => {
  const asked = touches(() => 401);
  const how = await new Promise((resolve) => {
    const stop = startPresence({ url: 'https://example.com/v1/touch', onEnded: (ended) => resolve((stop(), ended)) });
  });
  assert.deepEqual(how, { code: 'session_ended', cause: 'kicked', reason: 'enough' });
  assert.equal(asked[0]?.init?.credentials, 'include');
  happens('visibilitychange');
  assert.equal(asked.length, 1);
});
