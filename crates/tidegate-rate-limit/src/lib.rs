//! Limits that an application keeps itself, on the store that its configuration names: sign-ins, password
//! resets, codes sent.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_rate_limit::{Attempt, Attempts, Configuration, Limits, Window};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let check_password = || true;
//! let store = Configuration::default().open().await?;
//! let limits = Limits::new(store.limit_store());
//!
//! let a_minute = Duration::from_secs(60);
//! let resets = Window::sliding("password-reset", 3, a_minute)?;
//! let decision = limits.hit(&[resets.of(&["alice@example.com"])], 1).await?;
//! assert!(decision.allowed);
//!
//! let logins = Attempts::new("login", 10, a_minute)?;
//! match limits.reserve(&[logins.of(&["alice@example.com"])]).await? {
//!     Attempt::Refused(decision) => println!("429, {:?}", decision.headers()),
//!     Attempt::Reserved(reservation) => {
//!         if check_password() {
//!             reservation.refund().await?; // a failure stays counted
//!         }
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`Configuration`]: what `rate_limit.*` says, and opening it.
//! - [`Limits`]: counting against [`Window`]s and [`Attempts`], several at once, all or none.
//! - [`RateLimitStore`], [`Counters`]: the earlier contract (`increment`, `reset`), from either side.
//! - [`OpenStore`], [`StoreOptions`], [`migrate`]: a store by name, for whoever has a configuration of another
//!   form.
//!
//! A store that gives no answer is an error ([`LimitError`]), never a decision: the application says for each
//! request whether it goes on without its limit.

mod configuration;
mod decision;
mod earlier;
mod late;
mod limit;
mod limits;
mod open;
mod options;

pub use configuration::{Configuration, ConfigurationError, ConfiguredOpenError, StoreName};
pub use decision::{Decision, Standing};
pub use earlier::{Count, Counters, EarlierError, RateLimitStore};
pub use limit::{Attempts, BadLimit, Of, Window};
pub use limits::{Attempt, LimitError, Limits, Refunded, Reservation};
pub use open::{OpenError, OpenStore, Opening, migrate};
pub use options::{Durability, StoreKind, StoreOptions, Url};

pub use tidegate_core::secret::Secret;
pub use tidegate_store::{LimitStore, StoreError, Unavailable};

/// That the Rust in the documents compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/stores.md")]
mod documents {}
