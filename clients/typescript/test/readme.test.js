// Runs the examples of README.md, from the first to the last, against the server that
// ROLLCALL_URL and ROLLCALL_KEY name.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { after, test } from 'node:test';

import './browser.js';

const folder = new URL('..', import.meta.url);
const made = new URL('readme-examples.mjs', folder);
after(() => rm(made, { force: true }));

test('the examples of the README run', { timeout: 60_000 }, async (t) => {
  t.mock.method(console, 'log', () => {});
  Object.defineProperty(globalThis, 'navigator', { value: { webdriver: true }, configurable: true });
  const text = await readFile(new URL('README.md', folder), 'utf8');
  const blocks = [...text.matchAll(/^```js\n(.*?)^```/gms)].map((block) => block[1]);
  assert.ok(blocks.length >= 8);
  assert.equal((text.match(/^```(js|text)$/gm) ?? []).length, (text.match(/^```\w+$/gm) ?? []).length, 'a block in another language is run by nobody');
  const code = blocks.join('\n').replaceAll('http://127.0.0.1:8080', process.env.ROLLCALL_URL ?? '');
  await writeFile(made, `${code}\nexport { data, receive, session, stop, user };\n`);
  const shown = await import(made.href);

  assert.equal(shown.user, 'alice');
  assert.equal(shown.data.count, 0, 'of days in the past');
  shown.stop();

  process.env.WEBHOOK_SECRET = 'whsec_c2VjcmV0';
  const now = Math.floor(Date.now() / 1000);
  const body = '{"type":"session.ended","timestamp":"2026-02-03T04:05:06Z","data":{}}';
  const signature = createHmac('sha256', 'secret').update(`m.${now}.${body}`).digest('base64');
  const headers = { 'webhook-id': 'm', 'webhook-timestamp': String(now), 'webhook-signature': `v1,${signature}` };
  const answer = await shown.receive(new Request('http://example.com', { method: 'POST', body, headers }));
  assert.equal(answer.status, 204);
});
