/** What all ready-made limits have: a scope, a mode, a legacy path, hooks, and one way to decide. */

import type { Guard } from "../client.js";
import { type Clock, wallClock } from "../clock.js";
import { GuardUnavailable } from "../error.js";
import { type DecidedBy, type DecisionEvent, emit, type Hooks } from "../hooks.js";
import { Refusal } from "../refusal.js";

/** What every ready-made limit is made with. `Ask` is what it is asked with. */
export interface LimitOptions<Ask, V> {
  /** The guard store, or `"legacy"` while the family is not assigned to it. */
  readonly guard: Guard | "legacy";
  /** 1 to 64 of `a-z 0-9 _ -`. Limits of one kind and one scope share their counters, in all instances. */
  readonly scope: string;
  /** `observe` does, spends and remembers the same, and passes. `enforce` if absent. */
  readonly mode?: "enforce" | "observe";
  /** What decides while the family is not assigned; everything passes if absent. */
  readonly legacy?: (ask: Ask) => V | Promise<V>;
  readonly hooks?: Hooks;
  /** Told once when the store becomes unavailable, and once when it is back. The console if absent. */
  readonly log?: Log;
  /** For tests. */
  readonly clock?: Clock;
}

/** Where a limit logs. */
export interface Log {
  warn(message: string): void;
  info(message: string): void;
  /** What observe mode would have refused: a line for each, so the console is not told. */
  debug?(message: string): void;
}

/** The caller may go on. */
export interface Allowed {
  readonly allowed: true;
}

/** The caller is refused; `refusal` is what to answer. */
export interface Refused {
  readonly allowed: false;
  readonly refusal: Refusal;
}

export type Verdict = Allowed | Refused;

export const ALLOWED: Allowed = Object.freeze({ allowed: true });

/** A decision, and who made it. */
export interface Decision<V> {
  readonly verdict: V | Refusal;
  readonly from: DecidedBy;
  readonly outcome?: "grace";
  readonly unavailable?: GuardUnavailable;
}

/** The common part of the four limits. */
export class Limit<Ask, V extends Allowed> {
  readonly #kind: Pick<DecisionEvent, "limit" | "scope" | "family">;
  readonly #options: LimitOptions<Ask, V | Refused>;
  readonly #passed: V;
  #isDown = false;

  /** `passed` is the verdict on whom observe mode lets pass, or nothing was there to ask about. */
  constructor(
    limit: DecisionEvent["limit"],
    family: string,
    options: LimitOptions<Ask, V | Refused>,
    passed: V,
  ) {
    if (!/^[a-z0-9_-]{1,64}$/.test(options.scope)) {
      throw new RangeError("a limit's scope must be 1 to 64 characters of a-z, 0-9, _ and -");
    }
    this.#kind = { limit, scope: options.scope, family };
    this.#options = options;
    this.#passed = passed;
  }

  get clock(): Clock {
    return this.#options.clock ?? wallClock;
  }

  /** Decides by the legacy path or by `decide`, reports, and applies the mode. */
  async decide(ask: Ask, decide: (guard: Guard) => Promise<Decision<V>>): Promise<V | Refused> {
    const startedMs = performance.now();
    const { guard } = this.#options;
    const decision = await (guard === "legacy" ? this.#byLegacy(ask) : decide(guard));
    const { verdict, from, unavailable, outcome = "allowed" } = decision;
    const isRefused = verdict instanceof Refusal;
    const isObserved = this.#options.mode === "observe";
    emit(this.#options.hooks?.onDecision, {
      ...this.#kind,
      outcome: isRefused ? verdict.code : outcome,
      from,
      observed: isRefused && isObserved,
      unavailable: unavailable?.reason,
      durationMs: performance.now() - startedMs,
    });
    if (!isRefused) return verdict;
    if (!isObserved) return { allowed: false, refusal: verdict };
    this.#log().debug?.(`tidegate: ${this.#name()} would have refused: ${verdict.code}`);
    return this.#passed;
  }

  /** Asks the store. What fails is given back, not thrown, and logged when it begins and when it ends. */
  async store<T>(ask: () => Promise<T>): Promise<T | GuardUnavailable> {
    try {
      const answer = await ask();
      if (this.#isDown) this.#log().info(`tidegate: the guard store is back for ${this.#name()}`);
      this.#isDown = false;
      return answer;
    } catch (cause) {
      const isOurs = cause instanceof GuardUnavailable;
      return this.failed(isOurs ? cause : new GuardUnavailable("transport", "it failed", { cause }));
    }
  }

  /** Notes that there is no answer. */
  failed(error: GuardUnavailable): GuardUnavailable {
    if (!this.#isDown) this.#log().warn(`tidegate: ${this.#name()}: ${error.message} (${error.reason})`);
    this.#isDown = true;
    return error;
  }

  async #byLegacy(ask: Ask): Promise<Decision<V>> {
    const { legacy } = this.#options;
    if (legacy === undefined) return { verdict: this.#passed, from: "none" };
    const verdict = await legacy(ask);
    return { verdict: verdict.allowed ? verdict : verdict.refusal, from: "legacy" };
  }

  #log(): Log {
    return this.#options.log ?? CONSOLE;
  }

  #name(): string {
    return `the ${this.#kind.limit} limit ${this.#kind.scope}`;
  }
}

/** The decision of a limit that is closed while the store is unavailable. */
export function closed(unavailable: GuardUnavailable): Decision<never> {
  return { verdict: new Refusal("unavailable"), from: "instance", unavailable };
}

const CONSOLE: Log = {
  warn: (message) => console.warn(message),
  info: (message) => console.info(message),
};
