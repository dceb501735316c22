/** The bounds of a request, checked before it is sent. */

import {
  BUDGETS_MAX,
  RPC_COMMANDS_MAX,
  SLIDING_PERIOD_MS_MAX,
  STEP_COMMANDS_MAX,
  STEPS_MAX,
  TTL_MS_MAX,
  TTL_MS_MIN,
  VALUE_BYTES_MAX,
  WINDOWS_MAX,
} from "./bounds.js";
import type { Command, GuardRequest, Hit, Reserve, Set as SetRecord } from "./request.js";

/** Where a request is out of bounds: `steps[2].commands[0].windows[1].limit: must be from 0 to …`. No value
 * that it holds is repeated. `undefined` if it is within all bounds but that of its size. */
export function requestFault(request: GuardRequest): string | undefined {
  try {
    checkRequest(request);
    return undefined;
  } catch (fault) {
    if (fault instanceof Fault) return fault.message;
    throw fault;
  }
}

class Fault extends Error {}

function checkRequest({ family, op, mode, good, steps }: GuardRequest): void {
  text("family", family, /^[a-z0-9_-]{1,64}$/, "a family's name: 1 to 64 characters of a-z, 0-9, _ and -");
  if (op !== undefined) {
    text("op", op, /^[A-Za-z0-9_-]{22,64}$/, "22 to 64 characters of A-Z, a-z, 0-9, _ and -");
  }
  oneOf("mode", mode, ["sequential", "independent"]);
  flag("good", good);
  each("steps", steps, STEPS_MAX, (step, place) => {
    name(`${place}.partition`, step.partition);
    each(`${place}.commands`, step.commands, STEP_COMMANDS_MAX, checkCommand);
  });
  const commands = steps.reduce((sum, step) => sum + step.commands.length, 0);
  if (commands > RPC_COMMANDS_MAX) fail("steps", `must hold at most ${RPC_COMMANDS_MAX} commands in all`);
}

function checkCommand(command: Command, place: string): void {
  switch (command.cmd) {
    case "win.hit":
      return checkHit(command, place);
    case "kv.get":
    case "kv.del":
    case "kv.ttl":
      return name(`${place}.key`, command.key);
    case "kv.set":
      return checkSet(command, place);
    case "kv.expire":
      name(`${place}.key`, command.key);
      return life(`${place}.ttl_ms`, command.ttl_ms);
    case "kv.incr":
      name(`${place}.key`, command.key);
      if (command.by !== undefined) number(`${place}.by`, command.by, -INTEGER_MAX, INTEGER_MAX);
      return life(`${place}.ttl_ms`, command.ttl_ms);
    case "res.reserve":
      return checkReserve(command, place);
    case "res.refund":
      return text(`${place}.receipt`, command.receipt, /^[A-Za-z0-9_-]{22}$/, RECEIPT);
    default:
      return fail(`${place}.cmd`, "must be a command of the protocol");
  }
}

function checkHit({ windows, cost }: Hit, place: string): void {
  each(`${place}.windows`, windows, WINDOWS_MAX, (window, at) => {
    name(`${at}.key`, window.key);
    number(`${at}.limit`, window.limit, 0, INTEGER_MAX);
    oneOf(`${at}.algorithm`, window.algorithm, ["sliding", "fixed", "bucket"]);
    const isSliding = (window.algorithm ?? "sliding") === "sliding";
    const longest = isSliding ? SLIDING_PERIOD_MS_MAX : TTL_MS_MAX;
    number(`${at}.period_ms`, window.period_ms, TTL_MS_MIN, longest);
  });
  distinct(`${place}.windows`, windows);
  if (cost !== undefined) number(`${place}.cost`, cost, 0, INTEGER_MAX);
}

function checkReserve({ budgets, target, cost }: Reserve, place: string): void {
  each(`${place}.budgets`, budgets, BUDGETS_MAX, (budget, at) => {
    name(`${at}.key`, budget.key);
    number(`${at}.limit`, budget.limit, 0, INTEGER_MAX);
    life(`${at}.period_ms`, budget.period_ms);
  });
  distinct(`${place}.budgets`, budgets);
  if (target !== undefined && !(Number.isInteger(target) && target >= 0 && target < budgets.length)) {
    fail(`${place}.target`, "must be the index of one of the budgets");
  }
  if (cost !== undefined) number(`${place}.cost`, cost, 0, INTEGER_MAX);
}

function checkSet({ key, value, ttl_ms, mode, keep_ttl }: SetRecord, place: string): void {
  name(`${place}.key`, key);
  if (typeof value !== "string") fail(`${place}.value`, "must be text");
  // Text has at least as many bytes as code units, so that a long one is not encoded just to be refused.
  const isShort = value.length <= VALUE_BYTES_MAX && encoder.encode(value).length <= VALUE_BYTES_MAX;
  if (!isShort || LONE_SURROGATE.test(value)) fail(`${place}.value`, "must be at most 2 KiB of UTF-8");
  oneOf(`${place}.mode`, mode, ["always", "nx", "xx"]);
  flag(`${place}.keep_ttl`, keep_ttl);
  if (ttl_ms !== undefined) return life(`${place}.ttl_ms`, ttl_ms);
  if (keep_ttl !== true) fail(`${place}.ttl_ms`, "is needed: every record ends");
  if (mode !== "xx") {
    fail(`${place}.keep_ttl`, "needs mode xx, or a ttl_ms for the case that the record is absent");
  }
}

function each<T>(place: string, list: readonly T[], max: number, check: (item: T, at: string) => void): void {
  if (!Array.isArray(list) || list.length < 1 || list.length > max) fail(place, `must be 1 to ${max}`);
  for (const [index, item] of list.entries()) {
    if (typeof item !== "object" || item === null) fail(`${place}[${index}]`, "must be an object");
    check(item, `${place}[${index}]`);
  }
}

function distinct(place: string, list: readonly { readonly key: string }[]): void {
  const keys = list.map(({ key }) => key);
  const again = keys.findIndex((key, index) => keys.indexOf(key) !== index);
  if (again >= 0) fail(`${place}[${again}].key`, "must stand once");
}

function life(place: string, value: number): void {
  number(place, value, TTL_MS_MIN, TTL_MS_MAX);
}

function number(place: string, value: number, min: number, max: number): void {
  // Minus zero is written as 0, which is what it is.
  if (!Number.isInteger(value) || value < min || value > max) fail(place, `must be from ${min} to ${max}`);
}

function name(place: string, value: string): void {
  if (typeof value !== "string" || LONE_SURROGATE.test(value)) fail(place, "must be text");
}

function text(place: string, value: string, form: RegExp, expected: string): void {
  if (typeof value !== "string" || !form.test(value)) fail(place, `must be ${expected}`);
}

function oneOf(place: string, value: string | undefined, words: readonly string[]): void {
  if (value !== undefined && !words.includes(value)) fail(place, `must be one of ${words.join(", ")}`);
}

function flag(place: string, value: boolean | undefined): void {
  if (value !== undefined && typeof value !== "boolean") fail(place, "must be true or false");
}

function fail(place: string, message: string): never {
  throw new Fault(`${place}: ${message}`);
}

const encoder = new TextEncoder();
const INTEGER_MAX = Number.MAX_SAFE_INTEGER;
const RECEIPT = "a receipt: 22 base64url characters";
/** Half of a pair, which no UTF-8 can hold: two names that differ in it would be hashed alike. */
const LONE_SURROGATE = /\p{Cs}/u;
