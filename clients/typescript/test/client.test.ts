/** The client against the real server: what it sends is understood, and whatever fails is one error. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import {
  type CallEvent,
  type Fetch,
  GuardClient,
  type GuardClientOptions,
  type GuardRequest,
  GuardUnavailable,
  operationId,
  type Reason,
} from "@tidegate/client";
import { type Behaviour, nobody, startProxy } from "./proxy.js";
import { PEPPER, SECRET, startServer } from "./server.js";

/** Patient, so that a loaded machine does not look like a slow server. */
const client = (url: string, options: GuardClientOptions = {}) =>
  new GuardClient(url, SECRET, PEPPER, { timeoutMs: 2000, ...options });

/** A counter, so that it shows how often a request was executed. */
const increment = (op = operationId(), by = 1) =>
  ({
    family: "proxy",
    op,
    steps: [{ partition: "counting", commands: [{ cmd: "kv.incr", key: "n", by, ttl_ms: 60_000 }] }],
  }) as const;

test("every command", async (t) => {
  const server = await startServer(t);
  const { steps, denied } = await client(server.url).run({
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
  assert(!denied && steps[0].status === "ok");
  const [hit, set, get, expire, ttl, deleted, counted, reserve] = steps[0].results;
  assert.deepEqual([hit.allowed, hit.windows[0]?.remaining], [true, 3]);
  assert.deepEqual([set.written, get.value, expire.updated, ttl.ttl_ms], [true, "v", true, 5000]);
  assert.deepEqual([deleted.deleted, counted.value], [true, -2]);
  assert(reserve.reserved && reserve.receipt !== undefined);
  const refund = { cmd: "res.refund", receipt: reserve.receipt } as const;
  const refunded = await client(server.url).run({
    family: "proxy",
    steps: [{ partition: "everything", commands: [refund] }],
  });
  assert(refunded.steps[0].status === "ok");
  assert.deepEqual(refunded.steps[0].results, [{ refunded: true }]);
});

test("denied, failed and skipped steps", async (t) => {
  const server = await startServer(t);
  const full = { cmd: "win.hit", windows: [{ key: "1m", limit: 0, period_ms: 60_000 }] } as const;
  const noNumber = { cmd: "kv.set", key: "n", value: "no number", ttl_ms: 60_000 } as const;
  const add = { cmd: "kv.incr", key: "n", ttl_ms: 60_000 } as const;
  const answer = await client(server.url).run({
    family: "proxy",
    steps: [
      { partition: "a", commands: [noNumber] },
      { partition: "a", commands: [add] },
      { partition: "b", commands: [full] },
    ],
  });
  assert.deepEqual(
    answer.steps.map(({ status }) => status),
    ["ok", "failed", "skipped"],
  );
  assert(answer.steps[1].status === "failed");
  assert.equal(answer.steps[1].error.code, "not_an_integer");
  const denied = await client(server.url).run({
    family: "proxy",
    steps: [{ partition: "b", commands: [full] }],
  });
  assert(denied.denied && denied.steps[0].status === "denied");
  assert.equal(denied.steps[0].results[0].retry_after_ms, null);
});

test("the same operation again is answered from the record, another one is a conflict", async (t) => {
  const server = await startServer(t);
  const op = operationId();
  for (const replayed of [false, true, true]) {
    const { steps } = await client(server.url).run(increment(op));
    assert.equal(steps[0].replayed, replayed);
    assert.equal(steps[0].results[0]?.value, 1);
  }
  await assert.rejects(client(server.url).run(increment(op, 2)), { reason: "request" });
});

test("identities are charged: whose share is spent is told, others go on", async (t) => {
  // 5 % of proxy's 200 are 10 commands for each source; a principal and the network have no less.
  const server = await startServer(t, { TIDEGATE_GUARD__DAILY_BUDGET: "1000" });
  const proxy = await startProxy(t, server.url);
  const greedy = client(proxy.url).withFairness({ address: "2001:db8::1", principal: "user_42" });
  for (let calls = 0; calls < 10; calls++) await greedy.run(increment());
  const refused = await greedy.run(increment()).catch((error) => error);
  assert.deepEqual([refused.reason, refused.axis, refused.stop], ["limited", "source", undefined]);
  assert(refused.retryAfterMs > 0);
  await client(proxy.url).withFairness({ address: "198.51.100.1" }).run(increment());
  const { fairness } = JSON.parse(proxy.bodies[0] ?? "");
  assert.deepEqual(
    fairness.networks.map(({ prefix }: { prefix: number }) => prefix),
    [56, 48],
  );
  assert.match(fairness.source + fairness.principal, /^[\w-]{86}$/);
  assert(!proxy.bodies.some((body) => /2001|user_42|counting/.test(body)), "an identity was sent");
});

test("services with one fairness pepper share an allowance", async (t) => {
  const server = await startServer(t, { TIDEGATE_GUARD__DAILY_BUDGET: "1000" });
  const fairnessPepper = "fairness-pepper-for-tests-0123456789abcdef";
  const services = [PEPPER, `another-${PEPPER}`].map((pepper) =>
    new GuardClient(server.url, SECRET, pepper, { fairnessPepper, timeoutMs: 2000 }).withFairness({
      address: "192.0.2.1",
    }),
  );
  for (const service of services) for (let calls = 0; calls < 5; calls++) await service.run(increment());
  for (const service of services) await assert.rejects(service.run(increment()), { reason: "limited" });
});

test("whatever fails is one error, and was sent at most once", async (t) => {
  const server = await startServer(t);
  const unable = await startServer(t, { TIDEGATE_GUARD__SECRETS: "short" });
  const spent = await startServer(t, { TIDEGATE_GUARD__FAMILY_BUDGETS: "offline=1" });
  const proxy = await startProxy(t, server.url);
  const run = (options: GuardClientOptions = {}) => client(proxy.url, options).run(increment());
  const behaving = (behaviour: Behaviour, options?: GuardClientOptions) => () => {
    proxy.behaviour = behaviour;
    return run(options);
  };
  const answering = (status: number, body: string) => behaving({ status, body });
  const table: [string, Reason, () => Promise<unknown>, number?][] = [
    ["slow", "timeout", behaving("hold", { timeoutMs: 1 })],
    ["cut off", "transport", behaving("cut")],
    ["nobody there", "transport", async () => client(await nobody()).run(increment()), 0],
    ["no guard", "transport", answering(200, "<html>")],
    [
      "another answer",
      "transport",
      answering(200, '{"op":"AAAAAAAAAAAAAAAAAAAAAA","now_ms":1,"denied":false,"steps":[]}'),
    ],
    ["a redirect", "transport", answering(307, "")],
    ["an error page", "transport", answering(502, "bad gateway")],
    ["endless", "transport", answering(200, " ".repeat(1024 * 1024 + 1))],
    ["a refusal of no known kind", "transport", answering(503, '{"error":{"code":"new","message":""}}')],
    [
      "another secret",
      "authentication",
      () => new GuardClient(proxy.url, `x${SECRET}`, PEPPER, { timeoutMs: 2000 }).run(increment()),
    ],
    ["an unknown family", "request", () => client(proxy.url).run({ ...increment(), family: "nobodys" })],
    ["a faulty server", "unavailable", () => client(unable.url).run(increment()), 0],
    ["a spent budget", "stopped", () => client(spent.url).run(increment()), 0],
    ["an operator's stop", "stopped", () => server.control("stop", {}).then(() => run())],
  ];
  for (const [name, reason, call, attempts = 1] of table) {
    proxy.attempts = 0;
    proxy.behaviour = "pass";
    const error: unknown = await call().then(
      () => "an answer",
      (error) => error,
    );
    assert(error instanceof GuardUnavailable, `${name}: ${error}`);
    assert.equal(error.reason, reason, `${name}: ${error.message}`);
    assert.equal(proxy.attempts, attempts, `${name}: attempts`);
    await proxy.release();
  }
  const refused = await client(await nobody())
    .run(increment())
    .catch((error) => error);
  assert.match(refused.message, /no connection: .*ECONNREFUSED/);
  const stopped = await client(server.url)
    .run(increment())
    .catch((error) => error);
  assert.deepEqual([stopped.stop, stopped.retryAfterMs], ["operator_stop", 30_000]);
});

test("a late answer changes nothing, and the same operation then gives the original result", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.url, "hold");
  const events: CallEvent[] = [];
  const hooks = { onCall: (event: CallEvent) => events.push(event) };
  const hasty = client(proxy.url, { timeoutMs: 100, hooks });
  const patient = client(proxy.url, { hooks });
  const request = increment();
  await assert.rejects(hasty.run(request), { reason: "timeout" });
  proxy.behaviour = "pass";
  await proxy.release();
  const { steps } = await patient.run(request);
  assert.deepEqual([steps[0].replayed, steps[0].results[0]?.value], [true, 1]);
  assert.deepEqual([events.map(({ outcome }) => outcome), proxy.attempts], [["timeout", "ok"], 2]);
  const other = await patient.run(increment());
  assert.equal(other.steps[0].results[0]?.value, 2, "the late one was executed once");
});

