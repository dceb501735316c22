/** Why there is no answer: one error, with its reason. */

/**
 * Why there is no answer to act on. After `timeout`, `transport` and `unavailable` the request may have been
 * executed, and the same operation id tells; after all others nothing was.
 */
export type Reason =
  /** No whole answer in time. */
  | "timeout"
  /** No connection, a broken one, or an answer that is none of a guard store's. */
  | "transport"
  /** The server does not know the secret, or the clocks differ. */
  | "authentication"
  /** The configuration is incomplete or invalid; nothing was sent. */
  | "configuration"
  /** The request is out of bounds, here or there, or its operation id is known with other commands. */
  | "request"
  /** An operator or a spent budget stops the family. */
  | "stopped"
  /** An identity's share of the day is spent. */
  | "limited"
  /** The server can't answer now, or too many calls are under way. */
  | "unavailable"
  /** The guard store is switched off here; nothing was sent. */
  | "off";

/** What {@link GuardUnavailable} knows beside its reason. */
export interface Details {
  /** Which kind of stop, for `stopped`. */
  readonly stop?: StopReason | undefined;
  /** Whose share is spent, for `limited`: `source`, `network/24`, … or `principal`. */
  readonly axis?: string | undefined;
  /** How long to wait, where the server said so. */
  readonly retryAfterMs?: number | undefined;
  /** What lies beneath. */
  readonly cause?: unknown;
}

/** Which kind of stop; later servers may have more. */
export type StopReason = "operator_stop" | "budget_exhausted" | "budget_insufficient" | (string & {});

/** The guard store gave no answer to act on. Callers apply their fail mode. */
export class GuardUnavailable extends Error {
  override readonly name = "GuardUnavailable";
  readonly reason: Reason;
  readonly stop: StopReason | undefined;
  readonly axis: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(reason: Reason, message: string, { stop, axis, retryAfterMs, cause }: Details = {}) {
    super(`the guard store is unavailable: ${message}`, cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.stop = stop;
    this.axis = axis;
    this.retryAfterMs = retryAfterMs;
  }
}
