/** Denials that are remembered until they end, so that blocked repeats cost the store nothing. */

import type { Clock } from "../clock.js";
import { Memory } from "../memory.js";
import { Refusal, type RefusalCode, type WindowState } from "../refusal.js";

/** At most 10 000 denials. */
export class Denials {
  readonly #denials = new Memory<Denial>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#denials.size;
  }

  /** The refusal that is remembered, its times counted on from when it was. */
  recall(key: string): Refusal | undefined {
    const nowMs = this.#clock();
    const denial = this.#denials.get(key, nowMs);
    if (denial === undefined) return undefined;
    const left = (ms: number) => Math.max(1, ms - (nowMs - denial.sinceMs));
    const { code, retryAfterMs, windows } = denial;
    return new Refusal(
      code,
      retryAfterMs === undefined ? undefined : left(retryAfterMs),
      windows.map((window) => ({ ...window, resetMs: left(window.resetMs) })),
    );
  }

  /** Remembers a refusal for `lifeMs`. */
  remember(key: string, { code, retryAfterMs, windows }: Refusal, lifeMs: number): void {
    const sinceMs = this.#clock();
    this.#denials.put(key, sinceMs + lifeMs, { code, retryAfterMs, windows, sinceMs });
  }
}

interface Denial {
  readonly code: RefusalCode;
  readonly retryAfterMs: number | undefined;
  readonly windows: readonly WindowState[];
  readonly sinceMs: number;
}
