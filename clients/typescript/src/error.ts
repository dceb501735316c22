/** Why there is no answer: one error, with its reason. */

/**
 * Why there is no answer to act on.
 *
 * - `timeout`, `transport`, `unavailable`: the request may have been executed; the same operation id tells.
 * - all others: nothing was executed.
 */
export type Reason =
  /** Nothing came in time. */
  | "timeout"
  /** The connection could not be made or broke, or what answered is no guard store. */
  | "transport"
  /** The server does not know the secret, or the clocks differ. */
  | "authentication"
  /** The client can't be made of what it was given. */
  | "configuration"
  /** The request is out of bounds, here or there. */
  | "bad_request"
  /** The operation id is known with other commands. */
  | "conflict"
  /** An identity's share of the day is spent. */
  | "limited"
  /** An operator or a spent budget stops the family. */
  | "stopped"
  /** The server can't answer now. */
  | "unavailable"
  /** The family is switched off here, on purpose or by a faulty configuration. */
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