test("a retry would be seen: a fetch that retries, as the control", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.url, "cut");
  const retrying: Fetch = (url, init) => fetch(url, init).catch(() => fetch(url, init));
  await assert.rejects(client(proxy.url, { fetch: retrying }).run(increment()), { reason: "transport" });
  assert.equal(proxy.attempts, 2);
});

test("a fetch that heeds no signal hangs nobody", async () => {
  const deaf = client("https://guard.example", { timeoutMs: 100, fetch: () => new Promise(() => {}) });
  await assert.rejects(deaf.run(increment()), { reason: "timeout" });
});

test("kept connections that were closed cost one call at most", async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server.url);
  for (let time = 0; time < 5; time++) {
    const outcomes = [];
    for (let call = 0; call < 2; call++) {
      outcomes.push(
        await client(proxy.url)
          .run(increment())
          .then(
            () => "ok",
            ({ reason }) => reason,
          ),
      );
    }
    assert.equal(outcomes[1], "ok", `${outcomes}`);
    proxy.closeConnections();
  }
});

test("nothing out of bounds is sent", async (t) => {
  const proxy = await startProxy(t, await nobody());
  const steps = (count: number, command: object) =>
    ({ family: "proxy", steps: Array(count).fill({ partition: "p", commands: [command] }) }) as GuardRequest;
  const get = { cmd: "kv.get", key: "k" };
  const long = { cmd: "kv.set", key: "k", value: "v".repeat(2048), ttl_ms: 1000 };
  const table: [string, GuardRequest][] = [
    ["steps: must be 1 to 16", steps(17, get)],
    ["must be at most 16 KiB", steps(8, long)],
    ["family: must be a family's name", { ...steps(1, get), family: "Proxy" }],
    ["op: must be 22 to 64 characters", { ...steps(1, get), op: "short" }],
    ["steps[0].commands[0].cmd: must be a command", steps(1, { cmd: "kv.all", key: "k" })],
    ["steps[0].commands[0].key: must be text", steps(1, { cmd: "kv.get" })],
    ["steps[0].commands[0].key: must be text", steps(1, { cmd: "kv.get", key: "\ud800" })],
    ["steps[0].commands[0].value: must be at most 2 KiB", steps(1, { ...long, value: "\udfff" })],
    ["steps[0].commands[0].ttl_ms: must be from", steps(1, { ...long, value: "", ttl_ms: 1000.5 })],
    ["steps[0].commands[0].receipt: must be a receipt", steps(1, { cmd: "res.refund", receipt: "r" })],
    [
      "steps[0].commands[0]: must be an object",
      { family: "proxy", steps: [{ partition: "p", commands: [null] }] } as never,
    ],
  ];
  for (const [message, request] of table) {
    const error = await client(proxy.url)
      .run(request)
      .catch((error) => error);
    assert.equal(error.reason, "request", message);
    assert(error.message.includes(message), `${error.message} has no ${message}`);
  }
  assert.equal(proxy.attempts, 0);
});

