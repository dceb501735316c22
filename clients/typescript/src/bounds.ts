/** The bounds of a request. The server enforces them too. */

export const BODY_BYTES_MAX = 16 * 1024;
export const STEPS_MAX = 16;
export const STEP_COMMANDS_MAX = 8;
export const RPC_COMMANDS_MAX = 32;
export const WINDOWS_MAX = 4;
export const BUDGETS_MAX = 4;
/** A record's value, in bytes of UTF-8. */
export const VALUE_BYTES_MAX = 2 * 1024;
/** The shortest life and the shortest period: 1 s. */
export const TTL_MS_MIN = 1000;
/** The longest life and the longest period: 120 days. */
export const TTL_MS_MAX = 120 * 24 * 60 * 60 * 1000;
/** The longest period of a sliding window, which keeps two: 60 days. */
export const SLIDING_PERIOD_MS_MAX = TTL_MS_MAX / 2;

/** The shortest time-out that is taken: less would fail on an ordinary network. */
export const TIMEOUT_MS_MIN = 100;
/** How long a call may take where nothing else is said. */
export const TIMEOUT_MS_DEFAULT = 750;
/** The longest time-out: the server itself gives up after this. */
export const TIMEOUT_MS_MAX = 2000;
/** Far more than the largest answer: 32 commands whose results hold 2 KiB of escaped text each. */
export const ANSWER_BYTES_MAX = 1024 * 1024;

/** Calls of one client that are under way: a store that hangs must not hang the application. */
export const CALLS_MAX = 512;

/** Entries of every map in memory; the oldest is dropped first. */
export const MEMORY_ENTRIES_MAX = 10_000;
/** What a caller is told to wait for while the store is unavailable: 30 s. */
export const UNAVAILABLE_RETRY_MS = 30_000;
