/** Rate limits for routes: they degrade to each instance's own while the store is unavailable. */

import { sourceOf } from "../address.js";
import { WINDOWS_MAX } from "../bounds.js";
import type { Guard } from "../client.js";
import { GuardUnavailable } from "../error.js";
import { memoryKey } from "../memory.js";
import { Denials } from "./denials.js";
import { InstanceWindows } from "./instance.js";
import { ALLOWED, type Allowed, type Decision, Limit, type LimitOptions, type Verdict } from "./limit.js";
import { checkWindows, type LimitWindow, rateLimited, resultsOf, wireWindows } from "./windows.js";

export interface RouteLimiterOptions extends LimitOptions<RouteAsk, Verdict> {
  /** 1 to 4, of different periods. */
  readonly windows: readonly LimitWindow[];
  /** Charge calls to the caller's share of the family's budget too, as a server may require. */
  readonly carryIdentities?: boolean;
}

/** Who calls a route. */
export interface RouteAsk {
  /** The caller's address as it came in. */
  readonly address: string | null | undefined;
  /** The user or account, where one is verified: it has the windows then, not the address. */
  readonly principal?: string | undefined;
}

/** All of a caller's windows in one command. A denial is remembered until its window resets. */
export class RouteLimiter {
  readonly #limit: Limit<RouteAsk, Allowed>;
  readonly #options: RouteLimiterOptions;
  readonly #denials: Denials;
  readonly #instance: InstanceWindows;

  /** @throws {RangeError} The scope or the windows can't be used. */
  constructor(options: RouteLimiterOptions) {
    checkWindows(options.windows, 1, WINDOWS_MAX);
    this.#options = options;
    this.#limit = new Limit("route", "proxy", options, ALLOWED);
    this.#denials = new Denials(this.#limit.clock);
    this.#instance = new InstanceWindows(this.#limit.clock);
  }

  /** Counts a call, if there is room for it. */
  check(ask: RouteAsk): Promise<Verdict> {
    return this.#limit.decide(ask, (guard) => this.#decide(guard, ask));
  }

  async #decide(guard: Guard, ask: RouteAsk): Promise<Decision<Allowed>> {
    const { scope, windows } = this.#options;
    const { address, principal } = ask;
    const subject = principal === undefined ? `source:${sourceOf(address)}` : `principal:${principal}`;
    const key = await memoryKey(subject);
    const remembered = this.#denials.recall(key);
    if (remembered !== undefined) return { verdict: remembered, from: "memory" };
    const view = this.#options.carryIdentities === true ? guard.withFairness({ address, principal }) : guard;
    const partition = `proxy:${scope}:${subject}`;
    const hit = await this.#limit.store(async () => {
      const commands = [{ cmd: "win.hit", windows: wireWindows(windows) }] as const;
      const { steps } = await view.run({ family: "proxy", steps: [{ partition, commands }] });
      return resultsOf(steps[0])[0];
    });
    if (hit instanceof GuardUnavailable) return this.#decideHere(key, hit);
    if (hit.allowed) return { verdict: ALLOWED, from: "store" };
    const refusal = rateLimited(windows, hit);
    this.#denials.remember(key, refusal, refusal.retryAfterMs ?? 0);
    return { verdict: refusal, from: "store" };
  }

  /** The same limits in this instance alone: a store that is down must not take the routes with it. */
  #decideHere(key: string, unavailable: GuardUnavailable): Decision<Allowed> {
    const refusal = this.#instance.hit([{ key, windows: this.#options.windows }]);
    return { verdict: refusal ?? ALLOWED, from: "instance", unavailable };
  }
}
