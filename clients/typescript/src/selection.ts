/** Which families go to the guard store, as the environment says. */

import { TIMEOUT_MS_DEFAULT } from "./bounds.js";
import { type Guard, GuardClient, type GuardClientOptions } from "./client.js";
import { GuardUnavailable, type Reason } from "./error.js";
import type { Hooks } from "./hooks.js";
import type { Log } from "./limits/limit.js";
import { secretFault } from "./secret.js";
import { readOrigin } from "./transport.js";

/** The variables that are read: of `process.env`, of a Worker's `env`, of any object. An empty one is unset. */
export interface ClientEnvironment {
  readonly TIDEGATE_CLIENT_FAMILIES?: string | undefined;
  readonly TIDEGATE_CLIENT_URL?: string | undefined;
  readonly TIDEGATE_CLIENT_SECRET?: string | undefined;
  readonly TIDEGATE_CLIENT_KEY_PEPPER?: string | undefined;
  readonly TIDEGATE_CLIENT_FAIRNESS_PEPPER?: string | undefined;
  readonly TIDEGATE_CLIENT_TIMEOUT_MS?: string | undefined;
  readonly TIDEGATE_CLIENT_BACKEND?: string | undefined;
  readonly TIDEGATE_CLIENT_REPLAY_LEGACY_UNTIL?: string | undefined;
}

export type Family = "offline" | "replay" | "proxy" | "password";

export interface SelectionOptions {
  /** Instead of the global one. */
  readonly fetch?: GuardClientOptions["fetch"];
  readonly hooks?: Hooks;
  /** Told of unknown families and of a faulty configuration, once each. The console if absent. */
  readonly log?: Log;
}

/** What the environment selects. It is read once, when this is made. */
export class Selection {
  readonly #assigned: ReadonlySet<string>;
  readonly #guard: Guard | "legacy";
  /** What is wrong with the configuration: a variable and why, never its value. Assigned families are off. */
  readonly fault: string | undefined;
  /** Until when the replay fence also reads the legacy store, as it stands there. */
  readonly replayLegacyUntil: string | undefined;

  constructor(env: ClientEnvironment, options: SelectionOptions = {}) {
    const { log = console } = options;
    this.#assigned = readFamilies(env.TIDEGATE_CLIENT_FAMILIES, log);
    this.replayLegacyUntil = env.TIDEGATE_CLIENT_REPLAY_LEGACY_UNTIL || undefined;
    const { guard, fault } = readGuard(env, options);
    this.#guard = guard;
    this.fault = fault;
    if (fault !== undefined && this.#assigned.size > 0) {
      once(log, `tidegate: the assigned families are off: ${fault}`);
    }
  }

  /** Where a family goes. One that is assigned never falls back to the legacy path by itself: a fresh legacy
   * store would forget consumed fences and spent limits. */
  guard(family: Family): Guard | "legacy" {
    return this.#assigned.has(family) ? this.#guard : "legacy";
  }
}

/** What stands for a client that there is none of: every call fails, and nothing is sent. */
class NoGuard implements Guard {
  readonly timeoutMs = TIMEOUT_MS_DEFAULT;
  readonly #reason: Reason;
  readonly #message: string;

  constructor(reason: Reason, message: string) {
    this.#reason = reason;
    this.#message = message;
  }

  get off(): GuardUnavailable {
    return new GuardUnavailable(this.#reason, this.#message);
  }

  async run(): Promise<never> {
    throw this.off;
  }

  withFairness(): Guard {
    return this;
  }
}

function readGuard(
  env: ClientEnvironment,
  options: SelectionOptions,
): { guard: Guard | "legacy"; fault: string | undefined } {
  const backend = env.TIDEGATE_CLIENT_BACKEND || undefined;
  if (backend === "legacy") return { guard: "legacy", fault: undefined };
  if (backend === "off") {
    const guard = new NoGuard("off", "the guard store is switched off");
    return { guard, fault: undefined };
  }
  const fault = faultOf(env);
  if (fault === undefined) return { guard: readClient(env, options), fault };
  return { guard: new NoGuard("configuration", fault), fault };
}

function readClient(env: ClientEnvironment, { fetch, hooks }: SelectionOptions): GuardClient {
  const {
    TIDEGATE_CLIENT_URL: url = "",
    TIDEGATE_CLIENT_SECRET: secret = "",
    TIDEGATE_CLIENT_KEY_PEPPER: pepper = "",
    TIDEGATE_CLIENT_FAIRNESS_PEPPER: fairnessPepper,
    TIDEGATE_CLIENT_TIMEOUT_MS: timeoutText,
  } = env;
  return new GuardClient(url, secret, pepper, {
    ...(timeoutText ? { timeoutMs: Number(timeoutText) } : {}),
    ...(fairnessPepper ? { fairnessPepper } : {}),
    ...(fetch ? { fetch } : {}),
    ...(hooks ? { hooks } : {}),
  });
}

/** What is wrong: a variable and why, never its value. */
function faultOf(env: ClientEnvironment): string | undefined {
  if (env.TIDEGATE_CLIENT_BACKEND) return "TIDEGATE_CLIENT_BACKEND must be legacy or off";
  const { fault } = readOrigin(env.TIDEGATE_CLIENT_URL);
  if (fault !== undefined) return `TIDEGATE_CLIENT_URL: ${fault}`;
  for (const variable of SECRETS) {
    const isOptional = variable === "TIDEGATE_CLIENT_FAIRNESS_PEPPER";
    const broken = isOptional && !env[variable] ? undefined : secretFault(env[variable]);
    if (broken !== undefined) return `${variable} ${broken}`;
  }
  if (!/^\d*$/.test(env.TIDEGATE_CLIENT_TIMEOUT_MS ?? "")) {
    return "TIDEGATE_CLIENT_TIMEOUT_MS must be decimal digits only";
  }
  return undefined;
}

const SECRETS = [
  "TIDEGATE_CLIENT_SECRET",
  "TIDEGATE_CLIENT_KEY_PEPPER",
  "TIDEGATE_CLIENT_FAIRNESS_PEPPER",
] as const;

function readFamilies(text: string | undefined, log: Log): ReadonlySet<string> {
  const names = (text ?? "").split(",").map((name) => name.trim());
  const given = new Set(names.filter((name) => name !== ""));
  for (const name of given) {
    if (FAMILIES.includes(name)) continue;
    given.delete(name);
    once(log, `tidegate: TIDEGATE_CLIENT_FAMILIES names an unknown family, which is ignored: ${name}`);
  }
  return given;
}

/** A Worker may read its environment at each request, and must not warn each time. */
function once(log: Log, message: string): void {
  if (warned.has(message) || warned.size >= WARNINGS_MAX) return;
  warned.add(message);
  log.warn(message);
}

const FAMILIES: readonly string[] = ["offline", "replay", "proxy", "password"];
const warned = new Set<string>();
/** More different ones than any sane environment gives; then nobody reads them. */
const WARNINGS_MAX = 100;
