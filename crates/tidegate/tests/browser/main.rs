//! The dashboard in a real browser, headless, by WebDriver: what people do with it, from the sign-in to a block,
//! and what must hold on every page.

#![allow(clippy::panic, reason = "a test fails by panicking and says why")]

mod browser;
mod flow;
mod pages;
#[path = "../support/mod.rs"]
mod support;
