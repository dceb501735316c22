/** The vectors that every implementation of the protocol shares. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  AttemptLimiter,
  BulkReadGuard,
  GuardClient,
  type GuardRequest,
  Refusal,
  type RefusalCode,
  ReplayFence,
  RouteLimiter,
  Selection,
  type WindowState,
} from "@tidegate/client";
import { networksOf, sourceOf } from "../dist/address.js";
import * as bounds from "../dist/bounds.js";
import { requestFault } from "../dist/check.js";
import { periodText } from "../dist/duration.js";
import { Hmac } from "../dist/hmac.js";
import { digest, type Purpose } from "../dist/identity.js";
import { SECRET_CHARS_MIN, secretFault } from "../dist/secret.js";
import { sign } from "../dist/signature.js";
import { timestampMs } from "../dist/timestamp.js";
import { readOrigin } from "../dist/transport.js";

const vectors: Vectors = JSON.parse(
  readFileSync(new URL("../../../protocol/vectors.json", import.meta.url), "utf8"),
);

test("signatures", async () => {
  for (const { name, secret, t_ms, method, path, body, header } of vectors.signatures) {
    const signed = await sign(new Hmac(secret), t_ms, method, path, new TextEncoder().encode(body));
    assert.equal(signed, header, name);
  }
});

test("digests", async () => {
  for (const vector of vectors.digests) {
    assert.equal(await digest(new Hmac(vector.pepper), vector.purpose, vector.value), vector.digest);
  }
});

test("sources and networks", () => {
  for (const { input, source, networks } of vectors.sources) {
    assert.equal(sourceOf(input), source, `${input}`);
    assert.deepEqual(networksOf(input), networks, `${input}`);
  }
});

test("bounds", () => {
  const ours: Record<string, number> = { ...bounds, SECRET_CHARS_MIN, INTEGER_MAX: Number.MAX_SAFE_INTEGER };
  // Those that are part of a form, not a number, here; `requests` tries them.
  const formed = /^(networks|operation|family|digest|receipt|skew)_/;
  for (const [name, bound] of Object.entries(vectors.bounds)) {
    if (!formed.test(name)) assert.equal(ours[name.toUpperCase()], bound, name);
  }
});

test("requests at and past each bound", () => {
  for (const { name, request, refused_at } of vectors.requests) {
    // The networks of a request are made here, from an address.
    if (request.fairness === undefined) {
      assert.equal(requestFault(request)?.split(":")[0] ?? null, refused_at, name);
    }
  }
});

test("periods", () => {
  for (const { ms, text } of vectors.durations) assert.equal(periodText(ms), text);
});

test("partitions and keys of the ready-made limits", async () => {
  for (const { limit, of, partition_digest, keys } of vectors.names) {
    const { partition, keys: sent } = await sentBy(limit, of);
    assert.equal(partition, partition_digest, limit);
    for (const { value, digest } of keys) assert(sent.includes(digest), `${limit}: ${value}`);
    assert.equal(sent.length, keys.length, limit);
  }
});

test("refusals and their headers", () => {
  for (const { code, status, message } of vectors.refusals) {
    const refusal = new Refusal(code);
    assert.deepEqual([refusal.status, refusal.message], [status, message]);
  }
  for (const { name, code, windows, retry_after_ms, headers, body } of vectors.rate_limit_headers) {
    const states = windows.map(
      ({ period_ms, limit, remaining, reset_ms }): WindowState => ({
        periodMs: period_ms,
        limit,
        remaining,
        resetMs: reset_ms,
      }),
    );
    const refusal = new Refusal(code, retry_after_ms, states);
    assert.deepEqual(refusal.headers(), { "content-type": "application/json", ...headers }, name);
    assert.deepEqual(JSON.parse(refusal.body()), JSON.parse(body), name);
  }
});

test("timestamps", () => {
  for (const { text, ms } of vectors.timestamps) assert.equal(timestampMs(text) ?? null, ms, text);
});

test("secrets and URLs", () => {
  for (const { name, text, accepted } of vectors.secrets) {
    assert.equal(secretFault(text) === undefined, accepted, name);
  }
  for (const { url, accepted } of vectors.urls) {
    assert.equal(readOrigin(url).fault === undefined, accepted, url);
  }
});

test("families and time-outs of the environment", () => {
  const env = {
    TIDEGATE_CLIENT_URL: "https://guard.example",
    TIDEGATE_CLIENT_SECRET: vectors.signatures[0]?.secret,
    TIDEGATE_CLIENT_KEY_PEPPER: vectors.digests[0]?.pepper,
  };
  for (const { text, assigned, unknown } of vectors.families) {
    const warnings: string[] = [];
    const log = { warn: (message: string) => warnings.push(message), info: () => {} };
    // A name is warned of once in a process; the rows have different ones.
    const selection = new Selection({ ...env, TIDEGATE_CLIENT_FAMILIES: text }, { log });
    const families = ["offline", "replay", "proxy", "password"] as const;
    const guarded = families.filter((family) => selection.guard(family) !== "legacy");
    assert.deepEqual(guarded, assigned, text);
    assert.deepEqual(
      warnings.map((warning) => warning.split(": ").at(-1)),
      unknown,
    );
  }
  const log = { warn: () => {}, info: () => {} };
  for (const { text, ms } of vectors.timeouts) {
    const timed = { ...env, TIDEGATE_CLIENT_FAMILIES: "proxy", TIDEGATE_CLIENT_TIMEOUT_MS: text };
    const selection = new Selection(timed, { log });
    const guard = selection.guard("proxy");
    assert(guard !== "legacy");
    assert.equal(selection.fault === undefined ? guard.timeoutMs : null, ms, text);
  }
});

/** What a limit sends for the first time it is asked. */
async function sentBy(limit: string, of: Asked): Promise<{ partition: string; keys: string[] }> {
  const bodies: string[] = [];
  const fetch = async (_: string, init: RequestInit) => {
    bodies.push(new TextDecoder().decode(init.body as Uint8Array));
    return new Response("", { status: 502 });
  };
  const { pepper = "" } = vectors.digests[0] ?? {};
  const guard = new GuardClient("https://guard.example", pepper, pepper, { fetch, timeoutMs: 2000 });
  const common = { guard, scope: of.scope, log: { warn: () => {}, info: () => {} } };
  const { address, principal, actor, token = "", target = "", periods_ms = [] } = of;
  const windows = periods_ms.map((periodMs) => ({ limit: 1, periodMs }));
  const own = windows.slice(0, -1);
  const budget = { limit: 1, periodMs: 1000 };
  const ask = {
    route: () => new RouteLimiter({ ...common, windows }).check({ address, principal }),
    "bulk_read.source": () => new BulkReadGuard({ ...common, source: own }).check({ address }),
    "bulk_read.actor": () => new BulkReadGuard({ ...common, actor: own }).check({ address, actor }),
    replay: () =>
      new ReplayFence(common).claim({ token, expiresAtMs: Date.now() + 1000, address, principal: "p" }),
    attempt: () =>
      new AttemptLimiter({ ...common, source: budget, target: budget }).begin({ address, target }),
  }[limit];
  assert(ask !== undefined, `there is no limit ${limit} here`);
  await ask();
  const { steps }: GuardRequest = JSON.parse(bodies[0] ?? "");
  const step = steps[limit === "bulk_read.actor" ? 1 : 0];
  const keys = step?.commands.flatMap((command) => {
    if (command.cmd === "win.hit") return command.windows.map(({ key }) => key);
    if (command.cmd === "res.reserve") return command.budgets.map(({ key }) => key);
    return "key" in command ? [command.key] : [];
  });
  return { partition: step?.partition ?? "", keys: keys ?? [] };
}

