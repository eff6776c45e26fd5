// Logs in, touches, lists and kicks by a client that was generated from the
// OpenAPI document. Prints "kicked" if all went as documented.

import { client } from './client/client.gen';
import { kick, listSessions, login, touch } from './client/sdk.gen';

declare const process: { env: Record<string, string | undefined>; exitCode: number };

function expect(fact: boolean, what: string, seen: unknown): asserts fact {
  if (!fact) throw new Error(`${what}: ${JSON.stringify(seen)}`);
}

async function main() {
  client.setConfig({ baseUrl: process.env.ROLLCALL_URL, auth: process.env.ROLLCALL_KEY });

  const begun = await login({ body: { user: 'alice', app: 'shop', attrs: { tier: 'gold' } } });
  expect(begun.data !== undefined, 'login', begun.error);
  const { session, token } = begun.data;

  const touched = await touch({ body: {}, auth: token });
  expect(touched.data !== undefined && 'session' in touched.data, 'touch', touched.error);
  expect(touched.data.session.id === session.id, 'the session touched', touched.data);

  const listed = await listSessions({ query: { user: 'alice', limit: 10 } });
  expect(listed.data?.items[0]?.id === session.id, 'list', listed.error ?? listed.data);

  const kicked = await kick({ body: { user: 'alice', reason: 'enough' } });
  expect(kicked.data?.sessions[0] === session.id, 'kick', kicked.error ?? kicked.data);

  const late = await touch({ body: {}, auth: token });
  expect(late.response.status === 401 && late.error?.code === 'session_ended', 'touch after the kick', late.error);
  expect(late.error.cause === 'kicked' && late.error.reason === 'enough', 'why it ended', late.error);
  console.log('kicked');
}

main().catch((err) => {
  console.error(err);
  process.exitCode = 1;
});
