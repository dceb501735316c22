/** The client: checks, hashes, signs and sends, once. */

import { readRefusal, readResponse } from "./answer.js";
import { BODY_BYTES_MAX, TIMEOUT_MS_DEFAULT, TIMEOUT_MS_MAX, TIMEOUT_MS_MIN } from "./bounds.js";
import { requestFault } from "./check.js";
import { GuardUnavailable, type Reason } from "./error.js";
import { Hmac } from "./hmac.js";
import { emit, type Hooks } from "./hooks.js";
import { type GuardRequest, operationId } from "./request.js";
import type { GuardResponse } from "./response.js";
import { secretFault } from "./secret.js";
import { type Fetch, type RawAnswer, readOrigin, Transport } from "./transport.js";
import { type Fairness, wireText } from "./wire.js";

/** What runs requests: a {@link GuardClient}, a view of one, or what stands for one that is switched off. */
export interface Guard {
  /**
   * Sends a request, once.
   * @throws {GuardUnavailable} There is no answer, or it is a refusal.
   */
  run<const R extends GuardRequest>(request: R): Promise<GuardResponse<R>>;
  /** A view whose calls are charged to `fairness`. */
  withFairness(fairness: Fairness): Guard;
  /** How long a call may take. */
  readonly timeoutMs: number;
  /** Why every call fails, where there is no guard store to call. */
  readonly off?: GuardUnavailable | undefined;
}

/** How a client may differ from the ordinary one. */
export interface GuardClientOptions {
  /** How long a call may take; held between 100 and 2000. 750 if absent. */
  readonly timeoutMs?: number;
  /** Hashes source, network and principal instead of the pepper, so that services share one allowance. */
  readonly fairnessPepper?: string;
  /** Instead of the global one: a Worker's service binding, say. */
  readonly fetch?: Fetch;
  readonly hooks?: Hooks;
}

/** What all views of a client share. */
interface Core {
  readonly transport: Transport;
  readonly timeoutMs: number;
  readonly names: Hmac;
  readonly fairness: Hmac;
  readonly hooks: Hooks;
}

class View implements Guard {
  readonly #core: Core;
  readonly #fairness: Fairness | undefined;

  constructor(core: Core, fairness: Fairness | undefined) {
    this.#core = core;
    this.#fairness = fairness;
  }

  get timeoutMs(): number {
    return this.#core.timeoutMs;
  }

  async run<const R extends GuardRequest>(request: R): Promise<GuardResponse<R>> {
    const fault = requestFault(request);
    if (fault !== undefined) throw new GuardUnavailable("request", fault);
    const startedMs = performance.now();
    try {
      const response = await this.#exchange(request);
      this.#report(request, response.denied ? "denied" : "ok", startedMs);
      return response;
    } catch (error) {
      if (error instanceof GuardUnavailable) this.#report(request, error.reason, startedMs);
      throw error;
    }
  }

  withFairness(fairness: Fairness): Guard {
    return new View(this.#core, { ...fairness });
  }

  async #exchange<R extends GuardRequest>(request: R): Promise<GuardResponse<R>> {
    const op = request.op ?? operationId();
    const text = await wireText(request, op, this.#fairness, this.#core);
    const body = new TextEncoder().encode(text);
    if (body.length > BODY_BYTES_MAX) throw new GuardUnavailable("request", "must be at most 16 KiB");
    const answer = await this.#core.transport.post(body);
    const response = answer.status === 200 ? readResponse(answer.text, request, op) : undefined;
    if (response === undefined) throw refused(answer);
    return response;
  }

  #report(request: GuardRequest, outcome: "ok" | "denied" | Reason, startedMs: number): void {
    const commands = request.steps.reduce((sum, step) => sum + step.commands.length, 0);
    const durationMs = performance.now() - startedMs;
    emit(this.#core.hooks.onCall, { family: request.family, commands, outcome, durationMs });
  }
}

/** A handle on a guard store. Views of it share what it holds; its secrets show in no inspection or JSON. */
export class GuardClient extends View {
  /**
   * A client that signs its requests and sends them to `url`: https, or http to this machine.
   * @throws {GuardUnavailable} With reason `configuration`: the URL, the secret or a pepper can't be used.
   */
  constructor(url: string, secret: string, pepper: string, options: GuardClientOptions = {}) {
    const { fairnessPepper, fetch = globalFetch, hooks = {}, timeoutMs = TIMEOUT_MS_DEFAULT } = options;
    const { origin, fault } = readOrigin(url);
    if (origin === undefined) throw new GuardUnavailable("configuration", fault);
    requireSecret("the secret", secret);
    requireSecret("the pepper", pepper);
    if (fairnessPepper !== undefined) requireSecret("the fairness pepper", fairnessPepper);
    const names = new Hmac(pepper);
    const fairness = fairnessPepper === undefined ? names : new Hmac(fairnessPepper);
    const clampedMs = clamped(timeoutMs);
    const transport = new Transport(origin, new Hmac(secret), fetch, clampedMs);
    super({ transport, timeoutMs: clampedMs, names, fairness, hooks }, undefined);
  }
}

function requireSecret(what: string, text: string): void {
  const fault = secretFault(text);
  if (fault !== undefined) throw new GuardUnavailable("configuration", `${what} ${fault}`);
}

function clamped(timeoutMs: number): number {
  if (Number.isNaN(timeoutMs)) throw new GuardUnavailable("configuration", "the time-out is no number");
  return Math.min(TIMEOUT_MS_MAX, Math.max(TIMEOUT_MS_MIN, timeoutMs));
}

function refused({ status, text }: RawAnswer): GuardUnavailable {
  const refusal = status === 200 ? undefined : readRefusal(text);
  const reason = refusal && REASONS.get(refusal.code);
  if (refusal === undefined || reason === undefined) {
    return new GuardUnavailable("transport", `what answered (${status}) is no guard store`);
  }
  return new GuardUnavailable(reason, refusal.message, refusal);
}

const REASONS: ReadonlyMap<string, Reason> = new Map([
  ["bad_request", "request"],
  ["body_too_large", "request"],
  ["unauthenticated", "authentication"],
  ["operation_conflict", "request"],
  ["guard_limited", "limited"],
  ["guard_stopped", "stopped"],
  ["guard_unavailable", "unavailable"],
]);

// Workers want it called without another `this`, and a test may replace the global one later.
const globalFetch: Fetch = (url, init) => fetch(url, init);
