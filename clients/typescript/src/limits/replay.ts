/** Uses of a token: once, with some grace for who asks twice at once. Closed while the store is unavailable. */

import { sourceOf } from "../address.js";
import { TTL_MS_MAX } from "../bounds.js";
import type { Guard } from "../client.js";
import { GuardUnavailable } from "../error.js";
import { memoryKey } from "../memory.js";
import { Refusal } from "../refusal.js";
import { timestampMs } from "../timestamp.js";
import { within } from "../within.js";
import { Denials } from "./denials.js";
import { InstanceWindows } from "./instance.js";
import { type Allowed, closed, type Decision, Limit, type LimitOptions, type Refused } from "./limit.js";
import { resultsOf } from "./windows.js";

export interface ReplayFenceOptions extends LimitOptions<ReplayAsk, ReplayVerdict> {
  /** How long after the first use another one is a repeat of it. 10 s if absent. */
  readonly graceMs?: number;
  /** During a cut-over: whether the legacy store knows that the token was used. */
  readonly legacyReader?: (token: string) => boolean | Promise<boolean>;
  /** Until when the legacy store is asked too: a full timestamp, such as `2026-02-28T00:00:00Z`. */
  readonly legacyUntil?: string | undefined;
}

/** A token that has been verified. */
export interface ReplayAsk {
  /** Its id, unique in the scope. */
  readonly token: string;
  /** When it ends, in ms since the epoch. */
  readonly expiresAtMs: number;
  /** The caller's address as it came in. */
  readonly address: string | null | undefined;
  /** Whose token it is. */
  readonly principal: string;
}

/** `grace`: the token was used a moment ago, so this use seems to repeat that one. */
export type ReplayVerdict =
  | (Allowed & { readonly use: "first" })
  | (Allowed & { readonly use: "grace"; readonly firstUseMs: number })
  | Refused;

/** Claims a token's use once, in all instances. */
export class ReplayFence {
  readonly #limit: Limit<ReplayAsk, Used>;
  readonly #options: ReplayFenceOptions;
  readonly #replayed: Denials;
  readonly #preLimits: InstanceWindows;

  /** @throws {RangeError} The scope or the grace can't be used. */
  constructor(options: ReplayFenceOptions) {
    const { graceMs = 0 } = options;
    if (!Number.isSafeInteger(graceMs) || graceMs < 0) throw new RangeError("the grace must be 0 ms or more");
    this.#options = options;
    this.#limit = new Limit("replay", "replay", options, FIRST);
    this.#replayed = new Denials(this.#limit.clock);
    this.#preLimits = new InstanceWindows(this.#limit.clock);
  }

  /** Claims the use of a token. */
  claim(ask: ReplayAsk): Promise<ReplayVerdict> {
    return this.#limit.decide(ask, (guard) => this.#decide(guard, ask));
  }

  async #decide(guard: Guard, ask: ReplayAsk): Promise<Decision<Used>> {
    const key = await memoryKey(ask.token);
    const remembered = this.#replayed.recall(key);
    if (remembered !== undefined) return { verdict: remembered, from: "memory" };
    const nowMs = this.#limit.clock();
    const cutover = guard.off ?? this.#cutover(nowMs);
    if (cutover instanceof GuardUnavailable) return closed(this.#limit.failed(cutover));
    const leftMs = ask.expiresAtMs - nowMs;
    if (!(leftMs > 0)) return { verdict: new Refusal("token_expired"), from: "instance" };
    if (leftMs > TTL_MS_MAX) {
      const error = new GuardUnavailable("request", "a token must end within 120 days, as its fence does");
      return closed(this.#limit.failed(error));
    }
    if (await this.#isTooOften(ask)) {
      return { verdict: new Refusal("rate_limited", PRE_LIMIT_WAIT_MS), from: "instance" };
    }
    const firstUseMs = await this.#limit.store(async () => {
      const isKnown = cutover && (await within(guard.timeoutMs, () => cutover(ask.token)));
      return isKnown ? LONG_AGO : claim(guard, this.#options.scope, ask, nowMs);
    });
    if (firstUseMs instanceof GuardUnavailable) return closed(firstUseMs);
    if (firstUseMs === LONG_AGO) return this.#replay(key, leftMs, "legacy");
    if (firstUseMs === undefined) return { verdict: FIRST, from: "store" };
    const { graceMs = GRACE_MS_DEFAULT } = this.#options;
    const isWithinGrace = Math.abs(this.#limit.clock() - firstUseMs) <= graceMs;
    if (!isWithinGrace) return this.#replay(key, leftMs, "store");
    return { verdict: { allowed: true, use: "grace", firstUseMs }, outcome: "grace", from: "store" };
  }

  /** The legacy reader while it is to be asked; why it can't be, if it can't. */
  #cutover(nowMs: number): LegacyReader | GuardUnavailable | undefined {
    const { legacyUntil, legacyReader } = this.#options;
    if (legacyUntil === undefined) return undefined;
    const untilMs = timestampMs(legacyUntil);
    if (untilMs === undefined) {
      return new GuardUnavailable("configuration", "the deadline of the legacy store is no full timestamp");
    }
    if (nowMs >= untilMs) return undefined;
    return legacyReader ?? new GuardUnavailable("configuration", "there is no reader of the legacy store");
  }

  async #isTooOften({ address, principal }: ReplayAsk): Promise<boolean> {
    const refusal = this.#preLimits.hit([
      { key: await memoryKey("principal", principal), windows: [{ limit: 20, periodMs: PRE_LIMIT_MS }] },
      { key: await memoryKey("source", sourceOf(address)), windows: [{ limit: 60, periodMs: PRE_LIMIT_MS }] },
    ]);
    return refusal !== undefined;
  }

  #replay(key: string, leftMs: number, from: "store" | "legacy"): Decision<Used> {
    const verdict = new Refusal("token_replayed");
    this.#replayed.remember(key, verdict, leftMs);
    return { verdict, from };
  }
}

/** When the winner claimed the use, or `undefined` if this is the first one. */
async function claim(
  guard: Guard,
  scope: string,
  ask: ReplayAsk,
  nowMs: number,
): Promise<number | undefined> {
  const { token, expiresAtMs, address, principal } = ask;
  const ttlMs = Math.min(TTL_MS_MAX, Math.ceil(expiresAtMs - nowMs) + MARGIN_MS);
  const { steps } = await guard.withFairness({ address, principal }).run({
    family: "replay",
    steps: [
      {
        partition: `replay:${scope}:${token}`,
        commands: [{ cmd: "kv.set", key: "use", value: `${nowMs}`, ttl_ms: ttlMs, mode: "nx" }],
      },
    ],
  });
  const [{ written, current }] = resultsOf(steps[0]);
  if (written) return undefined;
  // Neither used nor unused: not known.
  if (current === null || !/^\d{1,16}$/.test(current)) {
    throw new GuardUnavailable("unavailable", "a fence's record holds no time");
  }
  return Number(current);
}

type Used = Exclude<ReplayVerdict, Refused>;
type LegacyReader = NonNullable<ReplayFenceOptions["legacyReader"]>;

const FIRST: Used = Object.freeze({ allowed: true, use: "first" });
/** When the legacy store has a token, it does not tell when it was used. */
const LONG_AGO = "long ago";
const GRACE_MS_DEFAULT = 10_000;
const PRE_LIMIT_MS = 60_000;
/** Whatever is left of the minute: who is told less comes again at once. */
const PRE_LIMIT_WAIT_MS = 60_000;
/** A fence outlives its token by this, whatever the clocks of the two sides differ by. */
const MARGIN_MS = 60_000;
