/** Reads of much at once: windows for each source and each verified actor, and a clearance after a challenge.
 * Closed while the store is unavailable. */

import { sourceOf } from "../address.js";
import { TTL_MS_MAX, TTL_MS_MIN, WINDOWS_MAX } from "../bounds.js";
import type { Guard } from "../client.js";
import { GuardUnavailable } from "../error.js";
import { memoryKey } from "../memory.js";
import { Refusal } from "../refusal.js";
import type { Command, Step } from "../request.js";
import type { StepResult } from "../response.js";
import { Denials } from "./denials.js";
import {
  ALLOWED,
  type Allowed,
  closed,
  type Decision,
  Limit,
  type LimitOptions,
  type Verdict,
} from "./limit.js";
import { checkWindows, type LimitWindow, rateLimited, resultsOf, wireWindows } from "./windows.js";

export interface BulkReadGuardOptions extends LimitOptions<BulkReadAsk, Verdict> {
  /** Up to 3 windows of each source, beside 50 000 a day. 600 a minute if absent. */
  readonly source?: readonly LimitWindow[];
  /** Up to 3 windows of each actor, beside 50 000 a day. 300 a minute if absent. */
  readonly actor?: readonly LimitWindow[];
  /** How long a challenge that was solved clears an actor: 1 s to 120 days, 1 h if absent; `null`: no
   * challenge is asked for. */
  readonly clearanceMs?: number | null;
  /** Charge calls to the shares of the source and the actor too, as a server may require. */
  readonly carryIdentities?: boolean;
}

/** Who reads. */
export interface BulkReadAsk {
  /** The caller's address as it came in. */
  readonly address: string | null | undefined;
  /** The session or user, only if it has been verified. */
  readonly actor?: string | undefined;
  /** Whether the request brought the proof of a solved challenge, which has been verified. */
  readonly hasProof?: boolean;
}

/** Bounds what each source and each actor reads. */
export class BulkReadGuard {
  readonly #limit: Limit<BulkReadAsk, Allowed>;
  readonly #scope: string;
  readonly #source: readonly LimitWindow[];
  readonly #actor: readonly LimitWindow[];
  readonly #clearanceMs: number | null;
  readonly #carries: boolean;
  readonly #denials: Denials;

