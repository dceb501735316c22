//! All that this application says of limits.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use tidegate_core::address::Address;
use tidegate_rate_limit::{Attempt, Attempts, BadLimit, Decision, LimitError, LimitStore, Limits, Window};

pub(crate) struct Limited {
    limits: Limits,
    login: Attempts,
    login_account: Attempts,
    login_client: Attempts,
    reset_account: Window,
    reset_client: Window,
}

impl Limited {
    pub(crate) fn new(store: Arc<dyn LimitStore>) -> Result<Self, BadLimit> {
        let (five_minutes, hour) = (Duration::from_secs(300), Duration::from_secs(3600));
        Ok(Self {
            limits: Limits::new(store),
            // Of one account from one client; wide enough below for many people behind one address, and for an
            // owner whose account somebody else guesses at.
            login: Attempts::new("login", 10, five_minutes)?,
            login_account: Attempts::new("login-account", 100, hour)?,
            login_client: Attempts::new("login-client", 100, five_minutes)?,
            reset_account: Window::sliding("reset-account", 3, hour)?,
            reset_client: Window::sliding("reset-client", 20, hour)?,
        })
    }

    /// Takes an attempt before the password is looked at: however many come at once, no more are checked than may
    /// fail.
    pub(crate) async fn login(&self, account: &str, client: SocketAddr) -> Result<Attempt, LimitError> {
        let (account, client) = (canonical(account), Address::from(client.ip()).source());
        let (account, client) = (account.as_str(), client.as_str());
        let of = [
            self.login.of(&[account, client]),
            self.login_account.of(&[account]),
            self.login_client.of(&[client]),
        ];
        self.limits.reserve(&of).await
    }

    pub(crate) async fn reset(&self, account: &str, client: SocketAddr) -> Result<Decision, LimitError> {
        let (account, client) = (canonical(account), Address::from(client.ip()).source());
        let of = [self.reset_account.of(&[&account]), self.reset_client.of(&[&client])];
        self.limits.hit(&of, 1).await
    }
}

/// One account is one count, however its name is typed.
pub(crate) fn canonical(account: &str) -> String {
    account.trim().to_lowercase()
}
