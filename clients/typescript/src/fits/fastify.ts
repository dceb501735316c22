/** Route limits for Fastify. */

import type { RouteAsk, RouteLimiter } from "../limits/route.js";

/** What is used of a request. Fastify gives `ip` as its `trustProxy` setting says. */
export interface FastifyRequest {
  readonly ip: string;
}

/** What is used of a reply. */
export interface FastifyReply {
  code(status: number): unknown;
  headers(values: Record<string, string>): unknown;
  send(body: string): unknown;
}

/** An `onRequest` hook that refuses whom `limiter` refuses. Asked with the request's `ip` where `ask` is
 * absent. */
export function fastifyRouteLimit<Q extends FastifyRequest, P extends FastifyReply>(
  limiter: RouteLimiter,
  ask: (request: Q) => RouteAsk = ({ ip }) => ({ address: ip }),
): (request: Q, reply: P) => Promise<unknown> {
  return async (request, reply) => {
    const verdict = await limiter.check(ask(request));
    if (verdict.allowed) return undefined;
    const { refusal } = verdict;
    reply.code(refusal.status);
    reply.headers(refusal.headers());
    reply.send(refusal.body());
    // Fastify takes a hook that gives back the reply for one that has answered.
    return reply;
  };
}
