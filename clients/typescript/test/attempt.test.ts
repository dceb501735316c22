/** AttemptLimiter: reserved before the check, given back after a success; closed while the store is unavailable. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type AttemptAsk, AttemptLimiter, type AttemptLimiterOptions } from "@tidegate/client";
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

const QUARTER = 900_000;
const common = {
  scope: "login",
  log: SILENT,
  source: { limit: 10, periodMs: QUARTER },
  target: { limit: 3, periodMs: QUARTER },
};
const ask = (target = "alice@example.com", address = ADDRESS): AttemptAsk => ({ address, target });
const word = (text: string) => text.split(" ")[0];

test("a target and a source have budgets in all instances, and a success gives back", async (t) => {
  const guard = await healthy(t, "password");
  const instance = () => new AttemptLimiter({ ...common, guard });
  const [one, another] = [instance(), instance()];
  for (const limiter of [one, another]) {
    const attempt = await limiter.begin(ask());
    assert(attempt.allowed);
    assert.equal(await attempt.succeeded(), "refunded");
    assert.equal(await attempt.succeeded(), "already_refunded");
  }
  const failures = [];
  for (let attempt = 0; attempt < 5; attempt++) {
    failures.push(word(short(await one.begin(ask("alice@example.com", `192.0.2.${attempt}`)))));
  }
  assert.deepEqual(failures, [...Array(3).fill("allowed"), ...Array(2).fill("attempts_spent")]);
  const spraying = [];
  for (let attempt = 0; attempt < 12; attempt++) {
    spraying.push(word(short(await another.begin(ask(`user-${attempt}`, "198.51.100.1")))));
  }
  assert.deepEqual(spraying, [...Array(10).fill("allowed"), ...Array(2).fill("attempts_spent")]);
});

test("of fifty attempts at once no more than the budget are checked", async (t) => {
  const guard = await healthy(t, "password");
  const limiter = new AttemptLimiter({ ...common, guard });
  let checks = 0;
  const attempts = Array.from({ length: 50 }, async () => {
    const attempt = await limiter.begin(ask());
    if (attempt.allowed) checks++;
  });
  await Promise.all(attempts);
  assert.equal(checks, 3);
});

test("a denial is remembered for a second at most, since a success elsewhere gives the target back", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.url);
  let nowMs = Date.now();
  const { hooks, decisions } = recorder();
  const limiter = new AttemptLimiter({
    ...common,
    hooks,
    clock: () => nowMs,
    guard: selected(environment(proxy.url), "password"),
  });
  const [first] = [await limiter.begin(ask()), await limiter.begin(ask()), await limiter.begin(ask())];
  assert(first.allowed);
  const refused = await limiter.begin(ask());
  assert(!refused.allowed);
  assert.equal(refused.refusal.status, 429);
  const { "retry-after": wait, ratelimit } = refused.refusal.headers();
  assert(Number(wait) > 800 && ratelimit === undefined);
  nowMs += 999;
  assert.equal(word(short(await limiter.begin(ask()))), "attempts_spent");
  assert.equal(decisions.at(-1)?.from, "memory");
  assert.equal(await first.succeeded(), "refunded");
  nowMs += 1;
  assert.equal(short(await limiter.begin(ask())), "allowed");
  assert.equal(proxy.attempts, 6);
});

test("whoever is not that source or not that target is not refused from memory", async (t) => {
  const guard = await healthy(t, "password");
  const limiter = new AttemptLimiter({ ...common, guard, source: { limit: 3, periodMs: QUARTER } });
  for (let attempt = 0; attempt < 4; attempt++) await limiter.begin(ask("alice"));
  assert.equal(short(await limiter.begin(ask("bob", "192.0.2.8"))), "allowed");
});

test("closed: 503 with Retry-After: 30", (t) =>
  checkClosed(t, "password", (given) => new AttemptLimiter({ ...common, ...given }).begin(ask())));

test("giving back while the store is away is told, and no more", async (t) => {
  const server = await startServer(t);
  const limiter = new AttemptLimiter({ ...common, guard: selected(environment(server.url), "password") });
  const attempt = await limiter.begin(ask());
  assert(attempt.allowed);
  await server.control("stop", {});
  assert.equal(await attempt.succeeded(), "stopped");
});

test("observe lets a spent one go on without a reservation; not assigned, all pass", async (t) => {
  const guard = await healthy(t, "password");
  const spent = { ...common, target: { limit: 0, periodMs: QUARTER } };
  const { hooks, decisions } = recorder();
  const observing = new AttemptLimiter({ ...spent, guard, hooks, mode: "observe" });
  const unassigned = new AttemptLimiter({ ...spent, guard: "legacy", hooks });
  for (const limiter of [observing, unassigned]) {
    const attempt = await limiter.begin(ask());
    assert(attempt.allowed);
    assert.equal(await attempt.succeeded(), "nothing");
  }
  assert.deepEqual(
    decisions.map(({ outcome, from }) => `${outcome} ${from}`),
    ["attempts_spent store", "allowed none"],
  );
});

test("what can't be a limit is refused when it is made", () => {
  const table: Partial<AttemptLimiterOptions>[] = [
    { source: { limit: -1, periodMs: QUARTER } },
    { target: { limit: 1.5, periodMs: QUARTER } },
    { target: { limit: 1, periodMs: 999 } },
  ];
  for (const wrong of table) {
    assert.throws(() => new AttemptLimiter({ ...common, guard: "legacy", ...wrong }), RangeError);
  }
});
