/** RouteLimiter: shared windows while the store answers, each instance's own while it doesn't. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { GuardClient, RouteLimiter, type RouteLimiterOptions } from "@tidegate/client";
import {
  ADDRESS,
  environment,
  healthy,
  recorder,
  SILENT,
  selected,
  short,
  unavailable,
} from "./conditions.js";
import { startProxy } from "./proxy.js";
import { PEPPER, SECRET, startServer } from "./server.js";

const HOUR = 3_600_000;
const two = { scope: "api", windows: [{ limit: 2, periodMs: HOUR }], log: SILENT };
const check = (limiter: RouteLimiter, address = ADDRESS) => limiter.check({ address }).then(short);

test("healthy: instances share the windows, callers have their own, a denial costs nothing again", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.url);
  const { hooks, decisions } = recorder();
  const fixed = { ...two, hooks, windows: [{ limit: 2, periodMs: HOUR, algorithm: "fixed" }] as const };
  const instance = () => new RouteLimiter({ ...fixed, guard: selected(environment(proxy.url), "proxy") });
  const [one, another] = [instance(), instance()];
  assert.deepEqual([await check(one), await check(another)], ["allowed", "allowed"]);
  for (let again = 0; again < 5; again++) {
    const verdict = await one.check({ address: `::ffff:${ADDRESS}` });
    assert(!verdict.allowed);
    assert.equal(verdict.refusal.status, 429);
    const headers = verdict.refusal.headers();
    assert.match(headers["ratelimit-policy"] ?? "", /^"1h";q=2;w=3600$/);
    assert.equal(headers.ratelimit, `"1h";r=0;t=${headers["retry-after"]}`);
  }
  assert.equal(proxy.attempts, 3, "blocked repeats asked the store");
  assert.deepEqual(
    decisions.map(({ outcome, from }) => `${outcome} ${from}`),
    ["allowed store", "allowed store", "rate_limited store", ...Array(4).fill("rate_limited memory")],
  );
  assert.equal(await check(one, "192.0.2.8"), "allowed");
  assert.equal(short(await one.check({ address: ADDRESS, principal: "user_42" })), "allowed");
});

test("unavailable, for whatever reason: the same limits here, as fixed windows that start at zero", async (t) => {
  for (const [condition, reason, guard] of await unavailable(t, "proxy")) {
    const { hooks, decisions } = recorder();
    // Five minutes before the window of this instance ends.
    const clock = () => 20 * HOUR - 300_000;
    const limiter = new RouteLimiter({ ...two, guard, hooks, clock });
    const verdicts = [await check(limiter), await check(limiter), await check(limiter), await check(limiter)];
    assert.deepEqual(verdicts, ["allowed", "allowed", "rate_limited 300", "rate_limited 300"], condition);
    assert.equal(await check(limiter, "192.0.2.8"), "allowed", condition);
    for (const { from, unavailable } of decisions) {
      assert.deepEqual([from, unavailable], ["instance", reason], condition);
    }
  }
});

test("healthy calls do not count for an outage, and the store decides again when it is back", async (t) => {
  const server = await startServer(t);
  const messages: string[] = [];
  const log = {
    warn: (text: string) => messages.push(`warn ${text}`),
    info: (text: string) => messages.push(`info ${text}`),
  };
  const limiter = new RouteLimiter({ ...two, log, guard: selected(environment(server.url), "proxy") });
  assert.equal(await check(limiter), "allowed");
  await server.control("stop", {});
  assert.deepEqual([await check(limiter), await check(limiter)], ["allowed", "allowed"]);
  assert.match(await check(limiter), /^rate_limited/);
  await server.control("resume", {});
  assert.equal(await check(limiter), "allowed", "one of two was spent in the store");
  assert.match(await check(limiter), /^rate_limited/);
  assert.deepEqual(messages, [
    "warn tidegate: the route limit api: the guard store is unavailable: an operator has stopped the guard store (stopped)",
    "info tidegate: the guard store is back for the route limit api",
  ]);
});

test("a denial is forgotten when its window has room again", async (t) => {
  const guard = await healthy(t, "proxy");
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const { hooks, decisions } = recorder();
  const limiter = new RouteLimiter({ ...two, guard, hooks, clock });
  for (let call = 0; call < 4; call++) await check(limiter);
  ahead = 2 * HOUR;
  await check(limiter);
  assert.deepEqual(
    decisions.map(({ from }) => from),
    ["store", "store", "store", "memory", "store"],
  );
});

test("observe passes, spends and tells", async (t) => {
  const guard = await healthy(t, "proxy");
  const { hooks, decisions } = recorder();
  const limiter = new RouteLimiter({ ...two, guard, hooks, mode: "observe" });
  for (let call = 0; call < 4; call++) assert.equal(await check(limiter), "allowed");
  assert.deepEqual(
    decisions.map(({ outcome, from, observed }) => `${outcome} ${from} ${observed}`),
    ["allowed store false", "allowed store false", "rate_limited store true", "rate_limited memory true"],
  );
  assert.match(await check(new RouteLimiter({ ...two, guard })), /^rate_limited/, "observing has spent them");
});

test("not assigned: the legacy path decides, and all pass without one", async () => {
  const { hooks, decisions } = recorder();
  const plain = new RouteLimiter({ ...two, guard: "legacy", hooks });
  const asked: unknown[] = [];
  const own = new RouteLimiter({
    ...two,
    guard: "legacy",
    hooks,
    legacy: (ask) => {
      asked.push(ask);
      return { allowed: true };
    },
  });
  assert.deepEqual([await check(plain), await check(own)], ["allowed", "allowed"]);
  assert.deepEqual(asked, [{ address: ADDRESS }]);
  assert.deepEqual(
    decisions.map(({ from }) => from),
    ["none", "legacy"],
  );
});

test("10 001 denials: 10 000 stay, the first is gone", async () => {
  let calls = 0;
  const fetch = async (_: string, init: RequestInit) => {
    calls++;
    const { op } = JSON.parse(new TextDecoder().decode(init.body as Uint8Array));
    const hit = {
      allowed: false,
      windows: [{ limit: 2, used: 2, remaining: 0, reset_ms: HOUR }],
      retry_after_ms: HOUR,
    };
    const step = { status: "denied", replayed: false, results: [hit] };
    return new Response(JSON.stringify({ op, now_ms: 1, denied: true, steps: [step] }));
  };
  const limiter = new RouteLimiter({
    ...two,
    guard: new GuardClient("https://guard.example", SECRET, PEPPER, { fetch, timeoutMs: 2000 }),
  });
  const address = (number: number) => `10.0.${number >> 8}.${number & 255}`;
  await check(limiter, address(0));
  for (let number = 1; number <= 10_000; number += 50) {
    await Promise.all(Array.from({ length: 50 }, (_, index) => check(limiter, address(number + index))));
  }
  assert.equal(calls, 10_001);
  for (const [number, cost] of [
    [1, 0],
    [10_000, 0],
    [5000, 0],
    [0, 1],
  ] as const) {
    calls = 0;
    await check(limiter, address(number));
    assert.equal(calls, cost, `${number}`);
  }
});

test("what can't be a limit is refused when it is made", () => {
  const table: Partial<RouteLimiterOptions>[] = [
    { scope: "" },
    { scope: "API" },
    { windows: [] },
    { windows: Array.from({ length: 5 }, (_, index) => ({ limit: 1, periodMs: 1000 * (index + 1) })) },
    { windows: [{ limit: 1, periodMs: 999 }] },
    { windows: [{ limit: -1, periodMs: 1000 }] },
    { windows: [{ limit: 1, periodMs: 61 * 24 * HOUR }] },
    {
      windows: [
        { limit: 1, periodMs: 1000 },
        { limit: 2, periodMs: 1000 },
      ],
    },
  ];
  for (const wrong of table) {
    assert.throws(
      () => new RouteLimiter({ ...two, guard: "legacy", ...wrong }),
      RangeError,
      JSON.stringify(wrong),
    );
  }
});
