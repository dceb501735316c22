/** From a request with names to the JSON that is sent, which has digests in their places. */

import { networksOf, sourceOf } from "./address.js";
import type { Hmac } from "./hmac.js";
import { type Digest, digest, type Purpose } from "./identity.js";
import type { Command, GuardRequest } from "./request.js";

/** Whom a call is charged to. */
export interface Fairness {
  /** The caller's address as it came in. Missing or unreadable, it is charged as `unknown`. */
  readonly address?: string | null | undefined;
  /** The prefixes of the networks around it that are charged too; all that it has if absent. */
  readonly networks?: readonly (24 | 48 | 56)[];
  /** The user, account or token's owner, where one is verified. */
  readonly principal?: string | undefined;
}

/** The JSON of `request` under `op`. */
export async function wireText(
  request: GuardRequest,
  op: string,
  fairness: Fairness | undefined,
  peppers: { readonly names: Hmac; readonly fairness: Hmac },
): Promise<string> {
  const hash = hasher(peppers.names);
  const { family, mode, good, steps } = request;
  const hashed = steps.map(async ({ partition, commands }) => ({
    partition: await hash("partition", partition),
    commands: await Promise.all(commands.map((command) => hashedCommand(command, hash))),
  }));
  return JSON.stringify({
    op,
    family,
    mode,
    good,
    fairness: fairness && (await hashedFairness(fairness, hasher(peppers.fairness))),
    steps: await Promise.all(hashed),
  });
}

type Hash = (purpose: Purpose, value: string) => Promise<Digest>;

/** Hashes each name of a request once. */
function hasher(pepper: Hmac): Hash {
  const known = new Map<string, Promise<Digest>>();
  return (purpose, value) => {
    const name = `${purpose}\0${value}`;
    const made = known.get(name) ?? digest(pepper, purpose, value);
    known.set(name, made);
    return made;
  };
}

// Field by field, so that nothing else of an object that the application handed over is sent.
async function hashedCommand(command: Command, hash: Hash): Promise<object> {
  const { cmd } = command;
  switch (cmd) {
    case "win.hit": {
      const windows = command.windows.map(async ({ key, limit, period_ms, algorithm }) => ({
        key: await hash("key", key),
        limit,
        period_ms,
        algorithm,
      }));
      return { cmd, windows: await Promise.all(windows), cost: command.cost };
    }
    case "res.reserve": {
      const budgets = command.budgets.map(async ({ key, limit, period_ms }) => ({
        key: await hash("key", key),
        limit,
        period_ms,
      }));
      return { cmd, budgets: await Promise.all(budgets), target: command.target, cost: command.cost };
    }
    case "kv.set": {
      const { value, ttl_ms, mode, keep_ttl } = command;
      return { cmd, key: await hash("key", command.key), value, ttl_ms, mode, keep_ttl };
    }
    case "kv.expire":
      return { cmd, key: await hash("key", command.key), ttl_ms: command.ttl_ms };
    case "kv.incr":
      return { cmd, key: await hash("key", command.key), by: command.by, ttl_ms: command.ttl_ms };
    case "res.refund":
      return { cmd, receipt: command.receipt };
    default:
      return { cmd, key: await hash("key", command.key) };
  }
}

async function hashedFairness({ address, networks, principal }: Fairness, hash: Hash): Promise<object> {
  const asked = networksOf(address).filter(({ prefix }) => networks?.includes(prefix) ?? true);
  const hashed = asked.map(async ({ prefix, text }) => ({ prefix, digest: await hash("network", text) }));
  return {
    source: await hash("source", sourceOf(address)),
    networks: await Promise.all(hashed),
    principal: principal === undefined ? undefined : await hash("principal", principal),
  };
}
