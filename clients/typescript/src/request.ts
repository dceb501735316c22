/**
 * What an application asks for. The fields are those of the protocol, but names stand where the protocol has
 * digests: the client hashes every partition and key before it sends.
 */

import { base64url } from "./base64url.js";

/** One call: steps that are admitted together and run one after the other. */
export interface GuardRequest {
  /** Which family's budget it spends. */
  readonly family: string;
  /** From {@link operationId}, to be kept by a caller that retries by itself; fresh if absent. */
  readonly op?: string;
  /** What a denied step means for the next ones: `sequential`, the default, skips them. */
  readonly mode?: "sequential" | "independent";
  /** The caller vouches that this source and principal have just succeeded. */
  readonly good?: boolean;
  /** 1 to 16. */
  readonly steps: readonly Step[];
}

/** One atomic transaction on one partition. */
export interface Step {
  /** Whose rows they are: a name, which is hashed. */
  readonly partition: string;
  /** 1 to 8, all of which run. */
  readonly commands: readonly Command[];
}

/** What to do with the rows of a partition. Rows of different kinds never collide, even under one key. */
export type Command = Hit | Get | Set | Delete | Ttl | Expire | Increment | Reserve | Refund;

/** Charges all windows or none. */
export interface Hit {
  readonly cmd: "win.hit";
  /** 1 to 4, keys distinct. */
  readonly windows: readonly Window[];
  /** 1 if absent; 0 asks without charging. */
  readonly cost?: number;
}

/** Reads a record. */
export interface Get {
  readonly cmd: "kv.get";
  readonly key: string;
}

/** Writes a record. Without `ttl_ms` it must be `xx` with `keep_ttl`: every record ends. */
export interface Set {
  readonly cmd: "kv.set";
  readonly key: string;
  /** At most 2 KiB of UTF-8. */
  readonly value: string;
  readonly ttl_ms?: number;
  /** `always` if absent; `nx` writes only a new record, `xx` only over one. */
  readonly mode?: "always" | "nx" | "xx";
  /** Keep the live expiry. */
  readonly keep_ttl?: boolean;
}

/** Removes a record. */
export interface Delete {
  readonly cmd: "kv.del";
  readonly key: string;
}

/** Asks how long a record still lives. */
export interface Ttl {
  readonly cmd: "kv.ttl";
  readonly key: string;
}

/** Gives a record a new life, from now. */
export interface Expire {
  readonly cmd: "kv.expire";
  readonly key: string;
  readonly ttl_ms: number;
}

/** Adds to a counter. The life counts only when the counter is created. */
export interface Increment {
  readonly cmd: "kv.incr";
  readonly key: string;
  /** 1 if absent; may be negative. */
  readonly by?: number;
  readonly ttl_ms: number;
}

/** Takes a cost from all budgets or from none, against a receipt. */
export interface Reserve {
  readonly cmd: "res.reserve";
  /** 1 to 4, keys distinct. */
  readonly budgets: readonly Budget[];
  /** The index of the budget that the receipt expires with; the last if absent. */
  readonly target?: number;
  /** 1 if absent; 0 asks without reserving, and gives no receipt. */
  readonly cost?: number;
}

/** Gives a reservation back, at most once. */
export interface Refund {
  readonly cmd: "res.refund";
  /** What `res.reserve` gave. */
  readonly receipt: string;
}

/** A rate window. */
export interface Window {
  readonly key: string;
  /** 0 admits nothing. */
  readonly limit: number;
  /** 1 s to 120 days; a sliding window's to 60 days. */
  readonly period_ms: number;
  /** `sliding` if absent. */
  readonly algorithm?: "sliding" | "fixed" | "bucket";
}

/** A budget of attempts, whose window begins at its first reservation. */
export interface Budget {
  readonly key: string;
  /** 0 admits nothing. */
  readonly limit: number;
  /** 1 s to 120 days. */
  readonly period_ms: number;
}

/** An id for one logical call: 128 random bits, in 22 characters. */
export function operationId(): string {
  return base64url(crypto.getRandomValues(new Uint8Array(16)));
}
