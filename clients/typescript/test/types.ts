/** What the compiler must know of the client; compiled with the tests, never run. */

import type {
  Attempt,
  AttemptLimiter,
  Command,
  GuardClient,
  HitResult,
  Refused,
  ReplayFence,
  RouteLimiter,
} from "@tidegate/client";
import { expressRouteLimit, fastifyRouteLimit } from "@tidegate/client";
import type { RequestHandler } from "express";
import type { onRequestAsyncHookHandler } from "fastify";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <_ extends true>(): void => {};

export async function results(client: GuardClient): Promise<void> {
  const { steps } = await client.run({
    family: "proxy",
    steps: [
      { partition: "p", commands: [{ cmd: "win.hit", windows: [{ key: "k", limit: 1, period_ms: 1000 }] }] },
      {
        partition: "q",
        commands: [
          { cmd: "kv.get", key: "k" },
          { cmd: "kv.del", key: "k" },
        ],
      },
    ],
  });
  const [hits, records] = steps;
  // There is a step for each step, and nothing is known of its results before its status is.
  holds<Same<(typeof steps)["length"], 2>>();
  if (hits.status === "ok" || hits.status === "denied") holds<Same<(typeof hits.results)[0], HitResult>>();
  if (hits.status === "skipped") holds<Same<typeof hits.results, readonly []>>();
  if (records.status === "failed") holds<Same<typeof records.error.command, number>>();
  if (records.status === "ok") {
    holds<Same<(typeof records.results)[0]["value"], string | null>>();
    holds<Same<(typeof records.results)[1]["deleted"], boolean>>();
    // @ts-expect-error: two commands have no third result.
    records.results[2];
  }
}

export const commands: Command[] = [
  // @ts-expect-error: no such command.
  { cmd: "kv.all", key: "k" },
  // @ts-expect-error: a window has a period.
  { cmd: "win.hit", windows: [{ key: "k", limit: 1 }] },
  // @ts-expect-error: an absent field is left out.
  { cmd: "kv.incr", key: "k", ttl_ms: 1000, by: undefined },
  // @ts-expect-error: a field of another command.
  { cmd: "kv.get", key: "k", ttl_ms: 1000 },
];

export async function verdicts(fence: ReplayFence, attempts: AttemptLimiter): Promise<void> {
  const use = await fence.claim({ token: "t", expiresAtMs: 0, address: null, principal: "p" });
  if (use.allowed) holds<Same<typeof use.use, "first" | "grace">>();
  if (use.allowed && use.use === "grace") holds<Same<typeof use.firstUseMs, number>>();
  if (!use.allowed) holds<Same<typeof use, Refused>>();
  // @ts-expect-error: nothing is known of a verdict before it is looked at.
  use.refusal;
  const attempt = await attempts.begin({ address: undefined, target: "alice" });
  if (attempt.allowed) holds<Same<typeof attempt, Attempt>>();
  // @ts-expect-error: whose token it is must be said.
  fence.claim({ token: "t", expiresAtMs: 0, address: null });
}

export function frameworks(limiter: RouteLimiter): [RequestHandler, onRequestAsyncHookHandler] {
  return [
    expressRouteLimit(limiter, (request) => ({ address: request.ip })),
    fastifyRouteLimit(limiter, (request) => ({ address: request.ip })),
  ];
}
