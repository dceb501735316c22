/** Route limits for Express, and for whatever has its middleware over `node:http`. */

import type { RouteAsk, RouteLimiter } from "../limits/route.js";
import type { Refusal } from "../refusal.js";

/** What is used of a request. Express gives `ip` as its `trust proxy` setting says. */
export interface ExpressRequest {
  readonly ip?: string | undefined;
}

/** What is used of a response. */
export interface ExpressResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

/** A middleware that refuses whom `limiter` refuses. Asked with the request's `ip` where `ask` is absent. */
export function expressRouteLimit<R extends ExpressRequest>(
  limiter: RouteLimiter,
  ask: (request: R) => RouteAsk = ({ ip }) => ({ address: ip }),
): (request: R, response: ExpressResponse, next: (error?: unknown) => void) => void {
  const decide = async (request: R) => limiter.check(ask(request));
  return (request, response, next) => {
    decide(request)
      .then((verdict) => (verdict.allowed ? next() : refuse(response, verdict.refusal)))
      .catch(next);
  };
}

function refuse(response: ExpressResponse, refusal: Refusal): void {
  response.statusCode = refusal.status;
  for (const [name, value] of Object.entries(refusal.headers())) response.setHeader(name, value);
  response.end(refusal.body());
}
