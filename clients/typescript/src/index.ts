/**
 * A client of the Tidegate guard store. It hashes names and identities, signs, sends once, and never retries:
 * every failure is a {@link GuardUnavailable} that says why.
 */

export { type Guard, GuardClient, type GuardClientOptions } from "./client.js";
export { type Details, GuardUnavailable, type Reason, type StopReason } from "./error.js";
export type { CallEvent, DecisionEvent, Hooks } from "./hooks.js";
export type { Digest, Purpose } from "./identity.js";
export type * from "./request.js";
export { operationId } from "./request.js";
export type * from "./response.js";
export type { Fetch } from "./transport.js";
export type { Fairness } from "./wire.js";
