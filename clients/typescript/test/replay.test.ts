/** ReplayFence: one use of a token in all instances; closed while the store is unavailable. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ReplayAsk, ReplayFence, type ReplayFenceOptions } from "@tidegate/client";
import {
  ADDRESS,
  checkClosed,
  environment,
  healthy,
  recorder,
  SILENT,
  selected,
  short,
} from "./conditions.js";
import { startProxy } from "./proxy.js";
import { startServer } from "./server.js";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const common = { scope: "refresh", log: SILENT };
const owner = (token: string): ReplayAsk => ({
  token,
  expiresAtMs: Date.now() + HOUR,
  address: ADDRESS,
  principal: "user_42",
});
const claim = async (fence: ReplayFence, token = "t-1", more: Partial<ReplayAsk> = {}) => {
  const verdict = await fence.claim({ ...owner(token), ...more });
  return verdict.allowed ? verdict.use : short(verdict);
};

test("the first use, a repeat within grace, and a replay that is remembered", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.url);
  let ahead = 0;
  const clock = () => Date.now() + ahead;
  const { hooks, decisions } = recorder();
  const instance = () =>
    new ReplayFence({ ...common, hooks, clock, guard: selected(environment(proxy.url), "replay") });
  const [one, another] = [instance(), instance()];
  assert.deepEqual([await claim(one), await claim(another), await claim(one)], ["first", "grace", "grace"]);
  ahead = 10_500;
  assert.deepEqual(
    [await claim(one), await claim(one), await claim(another)],
    Array(3).fill("token_replayed"),
  );
  assert.equal(await claim(one, "t-2"), "first");
  assert.equal(proxy.attempts, 6);
  assert.deepEqual(
    decisions.map(({ outcome, from }) => `${outcome} ${from}`),
    [
      "allowed store",
      "grace store",
      "grace store",
      "token_replayed store",
      "token_replayed memory",
      "token_replayed store",
      "allowed store",
    ],
  );
});

test("of fifty uses at once one is the first", async (t) => {
  const guard = await healthy(t, "replay");
  const instances = Array.from({ length: 5 }, () => new ReplayFence({ ...common, guard }));
  const uses = instances.flatMap((fence) => Array.from({ length: 10 }, () => claim(fence)));
  const tally = (await Promise.all(uses)).sort();
  assert.deepEqual(tally, ["first", ...Array(49).fill("grace")]);
});

test("a token that has ended, and one that would outlive its fence", async (t) => {
  const guard = await healthy(t, "replay");
  const fence = new ReplayFence({ ...common, guard });
  const ending = (inMs: number) => claim(fence, `t-${inMs}`, { expiresAtMs: Date.now() + inMs });
  const verdicts = await Promise.all([-1000, -1, Number.NaN, 121 * DAY, 119 * DAY, 500].map(ending));
  assert.deepEqual(verdicts, [
    "token_expired",
    "token_expired",
    "token_expired",
    "unavailable 30",
    "first",
    "first",
  ]);
});

test("20 a minute for each principal, 60 for each source, before the store is asked", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.url);
  // A whole minute, so that no window ends in between.
  const nowMs = Math.floor(Date.now() / 60_000) * 60_000;
  const fence = new ReplayFence({
    ...common,
    clock: () => nowMs,
    guard: selected(environment(proxy.url), "replay"),
  });
  const tally: Record<string, number> = {};
  for (let call = 0; call < 100; call++) {
    const use = await claim(fence, `t-${call}`, { principal: `user_${call % 4}` });
    tally[use] = (tally[use] ?? 0) + 1;
  }
  assert.deepEqual(tally, { first: 60, "rate_limited 60": 40 });
  assert.equal(await claim(fence, "t-x", { principal: "user_0", address: "192.0.2.8" }), "first");
  for (let call = 16; call < 20; call++) {
    assert.equal(await claim(fence, `t-y${call}`, { principal: "user_0", address: "192.0.2.8" }), "first");
  }
  assert.equal(await claim(fence, "t-z", { principal: "user_0", address: "192.0.2.8" }), "rate_limited 60");
  assert.equal(proxy.attempts, 65);
});

test("closed: 503 with Retry-After: 30", (t) =>
  checkClosed(t, "replay", (given) => new ReplayFence({ ...common, ...given }).claim(owner("t-1"))));

test("a fence that holds no time is no answer", async (t) => {
  const guard = await healthy(t, "replay");
  const set = { cmd: "kv.set", key: "use", value: "yes", ttl_ms: HOUR } as const;
  const steps = [{ partition: "replay:refresh:t-1", commands: [set] }];
  await guard.withFairness({ address: ADDRESS, principal: "p" }).run({ family: "replay", steps });
  assert.equal(await claim(new ReplayFence({ ...common, guard })), "unavailable 30");
});

test("a cut-over reads the legacy store until its deadline", async (t) => {
  const guard = await healthy(t, "replay");
  const legacy = new Set(["used"]);
  const reader = (token: string) => legacy.has(token);
  const broken = async () => Promise.reject(new Error("no connection"));
  const hanging = () => new Promise<boolean>(() => {});
  const [ahead, past] = [new Date(Date.now() + DAY), new Date(Date.now() - DAY)].map((date) =>
    date.toISOString(),
  );
  const table: [string, Partial<ReplayFenceOptions>, string, string][] = [
    ["in use there", { legacyUntil: ahead, legacyReader: reader }, "used", "token_replayed"],
    ["not in use there", { legacyUntil: ahead, legacyReader: reader }, "new-1", "first"],
    ["over", { legacyUntil: past, legacyReader: broken }, "new-2", "first"],
    ["over, without a reader", { legacyUntil: past }, "new-3", "first"],
    ["no cut-over", { legacyReader: broken }, "new-4", "first"],
    ["a read error", { legacyUntil: ahead, legacyReader: broken }, "new-5", "unavailable 30"],
    ["no answer in time", { legacyUntil: ahead, legacyReader: hanging }, "new-6", "unavailable 30"],
    ["no reader", { legacyUntil: ahead }, "new-7", "unavailable 30"],
    ["half a deadline", { legacyUntil: "2026-02-28", legacyReader: reader }, "new-8", "unavailable 30"],
    ["an empty deadline", { legacyUntil: "", legacyReader: reader }, "new-9", "unavailable 30"],
  ];
  for (const [name, options, token, expected] of table) {
    assert.equal(await claim(new ReplayFence({ ...common, guard, ...options }), token), expected, name);
  }
  // What fails closed claims nothing, so the token is still good afterwards.
  assert.equal(await claim(new ReplayFence({ ...common, guard }), "new-5"), "first");
});

test("a cut-over while the store is away: one line in the log, not one for each call", async (t) => {
  const server = await startServer(t);
  await server.control("stop", {});
  const lines: string[] = [];
  const log = { warn: (line: string) => lines.push(line), info: (line: string) => lines.push(line) };
  const cutover = { legacyUntil: new Date(Date.now() + DAY).toISOString(), legacyReader: () => false };
  const guard = selected(environment(server.url), "replay");
  const fence = new ReplayFence({ ...common, ...cutover, guard, log });
  for (let call = 0; call < 3; call++) assert.equal(await claim(fence), "unavailable 30");
  assert.equal(lines.length, 1, lines.join("\n"));
});

test("observe passes as a first use; not assigned, all pass", async (t) => {
  const guard = await healthy(t, "replay");
  const { hooks, decisions } = recorder();
  const fence = new ReplayFence({ ...common, guard, hooks, graceMs: 0, clock: ticking(), mode: "observe" });
  assert.deepEqual([await claim(fence), await claim(fence)], ["first", "first"]);
  assert.equal(await claim(new ReplayFence({ ...common, guard: "legacy", hooks })), "first");
  assert.deepEqual(
    decisions.map(({ outcome, from }) => `${outcome} ${from}`),
    ["allowed store", "token_replayed store", "allowed none"],
  );
});

/** A clock that is a second on whenever it is read. */
function ticking(): () => number {
  let nowMs = Date.now();
  return () => {
    nowMs += 1000;
    return nowMs;
  };
}
