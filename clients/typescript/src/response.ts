/** What the guard store answers, with the type of each result following from its command. */

import type { Command, GuardRequest, Step } from "./request.js";

/** The answer to a request that was admitted. */
export interface GuardResponse<R extends GuardRequest = GuardRequest> {
  readonly op: string;
  /** The store's clock, unix time. */
  readonly now_ms: number;
  /** Whether any step was denied. */
  readonly denied: boolean;
  /** One for each of the request's. */
  readonly steps: StepResults<R["steps"]>;
}

type StepResults<S extends readonly Step[]> = { readonly [I in keyof S]: StepResult<S[I]> };
type CommandResults<C extends readonly Command[]> = { readonly [I in keyof C]: ResultOf<C[I]> };

/** What became of a step. */
export type StepResult<S extends Step = Step> =
  | {
      /** `denied`: a `win.hit` or `res.reserve` of the step had no room; its other commands ran. */
      readonly status: "ok" | "denied";
      /** The results are those of an earlier call with the same operation id; nothing changed now. */
      readonly replayed: boolean;
      readonly results: CommandResults<S["commands"]>;
    }
  | {
      /** Nothing of the step was written. */
      readonly status: "failed";
      readonly replayed: boolean;
      readonly results: readonly [];
      readonly error: { readonly code: StepErrorCode; readonly message: string; readonly command: number };
    }
  | {
      /** An earlier step of a sequential request was denied or failed. */
      readonly status: "skipped";
      readonly replayed: boolean;
      readonly results: readonly [];
    };

/** Why a step failed; later servers may have more. */
export type StepErrorCode = "not_an_integer" | "overflow" | (string & {});

/** The result of a command. */
export type ResultOf<C extends Command> = Results[C["cmd"]];

interface Results {
  readonly "win.hit": HitResult;
  readonly "kv.get": GetResult;
  readonly "kv.set": SetResult;
  readonly "kv.del": { readonly deleted: boolean };
  readonly "kv.ttl": { readonly ttl_ms: number | null };
  readonly "kv.expire": { readonly updated: boolean };
  readonly "kv.incr": { readonly value: number; readonly ttl_ms: number };
  readonly "res.reserve": ReserveResult;
  readonly "res.refund": RefundResult;
}

export interface HitResult {
  readonly allowed: boolean;
  /** In the order of the command's. */
  readonly windows: readonly Usage[];
  /** 0 when allowed; `null` if waiting can't help. */
  readonly retry_after_ms: number | null;
}

export interface GetResult {
  /** `null` if there is no record. */
  readonly value: string | null;
  readonly ttl_ms: number | null;
}

export interface SetResult {
  readonly written: boolean;
  /** The value that stands when a write was refused. */
  readonly current: string | null;
}

export type ReserveResult =
  | {
      readonly reserved: true;
      /** What gives it back; absent for a cost of 0. */
      readonly receipt?: string;
      readonly budgets: readonly Usage[];
    }
  | {
      readonly reserved: false;
      /** The indexes of the budgets that had no room. */
      readonly denied_by: readonly number[];
      /** `null` if waiting can't help. */
      readonly retry_after_ms: number | null;
      readonly budgets: readonly Usage[];
    };

export type RefundResult =
  | { readonly refunded: true }
  | { readonly refunded: false; readonly reason: "already_refunded" | "unknown_or_expired" };

/** How far a window or a budget is used. */
export interface Usage {
  readonly limit: number;
  readonly used: number;
  readonly remaining: number;
  /** From now. */
  readonly reset_ms: number;
}
