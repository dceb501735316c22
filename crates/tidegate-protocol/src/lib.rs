#![no_std]
//! TODO
extern crate alloc;
