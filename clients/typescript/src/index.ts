/**
 * A client of the Tidegate guard store. It hashes names and identities, signs, sends once, and never retries:
 * every failure is a {@link GuardUnavailable} that says why. The ready-made limits know what that means.
 */

export { type Guard, GuardClient, type GuardClientOptions } from "./client.js";
export type { Clock } from "./clock.js";
export { type Details, GuardUnavailable, type Reason, type StopReason } from "./error.js";
export { type ExpressRequest, type ExpressResponse, expressRouteLimit } from "./fits/express.js";
export { type FastifyReply, type FastifyRequest, fastifyRouteLimit } from "./fits/fastify.js";
export { withRouteLimit } from "./fits/fetch.js";
export type { CallEvent, DecidedBy, DecisionEvent, Hooks } from "./hooks.js";
export {
  type Attempt,
  type AttemptAsk,
  type AttemptBudget,
  AttemptLimiter,
  type AttemptLimiterOptions,
  type AttemptVerdict,
  type Refunding,
} from "./limits/attempt.js";
export { type BulkReadAsk, BulkReadGuard, type BulkReadGuardOptions } from "./limits/bulk-read.js";
export type { Allowed, LimitOptions, Log, Refused, Verdict } from "./limits/limit.js";
export { type ReplayAsk, ReplayFence, type ReplayFenceOptions, type ReplayVerdict } from "./limits/replay.js";
export { type RouteAsk, RouteLimiter, type RouteLimiterOptions } from "./limits/route.js";
export type { LimitWindow } from "./limits/windows.js";
export { Refusal, type RefusalCode, type WindowState } from "./refusal.js";
export type * from "./request.js";
export { operationId } from "./request.js";
export type * from "./response.js";
export { type ClientEnvironment, type Family, Selection, type SelectionOptions } from "./selection.js";
export type { Fetch } from "./transport.js";
export type { Fairness } from "./wire.js";
