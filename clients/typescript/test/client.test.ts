/** The client against the real server: what it sends is understood, whatever fails is one error. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { GuardClient, operationId } from "@tidegate/client";
import { PEPPER, SECRET, startServer } from "./server.js";

test("every command", async (t) => {
  const server = await startServer(t);
  const client = new GuardClient(server.url, SECRET, PEPPER);
  const { steps } = await client.run({
    family: "proxy",
    mode: "independent",
    steps: [
      {
        partition: "everything",
        commands: [
          {
            cmd: "win.hit",
            windows: [{ key: "1m", limit: 5, period_ms: 60_000, algorithm: "bucket" }],
            cost: 2,
          },
          { cmd: "kv.set", key: "k", value: "v", ttl_ms: 60_000, mode: "nx", keep_ttl: false },
          { cmd: "kv.get", key: "k" },
          { cmd: "kv.expire", key: "k", ttl_ms: 5000 },
          { cmd: "kv.ttl", key: "k" },
          { cmd: "kv.del", key: "k" },
          { cmd: "kv.incr", key: "n", by: -2, ttl_ms: 60_000 },
          { cmd: "res.reserve", budgets: [{ key: "a", limit: 5, period_ms: 900_000 }], target: 0, cost: 1 },
        ],
      },
    ],
  });
  const [{ status, results }] = steps;
  assert.equal(status, "ok");
  assert(status === "ok");
  const [hit, set, get, expire, ttl, deleted, increment, reserve] = results;
  assert.deepEqual([hit.allowed, hit.windows[0]?.remaining], [true, 3]);
  assert.deepEqual([set.written, get.value, expire.updated, ttl.ttl_ms], [true, "v", true, 5000]);
  assert.deepEqual([deleted.deleted, increment.value], [true, -2]);
  assert(reserve.reserved && reserve.receipt !== undefined);
  const refund = { cmd: "res.refund", receipt: reserve.receipt } as const;
  const refunding = { family: "proxy", steps: [{ partition: "everything", commands: [refund] }] } as const;
  const refunded = await client.run(refunding);
  assert(refunded.steps[0].status === "ok");
  assert.deepEqual(refunded.steps[0].results, [{ refunded: true }]);
});

test("the same operation again is answered from the record, another one is a conflict", async (t) => {
  const server = await startServer(t);
  const client = new GuardClient(server.url, SECRET, PEPPER);
  const op = operationId();
  const request = (by: number) =>
    ({
      family: "proxy",
      op,
      steps: [{ partition: "p", commands: [{ cmd: "kv.incr", key: "n", by, ttl_ms: 60_000 }] }],
    }) as const;
  for (const replayed of [false, true, true]) {
    const { steps } = await client.run(request(1));
    assert.equal(steps[0].replayed, replayed);
    assert(steps[0].status === "ok");
    assert.equal(steps[0].results[0].value, 1);
  }
  await assert.rejects(client.run(request(2)), { name: "GuardUnavailable", reason: "conflict" });
});
