/** What may be the matter with the guard store, and the guard that an application then has. */

import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import {
  type ClientEnvironment,
  type DecisionEvent,
  type Family,
  type Guard,
  type Hooks,
  type Log,
  type Reason,
  Selection,
  type Verdict,
} from "@tidegate/client";
import { nobody, startProxy } from "./proxy.js";
import { PEPPER, SECRET, startServer } from "./server.js";

export const SILENT = { warn: () => {}, info: () => {} };
export const ADDRESS = "192.0.2.7";
export const ALL_FAMILIES = "offline,replay,proxy,password";

/** An environment that assigns every family to the guard store at `url`. */
export const environment = (url: string): ClientEnvironment => ({
  TIDEGATE_CLIENT_FAMILIES: ALL_FAMILIES,
  TIDEGATE_CLIENT_URL: url,
  TIDEGATE_CLIENT_SECRET: SECRET,
  TIDEGATE_CLIENT_KEY_PEPPER: PEPPER,
  // A loaded machine must not look like a slow store.
  TIDEGATE_CLIENT_TIMEOUT_MS: "2000",
});

/** The guard of `family` that `env` selects. */
export function selected(env: ClientEnvironment, family: Family): Guard {
  const guard = new Selection(env, { log: SILENT }).guard(family);
  assert(guard !== "legacy", `${family} went to the legacy path`);
  return guard;
}

/** A guard on a healthy server of its own. */
export async function healthy(test: TestContext, family: Family): Promise<Guard> {
  return selected(environment((await startServer(test)).url), family);
}

/** Every way in which the store is unavailable, the reason that the client gives, and the guard. */
export async function unavailable(test: TestContext, family: Family): Promise<[string, Reason, Guard][]> {
  const server = await startServer(test);
  const stopped = await startServer(test);
  await stopped.control("stop", { reason: "a drill" });
  // Of so little no identity has a share of a single command.
  const limited = await startServer(test, { TIDEGATE_GUARD__DAILY_BUDGET: "10" });
  const faulty = await startServer(test, { TIDEGATE_GUARD__SECRETS: "short" });
  const slow = await startProxy(test, server.url, "hold");
  const cut = await startProxy(test, server.url, "cut");
  const on = (url: string, more: ClientEnvironment = {}) =>
    selected({ ...environment(url), ...more }, family);
  return [
    ["stopped", "stopped", on(stopped.url)],
    ["limited", "limited", on(limited.url).withFairness({ address: ADDRESS })],
    ["slow", "timeout", on(slow.url, { TIDEGATE_CLIENT_TIMEOUT_MS: "100" })],
    ["cut off", "transport", on(cut.url)],
    ["not there", "transport", on(await nobody())],
    ["another secret", "authentication", on(server.url, { TIDEGATE_CLIENT_SECRET: `x${SECRET}` })],
    ["a misconfigured server", "unavailable", on(faulty.url)],
    ["misconfigured", "configuration", on(server.url, { TIDEGATE_CLIENT_KEY_PEPPER: "" })],
    ["switched off", "off", on(server.url, { TIDEGATE_CLIENT_BACKEND: "off" })],
  ];
}

/** Hooks that keep what they are told. */
export function recorder(): { hooks: Hooks; decisions: DecisionEvent[] } {
  const decisions: DecisionEvent[] = [];
  return { hooks: { onDecision: (event) => decisions.push(event) }, decisions };
}

/** A verdict in short: `allowed`, or the refusal's code with its wait in seconds. */
export function short(verdict: Verdict): string {
  if (verdict.allowed) return "allowed";
  const { code, retryAfterMs } = verdict.refusal;
  return retryAfterMs === undefined ? code : `${code} ${Math.ceil(retryAfterMs / 1000)}`;
}

/** A closed limit refuses with 503 in every condition, passes in observe mode, and tells why in both. */
export async function checkClosed(
  test: TestContext,
  family: Family,
  ask: (common: {
    guard: Guard;
    scope: string;
    hooks: Hooks;
    log: Log;
    mode: "enforce" | "observe";
  }) => Promise<Verdict>,
): Promise<void> {
  for (const [condition, reason, guard] of await unavailable(test, family)) {
    for (const mode of ["enforce", "observe"] as const) {
      const { hooks, decisions } = recorder();
      const verdict = await ask({ guard, scope: "api", hooks, log: SILENT, mode });
      assert.equal(short(verdict), mode === "observe" ? "allowed" : "unavailable 30", condition);
      const [event] = decisions;
      assert.deepEqual([event?.outcome, event?.unavailable], ["unavailable", reason], condition);
      if (!verdict.allowed) {
        assert.equal(verdict.refusal.status, 503);
        assert.equal(verdict.refusal.headers()["retry-after"], "30");
      }
    }
  }
}
