/** What protects which route. */

import { AttemptLimiter, BulkReadGuard, ReplayFence, RouteLimiter, type Selection } from "@tidegate/client";

const MINUTE_MS = 60_000;

export interface Limits {
  /** Every route: while the store is away each instance counts by itself. */
  readonly routes: RouteLimiter;
  /** The login: shut while the store is away. */
  readonly login: AttemptLimiter;
  /** Refresh tokens, each good for one use: shut while the store is away. */
  readonly refresh: ReplayFence;
  /** The download: shut while the store is away. */
  readonly download: BulkReadGuard;
}

export function limitsOf(selection: Selection): Limits {
  return {
    routes: new RouteLimiter({
      guard: selection.guard("proxy"),
      scope: "web",
      windows: [
        { limit: 120, periodMs: MINUTE_MS },
        { limit: 3000, periodMs: 60 * MINUTE_MS },
      ],
    }),
    login: new AttemptLimiter({
      guard: selection.guard("password"),
      scope: "login",
      source: { limit: 20, periodMs: 15 * MINUTE_MS },
      target: { limit: 5, periodMs: 15 * MINUTE_MS },
    }),
    refresh: new ReplayFence({
      guard: selection.guard("replay"),
      scope: "refresh",
      legacyUntil: selection.replayLegacyUntil,
    }),
    download: new BulkReadGuard({
      guard: selection.guard("offline"),
      scope: "download",
      actor: [{ limit: 30, periodMs: MINUTE_MS }],
    }),
  };
}
