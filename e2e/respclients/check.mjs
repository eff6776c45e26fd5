// Uses the two common clients of Redis for Node as any program does, and ends with an error if
// an answer is not what a program would expect.
import assert from "node:assert/strict";
import { createClient } from "redis";
import { Redis } from "ioredis";

const port = Number(process.env.RESP_PORT);
const password = process.env.ROLLCALL_KEY;
const now = Math.floor(Date.now() / 1000);

for (const RESP of [2, 3]) {
  const client = createClient({ socket: { host: "127.0.0.1", port }, username: "any", password, RESP, name: "node-redis" });
  await client.connect();
  assert.equal(await client.sendCommand(["BEAT", "alice", "bob"]), 2);
  assert.equal(await client.zAdd("users", { score: now, value: `redis-${RESP}` }), 1);
  assert.ok(Math.abs((await client.zScore("users", `redis-${RESP}`)) - now) <= 60);
  assert.ok((await client.zCount("users", now - 300, "+inf")) >= 3);
  const scores = await client.zRangeWithScores("users", 0, -1);
  assert.ok(scores.some((s) => s.value === "alice" && s.score > 0));
  assert.equal(await client.sAdd(`user:${RESP}:friends`, ["alice", "dora"]), 2);
  assert.deepEqual([...(await client.sMembers(`user:${RESP}:friends`))].sort(), ["alice", "dora"]);
  const answers = await client
    .multi()
    .addCommand(["ZUNIONSTORE", "copy", "1", "users"])
    .zRemRangeByScore("copy", "-inf", now - 300)
    .addCommand(["ZINTERSTORE", "online", "2", "copy", `user:${RESP}:friends`])
    .zRange("online", 0, -1)
    .del(["copy", "online"])
    .exec();
  assert.deepEqual(answers[3], ["alice"]);
  await assert.rejects(client.set("a", "b"), /SET/);
  await client.close();
}

const io = new Redis({ host: "127.0.0.1", port, password, connectionName: "ioredis", maxRetriesPerRequest: 1 });
assert.equal(await io.ping(), "PONG");
assert.equal(await io.call("BEAT", "carol"), 1);
assert.equal(await io.zadd("users", now, "ioredis"), 1);
assert.ok((await io.zrevrange("users", 0, -1)).includes("ioredis"));
const piped = await io.pipeline().call("BEAT", "carol").zcard("users").exec();
assert.equal(piped[0][1], 1);
assert.ok(piped[1][1] >= 5);
await io.quit();