interface Asked {
  scope: string;
  address?: string;
  principal?: string;
  actor?: string;
  token?: string;
  target?: string;
  periods_ms?: number[];
}

interface Vectors {
  signatures: {
    name: string;
    secret: string;
    t_ms: number;
    method: string;
    path: string;
    body: string;
    header: string;
  }[];
  digests: { pepper: string; purpose: Purpose; value: string; digest: string }[];
  sources: { input: string | null; source: string; networks: { prefix: number; text: string }[] }[];
  bounds: Record<string, number>;
  requests: { name: string; request: GuardRequest & { fairness?: object }; refused_at: string | null }[];
  durations: { ms: number; text: string }[];
  names: { limit: string; of: Asked; partition_digest: string; keys: { value: string; digest: string }[] }[];
  refusals: { code: RefusalCode; status: number; message: string }[];
  rate_limit_headers: {
    name: string;
    code: RefusalCode;
    windows: { period_ms: number; limit: number; remaining: number; reset_ms: number }[];
    retry_after_ms: number;
    headers: Record<string, string>;
    body: string;
  }[];
  timestamps: { text: string; ms: number | null }[];
  timeouts: { text: string; ms: number | null }[];
  families: { text: string; assigned: string[]; unknown: string[] }[];
  urls: { url: string; accepted: boolean }[];
  secrets: { name: string; text: string; accepted: boolean }[];
}
