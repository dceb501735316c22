/** The windows of a ready-made limit. */

import { SLIDING_PERIOD_MS_MAX, TTL_MS_MAX, TTL_MS_MIN } from "../bounds.js";
import { periodText } from "../duration.js";
import { GuardUnavailable } from "../error.js";
import { Refusal, type WindowState } from "../refusal.js";
import type { Window } from "../request.js";
import type { HitResult, StepResult } from "../response.js";

/** A limit in a period. */
export interface LimitWindow {
  /** 0 admits nobody. */
  readonly limit: number;
  /** 1 s to 120 days; a sliding window's to 60 days. */
  readonly periodMs: number;
  /** `sliding` if absent. */
  readonly algorithm?: "sliding" | "fixed" | "bucket";
}

/** Refuses windows that no store would take, or that are too many or two of one period.
 * @throws {RangeError} */
export function checkWindows(windows: readonly LimitWindow[], min: number, max: number): void {
  if (windows.length < min || windows.length > max) {
    throw new RangeError(`a limit must have ${min} to ${max} windows`);
  }
  for (const { limit, periodMs, algorithm = "sliding" } of windows) {
    const longestMs = algorithm === "sliding" ? SLIDING_PERIOD_MS_MAX : TTL_MS_MAX;
    if (!Number.isSafeInteger(limit) || limit < 0) throw new RangeError("a window's limit must be 0 or more");
    if (!Number.isSafeInteger(periodMs) || periodMs < TTL_MS_MIN || periodMs > longestMs) {
      throw new RangeError(`a window's periodMs must be from ${TTL_MS_MIN} to ${longestMs}`);
    }
  }
  if (new Set(windows.map(({ periodMs }) => periodMs)).size < windows.length) {
    throw new RangeError("the windows of a limit must have different periods");
  }
}

/** The windows as a request has them: their keys are their periods. */
export function wireWindows(windows: readonly LimitWindow[]): Window[] {
  return windows.map(({ limit, periodMs, algorithm = "sliding" }) => ({
    key: periodText(periodMs),
    limit,
    period_ms: periodMs,
    algorithm,
  }));
}

/** The results of a step that ran.
 * @throws {GuardUnavailable} It did not, which no guard store says of a step that limits send. */
export function resultsOf<S extends StepResult>(step: S): Extract<S, { status: "ok" | "denied" }>["results"] {
  if (step.status !== "ok" && step.status !== "denied") {
    throw new GuardUnavailable("transport", `a step was ${step.status}`);
  }
  return step.results as Extract<S, { status: "ok" | "denied" }>["results"];
}

/** The refusal of a denied `win.hit`. */
export function rateLimited(windows: readonly LimitWindow[], hit: HitResult): Refusal {
  const states = windows.map(({ limit, periodMs }, index) => {
    const { remaining, reset_ms } = hit.windows[index] ?? { remaining: 0, reset_ms: periodMs };
    return { periodMs, limit, remaining, resetMs: reset_ms };
  });
  return refusalOf(states, hit.retry_after_ms);
}

/** A refusal by windows. Where waiting can't help, its wait is until the last of them resets. */
export function refusalOf(states: readonly WindowState[], waitMs: number | null): Refusal {
  const longestMs = Math.max(1, ...states.map(({ resetMs }) => resetMs));
  return new Refusal("rate_limited", waitMs ?? longestMs, states);
}