test("at most 512 calls are under way", async (t) => {
  const server = await startServer(t);
  let calls = 0;
  let finish = () => {};
  const gate = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const slow = client(server.url, {
    timeoutMs: 2000,
    fetch: async (url, init) => {
      calls++;
      if (calls > 512) return fetch(url, init);
      await gate;
      throw new Error("gone");
    },
  });
  const started = Array.from({ length: 512 }, () => slow.run(increment()).catch((error) => error));
  while (calls < 512) await new Promise(setImmediate);
  await assert.rejects(slow.run(increment()), { reason: "unavailable" });
  assert.equal(calls, 512);
  finish();
  await Promise.all(started);
  await slow.run(increment());
});

test("no way of printing shows a secret", async (t) => {
  const server = await startServer(t);
  const markers = ["hidden-secret-0123456789abcdefghijkl", "hidden-pepper-0123456789abcdefghijkl"] as const;
  const guard = new GuardClient(server.url, ...markers, { fairnessPepper: markers[1], timeoutMs: 2000 });
  const view = guard.withFairness({ address: "192.0.2.77", principal: "user_42" });
  const error = await view.run(increment()).catch((error) => error);
  const faults = ["", " hidden-pepper-0123456789abcdefghijkl", "hidden"].flatMap((bad) =>
    [() => new GuardClient(server.url, bad, PEPPER), () => new GuardClient(server.url, SECRET, bad)].map(
      thrownBy,
    ),
  );
  const shown = [guard, view, error, ...faults].flatMap((value) => [
    inspect(value, { depth: null, showHidden: true, getters: true }),
    JSON.stringify(value),
    `${value}`,
  ]);
  assert.equal(error.reason, "authentication");
  for (const text of shown) assert(!/hidden-|192\.0\.2\.77|user_42/.test(text), text);
  // The control: had they been ordinary fields, they would have shown.
  assert.match(inspect({ secret: markers[0] }, { depth: null }), /hidden-/);
});

function thrownBy(make: () => unknown): unknown {
  try {
    make();
  } catch (error) {
    assert(error instanceof GuardUnavailable && error.reason === "configuration");
    return error;
  }
  throw new Error("it was taken");
}
