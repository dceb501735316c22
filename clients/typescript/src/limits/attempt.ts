/** Attempts at a secret: reserved before the expensive check, given back after a success. Closed while the
 * store is unavailable. */

import { sourceOf } from "../address.js";
import { TTL_MS_MAX, TTL_MS_MIN } from "../bounds.js";
import type { Guard } from "../client.js";
import { GuardUnavailable, type Reason } from "../error.js";
import { memoryKey } from "../memory.js";
import { Refusal } from "../refusal.js";
import type { ReserveResult } from "../response.js";
import { Denials } from "./denials.js";
import { type Allowed, closed, type Decision, Limit, type LimitOptions, type Refused } from "./limit.js";
import { resultsOf } from "./windows.js";

export interface AttemptLimiterOptions extends LimitOptions<AttemptAsk, AttemptVerdict> {
  /** Attempts of each address. */
  readonly source: AttemptBudget;
  /** Attempts at each target. */
  readonly target: AttemptBudget;
}

/** A budget of attempts, whose period begins at its first one. */
export interface AttemptBudget {
  readonly limit: number;
  /** 1 s to 120 days. */
  readonly periodMs: number;
}

/** Who tries what. */
export interface AttemptAsk {
  /** The caller's address as it came in. */
  readonly address: string | null | undefined;
  /** The account, spelled as the login folds it: all spellings of one account must be one target. */
  readonly target: string;
  /** Who is known to try, where somebody is signed in already. */
  readonly principal?: string | undefined;
}

/** An attempt that may go on. */
export interface Attempt extends Allowed {
  /** To be called after a success: gives the reservation back. What became of that changes nothing for the
   * login; after a failure, or nothing, the reservation stays. */
  succeeded(): Promise<Refunding>;
}

/** What became of giving back: done, nothing to give back any more, or why the store did not say. */
export type Refunding = "refunded" | "already_refunded" | "unknown_or_expired" | "nothing" | Reason;

export type AttemptVerdict = Attempt | Refused;

/** Attempts of each address and at each target, in all instances. */
export class AttemptLimiter {
  readonly #limit: Limit<AttemptAsk, Attempt>;
  readonly #options: AttemptLimiterOptions;
  readonly #denials: Denials;

  /** @throws {RangeError} The scope or a budget can't be used. */
  constructor(options: AttemptLimiterOptions) {
    checkBudget(options.source);
    checkBudget(options.target);
    this.#options = options;
    this.#limit = new Limit("attempt", "password", options, FREE);
    this.#denials = new Denials(this.#limit.clock);
  }

  /** Reserves an attempt, if both budgets have one. */
  begin(ask: AttemptAsk): Promise<AttemptVerdict> {
    return this.#limit.decide(ask, (guard) => this.#decide(guard, ask));
  }

  async #decide(guard: Guard, ask: AttemptAsk): Promise<Decision<Attempt>> {
    const { address, target, principal } = ask;
    const source = sourceOf(address);
    const key = await memoryKey(source, target);
    const remembered = this.#denials.recall(key);
    if (remembered !== undefined) return { verdict: remembered, from: "memory" };
    const view = guard.withFairness({ address, principal });
    const reserved = await this.#limit.store(() => this.#reserve(view, source, target));
    if (reserved instanceof GuardUnavailable) return closed(reserved);
    if (reserved.reserved) {
      return { verdict: this.#attempt(view, reserved.receipt), from: "store" };
    }
    // Where waiting can't help: until the last budget begins anew.
    const longestMs = Math.max(...reserved.budgets.map(({ reset_ms }) => reset_ms));
    const waitMs = Math.max(1, reserved.retry_after_ms ?? longestMs);
    const refusal = new Refusal("attempts_spent", waitMs);
    this.#denials.remember(key, refusal, Math.min(waitMs, DENIAL_MS_MAX));
    return { verdict: refusal, from: "store" };
  }

  async #reserve(view: Guard, source: string, target: string): Promise<ReserveResult> {
    const budgets = [
      {
        key: `source:${source}`,
        limit: this.#options.source.limit,
        period_ms: this.#options.source.periodMs,
      },
      {
        key: `target:${target}`,
        limit: this.#options.target.limit,
        period_ms: this.#options.target.periodMs,
      },
    ];
    const commands = [{ cmd: "res.reserve", budgets, target: 1 }] as const;
    const { steps } = await view.run({
      family: "password",
      steps: [{ partition: this.#partition(), commands }],
    });
    return resultsOf(steps[0])[0];
  }

  #attempt(view: Guard, receipt: string | undefined): Attempt {
    if (receipt === undefined) return FREE;
    const refund = async (): Promise<Refunding> => {
      const commands = [{ cmd: "res.refund", receipt }] as const;
      const refunded = await this.#limit.store(async () => {
        const steps = [{ partition: this.#partition(), commands }] as const;
        return resultsOf((await view.run({ family: "password", steps })).steps[0])[0];
      });
      if (refunded instanceof GuardUnavailable) return refunded.reason;
      return refunded.refunded ? "refunded" : refunded.reason;
    };
    return { allowed: true, succeeded: refund };
  }

  #partition(): string {
    return `password:${this.#options.scope}`;
  }
}

function checkBudget({ limit, periodMs }: AttemptBudget): void {
  if (!Number.isSafeInteger(limit) || limit < 0) throw new RangeError("a budget's limit must be 0 or more");
  if (!Number.isSafeInteger(periodMs) || periodMs < TTL_MS_MIN || periodMs > TTL_MS_MAX) {
    throw new RangeError(`a budget's periodMs must be from ${TTL_MS_MIN} to ${TTL_MS_MAX}`);
  }
}

/** An attempt without a reservation. */
const FREE: Attempt = Object.freeze({ allowed: true, succeeded: async () => "nothing" as const });

/** A denial is not remembered for longer, since a success elsewhere gives the target back. */
const DENIAL_MS_MAX = 1000;
