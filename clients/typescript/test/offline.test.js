// What needs no server: a fetch of the test's own answers.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';

import { Rollcall, RollcallError, verifyWebhook } from 'rollcall';
import { stats } from 'rollcall/api';

/** @typedef {(request: Request) => Response | Promise<Response>} Answer */

/**
 * A client whose requests are answered one after the other, and what it has asked.
 * @param {Answer[]} answers
 */
function answered(...answers) {
  /** @type {Request[]} */
  const asked = [];
  /** @type {typeof globalThis.fetch} */
  const fetch = async (input, init) => {
    const request = new Request(input, init);
    asked.push(request);
    const answer = answers[Math.min(asked.length, answers.length) - 1];
    assert.ok(answer);
    return answer(request);
  };
  return { rollcall: new Rollcall({ url: 'http://rollcall.test/', key: 'rck_test', fetch }), asked };
}

/** @param {unknown} body @param {number} [status] @param {Record<string, string>} [headers] @returns {Answer} */
const json = (body, status = 200, headers = {}) => () =>
  new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } });

/** @param {string} code @param {number} status @param {Record<string, unknown>} [more] @param {Record<string, string>} [headers] */
const problem = (code, status, more = {}, headers = {}) =>
  json({ type: `urn:rollcall:error:${code}`, title: code, status, code, detail: `says ${code}`, ...more }, status, headers);

/** @type {Answer} */
const broken = () => {
  throw new TypeError('fetch failed');
};

/** @param {Promise<unknown>} promise @returns {Promise<RollcallError>} */
async function refusal(promise) {
  const error = await promise.then(() => undefined, (e) => e);
  assert.ok(error instanceof RollcallError, String(error));
  return error;
}

const session = { id: '01j1zk5v7q8r9s0t1v2w3x4y5z', user: 'alice' };

test('a login is sent again under one key', async () => {
  const { rollcall, asked } = answered(broken, problem('unavailable', 503), problem('rate_limited', 429), json({ session, token: 'rct_1' }, 201));
  assert.equal((await rollcall.login({ user: 'alice' })).token, 'rct_1');
  assert.equal(asked.length, 4);
  assert.deepEqual(new Set(asked.map((r) => r.headers.get('Idempotency-Key'))).size, 1);
  assert.equal(asked[0]?.headers.get('Authorization'), 'Bearer rck_test');
  assert.deepEqual(await asked[3]?.json(), { user: 'alice' });
});

test('what would do something else the second time is not sent again', async () => {
  const kickAll = answered(broken, json({ ended: 1, sessions: [] }));
  assert.equal((await refusal(kickAll.rollcall.kick({ all: true }))).code, 'unavailable');
  assert.equal(kickAll.asked.length, 1);
  const kickOne = answered(broken, json({ ended: 1, sessions: [] }));
  assert.equal((await kickOne.rollcall.kick({ user: 'alice' })).ended, 1);
  const refused = answered(problem('rate_limited', 429), json({ ended: 1, sessions: [] }));
  assert.equal((await refused.rollcall.kick({ all: true })).ended, 1, 'nothing was done the first time');
});

test('what does not pass by itself is not tried again', async () => {
  const full = answered(problem('storage_full', 503));
  assert.equal((await refusal(full.rollcall.beat(['alice']))).code, 'storage_full');
  assert.equal(full.asked.length, 1);
  const long = answered(problem('rate_limited', 429, {}, { 'Retry-After': '3600' }));
  assert.equal((await refusal(long.rollcall.beat(['alice']))).retryAfter, 3_600_000);
  assert.equal(long.asked.length, 1);
});

test('errors have the code, field and detail of the server', async () => {
  const { rollcall } = answered(problem('session_ended', 401, { cause: 'kicked', reason: 'enough' }));
  const error = await refusal(rollcall.touch('rct_1'));
  assert.deepEqual([error.code, error.status, error.problem?.cause, error.problem?.reason], ['session_ended', 401, 'kicked', 'enough']);
  const field = await refusal(answered(problem('invalid_argument', 400, { field: 'user' })).rollcall.status(['']));
  assert.deepEqual([field.field, field.detail, field.message], ['user', 'says invalid_argument', 'invalid_argument: user says invalid_argument']);
});

