/** Reads what came back: an answer to the request that was sent, or nothing to act on. */

import type { GuardRequest } from "./request.js";
import type { GuardResponse } from "./response.js";

/** The answer, if the bytes are one to `request` under `op`. A server that says more is understood. */
export function readResponse<R extends GuardRequest>(
  json: string,
  request: R,
  op: string,
): GuardResponse<R> | undefined {
  const answer = parse(json);
  if (!isObject(answer) || answer.op !== op) return undefined;
  const { now_ms, denied, steps } = answer;
  if (!isNumber(now_ms) || typeof denied !== "boolean" || !Array.isArray(steps)) return undefined;
  const isWhole =
    steps.length === request.steps.length &&
    request.steps.every((step, index) => isStep(steps[index], step.commands));
  return isWhole ? (answer as unknown as GuardResponse<R>) : undefined;
}

/** The refusal of a whole request, if the bytes are one. */
export function readRefusal(json: string): Refusal | undefined {
  const answer = parse(json);
  const error = isObject(answer) ? answer.error : undefined;
  if (!isObject(error) || typeof error.code !== "string" || typeof error.message !== "string") {
    return undefined;
  }
  const { code, message, reason, axis, retry_after_ms } = error;
  return {
    code,
    message,
    stop: typeof reason === "string" ? reason : undefined,
    axis: typeof axis === "string" ? axis : undefined,
    retryAfterMs: isNumber(retry_after_ms) ? retry_after_ms : undefined,
  };
}

/** Why the server refused a request. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly stop: string | undefined;
  readonly axis: string | undefined;
  readonly retryAfterMs: number | undefined;
}

function isStep(step: unknown, commands: readonly { readonly cmd: keyof typeof RESULTS }[]): boolean {
  if (!isObject(step) || typeof step.replayed !== "boolean") return false;
  const results = step.results;
  if (!Array.isArray(results)) return false;
  switch (step.status) {
    case "ok":
    case "denied":
      return (
        results.length === commands.length &&
        commands.every(({ cmd }, index) => isObject(results[index]) && RESULTS[cmd](results[index]))
      );
    case "failed":
      return results.length === 0 && isObject(step.error) && typeof step.error.code === "string";
    case "skipped":
      return results.length === 0;
    default:
      return false;
  }
}

const RESULTS = {
  "win.hit": (r: Json) => isFlag(r.allowed) && isUsages(r.windows) && isWait(r.retry_after_ms),
  "kv.get": (r: Json) => isTextOrNull(r.value) && isWait(r.ttl_ms),
  "kv.set": (r: Json) => isFlag(r.written) && isTextOrNull(r.current),
  "kv.del": (r: Json) => isFlag(r.deleted),
  "kv.ttl": (r: Json) => isWait(r.ttl_ms),
  "kv.expire": (r: Json) => isFlag(r.updated),
  "kv.incr": (r: Json) => isNumber(r.value) && isNumber(r.ttl_ms),
  "res.reserve": (r: Json) =>
    isUsages(r.budgets) &&
    (r.reserved === true
      ? r.receipt === undefined || typeof r.receipt === "string"
      : r.reserved === false && isNumbers(r.denied_by) && isWait(r.retry_after_ms)),
  "res.refund": (r: Json) => r.refunded === true || (r.refunded === false && typeof r.reason === "string"),
} as const;

type Json = Readonly<Record<string, unknown>>;

const isFlag = (value: unknown): boolean => typeof value === "boolean";
const isNumber = (value: unknown): value is number => Number.isSafeInteger(value);
const isNumbers = (value: unknown): boolean => Array.isArray(value) && value.every(isNumber);
const isWait = (value: unknown): boolean => value === null || isNumber(value);
const isTextOrNull = (value: unknown): boolean => value === null || typeof value === "string";

function isUsages(value: unknown): boolean {
  const isUsage = (usage: unknown) =>
    isObject(usage) && ["limit", "used", "remaining", "reset_ms"].every((field) => isNumber(usage[field]));
  return Array.isArray(value) && value.every(isUsage);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
