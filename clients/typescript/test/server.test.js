// Against a server: ROLLCALL_URL and ROLLCALL_KEY, an admin key, name it.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Rollcall, RollcallError } from 'rollcall';
import { addFriend, getUser } from 'rollcall/api';

const url = process.env.ROLLCALL_URL ?? '';
const key = process.env.ROLLCALL_KEY ?? '';
const rollcall = new Rollcall({ url, key });
const limit = { timeout: 60_000 };

/** @template T @param {AsyncIterable<T>} list @returns {Promise<T[]>} */
async function all(list) {
  const out = [];
  for await (const item of list) out.push(item);
  return out;
}

/**
 * Reads a stream up to what is wanted.
 * @template T
 * @param {AsyncGenerator<T, void, undefined>} stream @param {(item: T) => boolean} wanted
 */
async function upTo(stream, wanted) {
  for (;;) {
    const { value, done } = await stream.next();
    assert.ok(!done && value, 'the stream ended');
    if (wanted(value)) return value;
  }
}

test('login, touch, verify, kick', limit, async () => {
  const { session, token } = await rollcall.login({ user: 'ann', device: 'web', attrs: { city: 'Ulm' } });
  assert.equal((await rollcall.touch(token)).id, session.id);
  assert.equal((await rollcall.verify(token)).user, 'ann');
  assert.equal((await rollcall.verify({ session: session.id })).id, session.id);
  assert.deepEqual((await all(rollcall.sessions({ users: ['ann'] }))).map((s) => s.id), [session.id]);
  assert.equal((await rollcall.kick({ user: 'ann', dry_run: true })).ended, 1);
  assert.equal((await rollcall.kick({ user: 'ann', reason: 'enough' })).ended, 1);
  const error = await rollcall.touch(token).then(() => undefined, (e) => e);
  assert.ok(error instanceof RollcallError);
  assert.deepEqual([error.code, error.problem?.cause, error.problem?.reason], ['session_ended', 'kicked', 'enough']);
});

test('a login under the same key is the same', limit, async () => {
  const login = { user: 'ben' };
  const [a, b] = [await rollcall.login(login, { idempotencyKey: 'once' }), await rollcall.login(login, { idempotencyKey: 'once' })];
  assert.deepEqual([a.session.id, a.token], [b.session.id, b.token]);
  await rollcall.end(a.session.id);
});

test('who is online', limit, async () => {
  const users = Array.from({ length: 1234 }, (_, i) => `many-${i}`);
  await rollcall.beat(users);
  assert.equal((await all(rollcall.online())).filter((s) => s.user.startsWith('many-')).length, users.length);
  assert.ok((await rollcall.onlineCount()) >= users.length);
  assert.ok((await rollcall.onlineCount({ window: 'all' })) >= users.length);
  assert.deepEqual((await rollcall.status(['many-1', 'nobody'])).map((s) => s.online), [true, false]);
});

test('friends online, and as they come and go', limit, async () => {
  const name = '多/ß ?';
  for (const friend of [name, 'dora']) await addFriend({ client: rollcall.client, path: { user: 'cleo', friend } });
  await rollcall.beat([name]);
  assert.deepEqual((await all(rollcall.friendsOnline('cleo'))).map((f) => f.user), [name]);
  assert.equal((await getUser({ client: rollcall.client, path: { user: name }, throwOnError: true })).data.online, true);

  const { token } = await rollcall.login({ user: 'cleo' });
  const live = new Rollcall({ url }).liveFriends({ token });
  const first = await upTo(live, (change) => change.type === 'snapshot');
  assert.deepEqual(first.type === 'snapshot' && first.friends.map((f) => f.user), [name]);
  await rollcall.beat(['dora']);
  await upTo(live, (change) => change.type === 'online' && change.user === 'dora');
  await rollcall.kick({ user: 'cleo', reason: 'late' });
  const last = await upTo(live, (change) => change.type === 'session.ended');
  assert.equal(last.type === 'session.ended' && last.cause, 'kicked');
  assert.deepEqual(await live.next(), { value: undefined, done: true });
});

test('events go on after connections that break', limit, async () => {
  let connections = 0;
  /** @type {AbortController | undefined} */
  let cut;
  /** @type {typeof fetch} */
  const breaking = (input, init) => {
    if (!String(input instanceof Request ? input.url : input).includes('types=session.')) return fetch(input, init);
    connections++;
    cut = new AbortController();
    return fetch(input, { ...init, signal: AbortSignal.any([cut.signal, ...(init?.signal ? [init.signal] : [])]) });
  };
  const stop = new AbortController();
  const events = new Rollcall({ url, key, fetch: breaking }).events({ user: 'eve', types: ['session.started', 'session.ended'], after: 'start', signal: stop.signal });
  /** @type {string[]} */
  const told = [];
  for (let i = 0; i < 2; i++) {
    const { session } = await rollcall.login({ user: 'eve' });
    await upTo(events, (e) => e.type === 'session.started' && e.session === session.id && told.push(e.id) > 0);
    cut?.abort();
    await rollcall.end(session.id);
    await upTo(events, (e) => e.type === 'session.ended' && e.session === session.id && told.push(e.id) > 0);
  }
  assert.equal(connections, 3);
  assert.equal(new Set(told).size, 4, 'no event came twice');
  stop.abort(new Error('enough'));
  await assert.rejects(events.next(), /enough/);
});
