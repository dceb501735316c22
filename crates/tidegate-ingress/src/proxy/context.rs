//! What the requests of one connection have in common.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tidegate_listen::Activity;
use tokio::sync::Notify;

use super::{Proxy, framing::Found, shield::Permit, upstream::Tunnelled};

/// A connection of a client.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) proxy: Arc<Proxy>,
    pub(super) peer: IpAddr,
    pub(super) worker: usize,
    pub(super) is_secure: bool,
    pub(super) activity: Arc<Activity>,
    pub(super) framing: Arc<Found>,
    /// The heads of HTTP/1.1 that have been answered or are in work.
    heads: AtomicU64,
    /// The server ends: each answer is its connection's last.
    ending: AtomicBool,
    /// Requests that the client gave up, less those that it let end.
    given_up: AtomicU32,
    /// Too many were given up.
    pub(super) fed_up: Notify,
    tunnel: Mutex<Option<Tunnel>>,
}

/// What a connection turns into after an answer that changes the protocol.
#[derive(Debug)]
pub(super) struct Tunnel {
    pub(super) app: Tunnelled,
    pub(super) permit: Option<Permit>,
}

/// How many more requests than it let end a client may give up on one connection. A page that is left cancels what it
/// was loading, some dozens at most.
const GIVEN_UP_MAX: u32 = 100;

impl Context {
    pub(super) fn new(proxy: Arc<Proxy>, peer: IpAddr, worker: usize, is_secure: bool) -> Arc<Self> {
        Arc::new(Self {
            proxy,
            peer,
            worker,
            is_secure,
            activity: Activity::new(),
            framing: Arc::new(Found::new()),
            heads: AtomicU64::new(0),
            ending: AtomicBool::new(false),
            given_up: AtomicU32::new(0),
            fed_up: Notify::new(),
            tunnel: Mutex::new(None),
        })
    }

    /// A request's head has come.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.activity.enter();
        InFlight { context: Arc::clone(self), ended: false }
    }

    /// The number of the head that has just come, from 0.
    pub(super) fn next_head(&self) -> u64 {
        // They come one after the other.
        let number = self.heads.load(Ordering::Relaxed);
        self.heads.store(number + 1, Ordering::Relaxed);
        number
    }

    /// Whether a request has come yet.
    pub(super) fn has_begun(&self) -> bool {
        self.heads.load(Ordering::Relaxed) > 0
    }

    /// From now on each answer is its connection's last.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    /// What follows this answer is a tunnel.
    pub(super) fn set_tunnel(&self, tunnel: Tunnel) {
        *self.tunnel.lock() = Some(tunnel);
    }

    pub(super) fn take_tunnel(&self) -> Option<Tunnel> {
        self.tunnel.lock().take()
    }
}

/// A request in work. Dropped before its end, it was given up by the client.
#[derive(Debug)]
pub(super) struct InFlight {
    context: Arc<Context>,
    ended: bool,
}

impl InFlight {
    /// The connection that it came on.
    pub(super) const fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// It was answered to its end.
    pub(super) fn ended(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            let less = |given_up: u32| given_up.checked_sub(1);
            let given_up = &self.context.given_up;
            if given_up.load(Ordering::Relaxed) > 0 {
                let _ = given_up.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.context.activity.leave();
        if !self.ended && self.context.given_up.fetch_add(1, Ordering::Relaxed) >= GIVEN_UP_MAX {
            self.context.fed_up.notify_one();
        }
    }
}
