/** Route limits for whatever speaks the fetch API: Workers, Deno, Next.js, Hono's `app.fetch`. */

import type { RouteAsk, RouteLimiter } from "../limits/route.js";

/** `handler` behind `limiter`. Who asks is yours to say, since only you know which proxies to trust. */
export function withRouteLimit<R extends Request, Rest extends unknown[]>(
  limiter: RouteLimiter,
  ask: (request: R, ...rest: Rest) => RouteAsk | Promise<RouteAsk>,
  handler: (request: R, ...rest: Rest) => Response | Promise<Response>,
): (request: R, ...rest: Rest) => Promise<Response> {
  return async (request, ...rest) => {
    const verdict = await limiter.check(await ask(request, ...rest));
    return verdict.allowed ? handler(request, ...rest) : verdict.refusal.toResponse();
  };
}
