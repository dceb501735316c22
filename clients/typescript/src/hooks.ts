/** Where an application hangs its tracing and metrics. No event holds an identity, a name or a digest. */

import type { Reason } from "./error.js";
import type { RefusalCode } from "./refusal.js";

/** Called as things happen; what they throw is dropped. */
export interface Hooks {
  /** A call to the guard store has ended. */
  readonly onCall?: (event: CallEvent) => void;
  /** A ready-made limit has decided. */
  readonly onDecision?: (event: DecisionEvent) => void;
}

export interface CallEvent {
  readonly family: string;
  /** Commands of the request: what it spends of the family's budget if it is admitted. */
  readonly commands: number;
  readonly outcome: "ok" | "denied" | Reason;
  readonly durationMs: number;
}

export interface DecisionEvent {
  readonly limit: "route" | "bulk_read" | "replay" | "attempt";
  readonly scope: string;
  readonly family: string;
  readonly outcome: "allowed" | "grace" | RefusalCode;
  readonly from: DecidedBy;
  /** In observe mode: this refusal was only told here, and the caller has passed. */
  readonly observed: boolean;
  /** Why the guard store gave no answer, if it gave none. */
  readonly unavailable: Reason | undefined;
  readonly durationMs: number;
}

/** The guard store, what this instance remembers, this instance's own counters, the application's legacy
 * path, or nobody: there was nothing to ask. */
export type DecidedBy = "store" | "memory" | "instance" | "legacy" | "none";

/** Calls a hook. A fault in it must not become one of the request. */
export function emit<E>(hook: ((event: E) => void) | undefined, event: E): void {
  try {
    hook?.(event);
  } catch {
    // The application's own; there is nobody to tell.
  }
}
