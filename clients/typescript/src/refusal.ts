/** What a refused caller is told, the same in every framework. */

import { UNAVAILABLE_RETRY_MS } from "./bounds.js";
import { periodText } from "./duration.js";

export type RefusalCode = keyof typeof REFUSALS;

/** How far a window is used. */
export interface WindowState {
  readonly periodMs: number;
  readonly limit: number;
  readonly remaining: number;
  /** From now. */
  readonly resetMs: number;
}

/** A refusal: a status, headers and a body to answer with. */
export class Refusal {
  readonly code: RefusalCode;
  readonly status: number;
  readonly message: string;
  /** How long to wait; `undefined` where waiting does not help. */
  readonly retryAfterMs: number | undefined;
  /** The windows that were asked, where some were. */
  readonly windows: readonly WindowState[];

  /** A refusal of your own, in a legacy path say. */
  constructor(code: RefusalCode, retryAfterMs?: number, windows: readonly WindowState[] = []) {
    this.code = code;
    [this.status, this.message] = REFUSALS[code];
    this.retryAfterMs = code === "unavailable" ? (retryAfterMs ?? UNAVAILABLE_RETRY_MS) : retryAfterMs;
    this.windows = windows;
  }

  /** `content-type`, and where they apply `retry-after`, `ratelimit-policy` and `ratelimit`. */
  headers(): Record<string, string> {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (this.retryAfterMs !== undefined) headers["retry-after"] = `${seconds(this.retryAfterMs)}`;
    if (this.windows.length > 0) {
      const items = this.windows.map((window) => this.#items(window));
      headers["ratelimit-policy"] = items.map(({ policy }) => policy).join(", ");
      headers.ratelimit = items.map(({ state }) => state).join(", ");
    }
    return headers;
  }

  /** The JSON to answer with. */
  body(): string {
    const { code, message, retryAfterMs } = this;
    return JSON.stringify({ error: { code, message, retry_after_ms: retryAfterMs } });
  }

  /** The answer, for what speaks the fetch API. */
  toResponse(): Response {
    return new Response(this.body(), { status: this.status, headers: this.headers() });
  }

  #items({ periodMs, limit, remaining, resetMs }: WindowState): { policy: string; state: string } {
    const name = JSON.stringify(periodText(periodMs));
    // A spent window has room again after the wait, which a sliding one's own end does not tell.
    const waitMs = remaining === 0 ? (this.retryAfterMs ?? resetMs) : resetMs;
    return {
      policy: `${name};q=${limit};w=${seconds(periodMs)}`,
      state: `${name};r=${remaining};t=${seconds(waitMs)}`,
    };
  }
}

/** Whole seconds, rounded up, never 0: who waits that long is not early. */
function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}

const REFUSALS = {
  rate_limited: [429, "too many requests"],
  attempts_spent: [429, "too many attempts"],
  unauthenticated: [401, "a verified session is required"],
  challenge_required: [403, "a challenge must be solved first"],
  token_replayed: [401, "the token has been used"],
  token_expired: [401, "the token has expired"],
  unavailable: [503, "temporarily unavailable"],
} as const;