test('an answer that is not from Rollcall is told so', async () => {
  const { rollcall } = answered(() => new Response('<html>', { status: 404 }));
  const error = await refusal(rollcall.onlineCount());
  assert.equal(error.code, 'internal');
  assert.match(error.detail, /answered 404.*is the address right/);
});

test('functions of rollcall/api retry and fail alike', async () => {
  const { rollcall, asked } = answered(problem('unavailable', 503), problem('forbidden', 403));
  assert.equal((await refusal(stats({ client: rollcall.client }))).code, 'forbidden');
  assert.equal(asked.length, 2);
});

test('a list ends with an error when a cursor repeats', async () => {
  const { rollcall, asked } = answered(json({ items: [{ user: 'a' }], total: 9, next: 'x' }), json({ items: [{ user: 'b' }], total: 9, next: 'y' }), json({ items: [], total: 9, next: 'x' }));
  /** @type {string[]} */
  const users = [];
  const error = await refusal((async () => {
    for await (const seen of rollcall.online()) users.push(seen.user);
  })());
  assert.match(error.detail, /same cursor/);
  assert.deepEqual(users, ['a', 'b']);
  assert.ok(asked.length < 8);
  assert.equal(new URL(asked[1]?.url ?? '').searchParams.get('cursor'), 'x');
});

test('a signal ends a call with its reason, also while it waits', async () => {
  const stop = new AbortController();
  const { rollcall } = answered(() => {
    setTimeout(() => stop.abort(new Error('enough')), 0);
    return problem('unavailable', 503, {}, { 'Retry-After': '20' })(new Request('http://rollcall.test'));
  });
  await assert.rejects(rollcall.onlineCount({ signal: stop.signal }), /enough/);
});

/** @param {string} text @returns {Answer} */
const stream = (text) => () => new Response(new Blob([text]).stream(), { headers: { 'Content-Type': 'text/event-stream' } });

/** @param {string} id @param {string} user */
const event = (id, user) => `id: ${id}\nevent: user.online\ndata: ${JSON.stringify({ id, type: 'user.online', at: '2026-02-03T04:05:06.789Z', user })}\n\n`;

test('events go on behind the last one, and repeats are left out', async () => {
  const { rollcall, asked } = answered(
    json({ items: [], next: 'e0' }),
    stream(`: rollcall\nretry: 1\n\n${event('e1', 'alice')}${event('e2', 'bob')}`),
    problem('unavailable', 503),
    stream(`retry: 1\r\n\r\n${event('e2', 'bob')}${event('e3', 'carol').replaceAll('\n', '\r\n')}event: reset\ndata: {}\n\n${event('e2', 'bob')}`),
  );
  const told = [];
  for await (const e of rollcall.events({ types: ['user.online'], user: 'x' })) {
    told.push('user' in e ? e.user : e.type);
    if (told.length === 5) break;
  }
  assert.deepEqual(told, ['alice', 'bob', 'carol', 'reset', 'bob']);
  assert.deepEqual(asked.slice(1).map((r) => r.headers.get('Last-Event-ID')), ['e0', 'e2', 'e2']);
  assert.match(asked[1]?.url ?? '', /\/v1\/events\?types=user.online&user=x$/);
});

test('events end with an error when the server refuses, or stays away', async () => {
  const refused = answered(problem('forbidden', 403));
  assert.equal((await refusal(refused.rollcall.events({ after: 'start' }).next())).code, 'forbidden');
  const away = answered(broken);
  assert.equal((await refusal(away.rollcall.events({ after: 'start' }).next())).code, 'unavailable');
  assert.equal(away.asked.length, 4);
});

test('a stream waits a minute at most for what a server asks, as it does for its retry', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { rollcall, asked } = answered(problem('unavailable', 503, {}, { 'Retry-After': '999999' }), stream(event('e1', 'alice')));
  const first = rollcall.events({ after: 'start' }).next();
  while (asked.length < 1) await new Promise(setImmediate);
  for (let round = 0; round < 20; round++) await new Promise(setImmediate); // it has read the answer, and waits
  t.mock.timers.tick(59_000);
  for (let round = 0; round < 20; round++) await new Promise(setImmediate);
  assert.equal(asked.length, 1);
  t.mock.timers.tick(5_000); // more than a minute, and what is added so that not all come at once
  const { value } = await first;
  assert.equal(asked.length, 2);
  assert.equal(value?.type, 'user.online');
});

