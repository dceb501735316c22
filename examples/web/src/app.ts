/** The application: a request and the caller's address in, an answer out. It knows no server. */

import { randomUUID } from "node:crypto";
import { withRouteLimit } from "@tidegate/client";
import type { Limits } from "./limits.js";
import type { Token, Tokens } from "./tokens.js";
import { accountOf, type Users } from "./users.js";

export interface Parts {
  readonly limits: Limits;
  readonly tokens: Tokens;
  readonly users: Users;
  /** Whether the answer to a challenge is right, as the challenge's provider says. */
  readonly isSolved: (answer: string) => Promise<boolean>;
}

export type Handler = (request: Request, address: string | undefined) => Promise<Response>;

/** All routes, behind the route limit. */
export function appOf(parts: Parts): Handler {
  const routes: Record<string, Handler> = {
    "GET /": async () => Response.json({ hello: "world" }),
    "POST /login": (request, address) => login(parts, request, address),
    "POST /refresh": (request, address) => refresh(parts, request, address),
    "GET /download": (request, address) => download(parts, request, address),
  };
  const route: Handler = async (request, address) => {
    const handler = routes[`${request.method} ${new URL(request.url).pathname}`];
    return handler === undefined ? problem(404, "there is nothing here") : handler(request, address);
  };
  return withRouteLimit(parts.limits.routes, (_, address) => ({ address }), route);
}

async function login({ limits, tokens, users }: Parts, request: Request, address: string | undefined) {
  const { user, password } = await bodyOf(request);
  if (typeof user !== "string" || typeof password !== "string") return problem(400, "user and password");
  const account = accountOf(user);
  // Before the expensive check, so that a burst runs no more of them than there are attempts.
  const attempt = await limits.login.begin({ address, target: account });
  if (!attempt.allowed) return attempt.refusal.toResponse();
  if (!(await users.isRight(account, password))) return problem(401, "wrong user or password");
  await attempt.succeeded();
  return pair(tokens, account, randomUUID(), Date.now());
}

async function refresh({ limits, tokens }: Parts, request: Request, address: string | undefined) {
  const token = tokens.read("refresh", (await bodyOf(request)).refresh);
  if (token === undefined) return problem(401, "no refresh token of ours");
  const { id, user, expiresAtMs } = token;
  const claim = await limits.refresh.claim({ token: id, expiresAtMs, address, principal: user });
  if (!claim.allowed) return claim.refusal.toResponse();
  const usedAtMs = claim.use === "grace" ? claim.firstUseMs : Date.now();
  return pair(tokens, user, tokens.next(id), usedAtMs);
}

async function download(parts: Parts, request: Request, address: string | undefined) {
  const bearer = request.headers.get("authorization")?.replace(/^Bearer /, "");
  // Only what has been verified is an actor: a forged bearer has no windows of its own.
  const actor = parts.tokens.read("access", bearer)?.user;
  const answer = request.headers.get("x-challenge-answer");
  const hasProof = actor !== undefined && answer !== null && (await parts.isSolved(answer));
  const verdict = await parts.limits.download.check({ address, actor, hasProof });
  return verdict.allowed ? Response.json({ rows: ROWS }) : verdict.refusal.toResponse();
}

function pair(tokens: Tokens, user: string, id: string, nowMs: number): Response {
  const access: Token = { kind: "access", id: randomUUID(), user, expiresAtMs: nowMs + ACCESS_LIFE_MS };
  const refresh: Token = { kind: "refresh", id, user, expiresAtMs: nowMs + REFRESH_LIFE_MS };
  return Response.json({ access: tokens.write(access), refresh: tokens.write(refresh) });
}

async function bodyOf(request: Request): Promise<Record<string, unknown>> {
  const body: unknown = await request.json().catch(() => undefined);
  return typeof body === "object" && body !== null ? { ...body } : {};
}

function problem(status: number, message: string): Response {
  return Response.json({ error: { message } }, { status });
}

const ACCESS_LIFE_MS = 10 * 60_000;
const REFRESH_LIFE_MS = 30 * 24 * 3_600_000;
const ROWS = Array.from({ length: 1000 }, (_, number) => ({ number }));