  /** @throws {RangeError} The scope, a window or the clearance can't be used. */
  constructor(options: BulkReadGuardOptions) {
    const { source = SOURCE_DEFAULT, actor = ACTOR_DEFAULT, clearanceMs = CLEARANCE_MS_DEFAULT } = options;
    const isLife = (ms: number) => Number.isSafeInteger(ms) && ms >= TTL_MS_MIN && ms <= TTL_MS_MAX;
    if (clearanceMs !== null && !isLife(clearanceMs)) {
      throw new RangeError(`clearanceMs must be from ${TTL_MS_MIN} to ${TTL_MS_MAX}, or null`);
    }
    this.#scope = options.scope;
    this.#source = [...source, DAY];
    this.#actor = [...actor, DAY];
    checkWindows(this.#source, 1, WINDOWS_MAX);
    checkWindows(this.#actor, 1, WINDOWS_MAX);
    this.#clearanceMs = clearanceMs;
    this.#carries = options.carryIdentities === true;
    this.#limit = new Limit("bulk_read", "offline", options, ALLOWED);
    this.#denials = new Denials(this.#limit.clock);
  }

  /** Counts a read, if there is room for it. */
  check(ask: BulkReadAsk): Promise<Verdict> {
    return this.#limit.decide(ask, (guard) => this.#decide(guard, ask));
  }

  async #decide(guard: Guard, { address, actor, hasProof = false }: BulkReadAsk): Promise<Decision<Allowed>> {
    const source = sourceOf(address);
    const sourceKey = await memoryKey("source", source);
    const actorKey = actor === undefined ? undefined : await memoryKey("actor", actor);
    const remembered = this.#denials.recall(sourceKey) ?? (actorKey && this.#denials.recall(actorKey));
    if (remembered) return { verdict: remembered, from: "memory" };
    const steps = this.#steps(source, actor, hasProof);
    const view = this.#carries ? guard.withFairness({ address, principal: actor }) : guard;
    const answer = await this.#limit.store(async () => {
      const response = await view.run({ family: "offline", steps });
      return this.#read(response.steps, actorKey !== undefined);
    });
    if (answer instanceof GuardUnavailable) return closed(answer);
    if (answer.deniedSource !== undefined) return this.#denied(sourceKey, answer.deniedSource);
    if (actorKey === undefined) return { verdict: new Refusal("unauthenticated"), from: "store" };
    if (answer.deniedActor !== undefined) return this.#denied(actorKey, answer.deniedActor);
    const isCleared = this.#clearanceMs === null || hasProof || answer.hasClearance;
    return { verdict: isCleared ? ALLOWED : new Refusal("challenge_required"), from: "store" };
  }

  /** At most three commands: an unverified caller must not cost more than one. */
  #steps(source: string, actor: string | undefined, hasProof: boolean): Step[] {
    const hit = (windows: readonly LimitWindow[]): Command => ({
      cmd: "win.hit",
      windows: wireWindows(windows),
    });
    const first = { partition: `offline:${this.#scope}:source:${source}`, commands: [hit(this.#source)] };
    if (actor === undefined) return [first];
    const partition = `offline:${this.#scope}:actor:${actor}`;
    if (this.#clearanceMs === null) return [first, { partition, commands: [hit(this.#actor)] }];
    if (!hasProof) {
      return [first, { partition, commands: [hit(this.#actor), { cmd: "kv.get", key: CLEARANCE }] }];
    }
    const grant: Command = { cmd: "kv.set", key: CLEARANCE, value: "1", ttl_ms: this.#clearanceMs };
    return [first, { partition, commands: [hit(this.#actor)] }, { partition, commands: [grant] }];
  }

  #read([first, second]: readonly StepResult[], hasActor: boolean): Answer {
    const deniedSource = deniedOf(first, this.#source);
    if (deniedSource !== undefined || !hasActor) return { deniedSource, hasClearance: false };
    const deniedActor = deniedOf(second, this.#actor);
    const clearance = second?.results[1];
    const hasClearance = clearance !== undefined && "value" in clearance && clearance.value !== null;
    return { deniedActor, hasClearance };
  }

  #denied(key: string, refusal: Refusal): Decision<never> {
    this.#denials.remember(key, refusal, refusal.retryAfterMs ?? 0);
    return { verdict: refusal, from: "store" };
  }
}

interface Answer {
  readonly deniedSource?: Refusal | undefined;
  readonly deniedActor?: Refusal | undefined;
  readonly hasClearance: boolean;
}

/** The refusal of a step whose first command is a denied `win.hit`.
 * @throws {GuardUnavailable} The step did not run. */
function deniedOf(step: StepResult | undefined, windows: readonly LimitWindow[]): Refusal | undefined {
  const hit = step && resultsOf(step)[0];
  if (hit === undefined || !("allowed" in hit)) {
    throw new GuardUnavailable("transport", "what answered is no guard store");
  }
  return hit.allowed ? undefined : rateLimited(windows, hit);
}

const CLEARANCE = "clearance";
const CLEARANCE_MS_DEFAULT = 3_600_000;
const SOURCE_DEFAULT: readonly LimitWindow[] = [{ limit: 600, periodMs: 60_000 }];
const ACTOR_DEFAULT: readonly LimitWindow[] = [{ limit: 300, periodMs: 60_000 }];
/** Bounds what one source or one actor costs a day, whatever its other windows are. */
const DAY: LimitWindow = { limit: 50_000, periodMs: 86_400_000, algorithm: "fixed" };