test('the parts of a snapshot come as one, and the end of the session is the last', async () => {
  const { rollcall } = answered(
    stream(`retry: 1\n\nevent: snapshot\ndata: {"items":[{"user":"lost"}],"complete":false}\n\n`),
    stream(
      `event: snapshot\ndata: {"items":[{"user":"bob"}],"complete":false}\n\nevent: snapshot\ndata: {"items":[{"user":"carol"}],"complete":true}\n\n` +
        `event: offline\ndata: {"user":"bob","at":"2026-02-03T04:05:06.789Z"}\n\nevent: session.ended\ndata: {"cause":"kicked"}\n\n`,
    ),
  );
  const told = [];
  for await (const change of rollcall.liveFriends({ token: 'rct_1' })) told.push(change);
  assert.deepEqual(told.map((c) => (c.type === 'snapshot' ? c.friends.map((f) => f.user) : c.type)), [['bob', 'carol'], 'offline', 'session.ended']);
});

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const now = Date.parse('2026-02-03T04:05:06Z');

/** @param {{ body?: string, key?: string, at?: number }} [change] */
function webhook({ body = '{"type":"session.ended","timestamp":"2026-02-03T04:05:06Z","data":{"user":"alice"}}', key = secret, at = now / 1000 } = {}) {
  const signature = createHmac('sha256', Buffer.from(key.slice('whsec_'.length), 'base64')).update(`msg_1.${at}.${body}`).digest('base64');
  return { body, headers: { 'Webhook-Id': 'msg_1', 'webhook-timestamp': String(at), 'webhook-signature': `v1,${signature}` } };
}

test('a webhook is believed that the secret signed', async () => {
  const { body, headers } = webhook();
  const said = await verifyWebhook(body, headers, secret, { now });
  assert.deepEqual(said, { id: 'msg_1', type: 'session.ended', timestamp: '2026-02-03T04:05:06Z', data: { user: 'alice' } });
  await verifyWebhook(new TextEncoder().encode(body), new Headers(headers), ['whsec_b3RoZXI=', secret], { now });
  await verifyWebhook(body, { ...headers, 'webhook-signature': `v1a,x v1,AAAA ${headers['webhook-signature']}` }, secret, { now });
});

test('a webhook is refused that is forged, changed, old or without a signature', async () => {
  const { body, headers } = webhook();
  const forged = webhook({ key: 'whsec_b3RoZXI=' });
  for (const [text, given, field] of /** @type {const} */ ([
    [body + ' ', headers, 'webhook-signature'],
    [forged.body, forged.headers, 'webhook-signature'],
    [body, { ...headers, 'webhook-signature': 'v1,%%% v2,AAAA' }, 'webhook-signature'],
    [body, { ...headers, 'webhook-signature': undefined }, 'webhook-signature'],
    [body, { ...headers, 'Webhook-Id': 'msg_2' }, 'webhook-signature'],
    [body, { ...headers, 'Webhook-Id': '' }, 'webhook-id'],
    [body, { ...headers, 'webhook-timestamp': 'now' }, 'webhook-timestamp'],
    [...Object.values(webhook({ at: now / 1000 - 301 })), 'webhook-timestamp'],
    [...Object.values(webhook({ at: now / 1000 + 301 })), 'webhook-timestamp'],
  ])) {
    const error = await refusal(verifyWebhook(String(text), /** @type {Record<string, string>} */ (given), secret, { now }));
    assert.deepEqual([error.code, error.field], ['unauthenticated', field]);
  }
  const bad = await refusal(verifyWebhook(body, headers, 'whsec_', { now }));
  assert.deepEqual([bad.code, bad.field], ['invalid_argument', 'secret']);
});

test('a tolerance or a time that is no number is refused, and lets no old webhook in', async () => {
  const { body, headers } = webhook({ at: 0 });
  for (const wrong of [NaN, Infinity, /** @type {any} */ ('soon'), /** @type {any} */ (null)]) {
    const tolerance = await refusal(verifyWebhook(body, headers, secret, { now, tolerance: wrong }));
    assert.deepEqual([tolerance.code, tolerance.field], ['invalid_argument', 'tolerance']);
    const time = await refusal(verifyWebhook(body, headers, secret, { now: wrong }));
    assert.deepEqual([time.code, time.field], ['invalid_argument', 'now']);
  }
});
