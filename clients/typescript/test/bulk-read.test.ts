/** BulkReadGuard: source and actor windows, a clearance; closed while the store is unavailable. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type BulkReadAsk, BulkReadGuard, type BulkReadGuardOptions } from "@tidegate/client";
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
const many = [{ limit: 100, periodMs: HOUR, algorithm: "fixed" }] as const;
const common = { scope: "export", log: SILENT, source: many, actor: many };
const check = (bulk: BulkReadGuard, ask: Partial<BulkReadAsk> = {}) =>
  bulk.check({ address: ADDRESS, ...ask }).then(short);

test("a clearance is granted by a proof, and lasts in all instances", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.url);
  const instance = () => new BulkReadGuard({ ...common, guard: selected(environment(proxy.url), "offline") });
  const [one, another] = [instance(), instance()];
  const actor = "session-1";
  assert.equal(await check(one, { actor }), "challenge_required");
  assert.equal(await check(one, { actor, hasProof: true }), "allowed");
  assert.deepEqual([await check(one, { actor }), await check(another, { actor })], ["allowed", "allowed"]);
  assert.equal(await check(one, { actor: "session-2" }), "challenge_required");
  const commands = proxy.bodies.map((body) =>
    JSON.parse(body).steps.flatMap(({ commands }: { commands: { cmd: string }[] }) =>
      commands.map(({ cmd }) => cmd),
    ),
  );
  assert.deepEqual(commands.slice(0, 3), [
    ["win.hit", "win.hit", "kv.get"],
    ["win.hit", "win.hit", "kv.set"],
    ["win.hit", "win.hit", "kv.get"],
  ]);
});

test("an unverified caller costs one command, whatever bearer it shows, and is refused", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.url);
  const guard = selected(environment(proxy.url), "offline");
  const bulk = new BulkReadGuard({ ...common, guard, source: [{ ...many[0], limit: 3 }] });
  const verdicts = [];
  for (let call = 0; call < 6; call++) verdicts.push((await check(bulk)).split(" ")[0]);
  const refused = ["unauthenticated", "unauthenticated", "unauthenticated"];
  assert.deepEqual(verdicts, [...refused, "rate_limited", "rate_limited", "rate_limited"]);
  assert.equal(proxy.attempts, 4);
  assert(proxy.bodies.every((body) => JSON.parse(body).steps.length === 1));
});

test("windows of the actor and of the source, each remembered for itself", async (t) => {
  const guard = await healthy(t, "offline");
  const { hooks, decisions } = recorder();
  const bulk = new BulkReadGuard({
    ...common,
    guard,
    hooks,
    source: [{ ...many[0], limit: 4 }],
    actor: [{ ...many[0], limit: 2 }],
    clearanceMs: null,
  });
  const by = async (actor: string) => (await check(bulk, { actor })).split(" ")[0];
  assert.deepEqual(
    [await by("a"), await by("a"), await by("a"), await by("a")],
    ["allowed", "allowed", "rate_limited", "rate_limited"],
  );
  // The source was charged three times: the actor's denial came after it.
  assert.deepEqual(
    [await by("b"), await by("b"), await by("c")],
    ["allowed", "rate_limited", "rate_limited"],
  );
  assert.deepEqual(
    decisions.map(({ from }) => from),
    ["store", "store", "store", "memory", "store", "store", "memory"],
  );
  const refused = await bulk.check({ address: ADDRESS, actor: "d" });
  assert(!refused.allowed);
  assert.match(
    refused.refusal.headers()["ratelimit-policy"] ?? "",
    /^"1h";q=4;w=3600, "1d";q=50000;w=86400$/,
  );
});

test("closed: 503 with Retry-After: 30", (t) =>
  checkClosed(t, "offline", (given) =>
    new BulkReadGuard({ ...common, ...given }).check({ address: ADDRESS }),
  ));

test("observe lets the unverified pass; not assigned, all pass", async (t) => {
  const guard = await healthy(t, "offline");
  const { hooks, decisions } = recorder();
  assert.equal(await check(new BulkReadGuard({ ...common, guard, hooks, mode: "observe" })), "allowed");
  assert.equal(await check(new BulkReadGuard({ ...common, guard: "legacy", hooks })), "allowed");
  assert.deepEqual(
    decisions.map(({ outcome, from }) => `${outcome} ${from}`),
    ["unauthenticated store", "allowed none"],
  );
});

test("what can't be a limit is refused when it is made", () => {
  const table: Partial<BulkReadGuardOptions>[] = [
    { source: [{ limit: 1, periodMs: DAY }] },
    { actor: Array.from({ length: 4 }, (_, index) => ({ limit: 1, periodMs: 1000 * (index + 1) })) },
    { clearanceMs: 999 },
    { clearanceMs: 1000.5 },
    { clearanceMs: 121 * DAY },
  ];
  for (const wrong of table) {
    assert.throws(() => new BulkReadGuard({ ...common, guard: "legacy", ...wrong }), RangeError);
  }
});
