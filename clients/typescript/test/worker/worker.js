/** An application on Workers: the route limit before everything, and a login. */

import { AttemptLimiter, RouteLimiter, Selection, withRouteLimit } from "../../dist/index.js";

const budget = { limit: 2, periodMs: 900_000 };
let limits;

/** Made at the first request, since a Worker's environment comes with it. */
function limitsOf(env) {
  const selection = new Selection(env);
  limits ??= {
    route: new RouteLimiter({
      guard: selection.guard("proxy"),
      scope: "api",
      windows: [{ limit: 6, periodMs: 3_600_000 }],
    }),
    login: new AttemptLimiter({
      guard: selection.guard("password"),
      scope: "login",
      source: budget,
      target: budget,
    }),
  };
  return limits;
}

const address = (request) => request.headers.get("cf-connecting-ip");

async function login(request, env) {
  const { user, password } = await request.json();
  const attempt = await limitsOf(env).login.begin({ address: address(request), target: user });
  if (!attempt.allowed) return attempt.refusal.toResponse();
  if (password !== "right") return new Response("wrong", { status: 401 });
  return new Response(await attempt.succeeded());
}

export default {
  fetch: (request, env) =>
    withRouteLimit(limitsOf(env).route, () => ({ address: address(request) }), login)(request, env),
};
