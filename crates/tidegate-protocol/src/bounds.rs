//! The bounds of a request. The server enforces them, and clients do before they send.

pub use tidegate_core::INTEGER_MAX;

/// A request's body. The largest sensible batch fits several times; a hostile one costs little to refuse.
pub const BODY_BYTES_MAX: usize = 16 * 1024;
/// Steps of a request.
pub const STEPS_MAX: usize = 16;
/// Commands of a step.
pub const STEP_COMMANDS_MAX: usize = 8;
/// Commands of a request: what one call may spend of a family's budget.
pub const RPC_COMMANDS_MAX: usize = 32;
/// Windows of a `win.hit`.
pub const WINDOWS_MAX: usize = 4;
/// Budgets of a `res.reserve`.
pub const BUDGETS_MAX: usize = 4;
/// Networks of a request's fairness: one for each prefix that there is.
pub const NETWORKS_MAX: usize = 3;
/// A record's value, in bytes of UTF-8.
pub const VALUE_BYTES_MAX: usize = 2 * 1024;
/// The shortest life and the shortest period: 1 s.
pub const TTL_MS_MIN: u64 = 1000;
/// The longest life and the longest period: 120 days.
pub const TTL_MS_MAX: u64 = tidegate_core::LIFE_MS_MAX;
/// The longest period of a sliding window, which keeps two: 60 days.
pub const SLIDING_PERIOD_MS_MAX: u64 = TTL_MS_MAX / 2;
/// The fewest characters of an operation's id: 128 random bits.
pub const OPERATION_CHARS_MIN: usize = 22;
/// The most characters of an operation's id.
pub const OPERATION_CHARS_MAX: usize = 64;
/// The most characters of a family's name.
pub const FAMILY_CHARS_MAX: usize = 64;
/// The characters of a digest: 256 bits in base64url.
pub const DIGEST_CHARS: usize = 43;
/// The characters of a receipt: 128 bits in base64url.
pub const RECEIPT_CHARS: usize = 22;
/// How far the time of a signature may lie from the server's, either way: 60 s.
pub const SKEW_MS_MAX: u64 = 60_000;
/// Secrets that a server accepts at once: enough for any rotation, and each one costs an HMAC a request.
pub const SECRETS_MAX: usize = 8;
