//! What is wrong with a document, all of it.

use alloc::{string::String, vec::Vec};

use serde::Serialize;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyFault {
    /// Where: `burst`, `deny_cidrs[3].cidr`; empty for the document itself.
    pub field: String,
    /// What, in words that follow the field's name.
    pub message: String,
}

/// Faults as they are found.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<PolicyFault>);

/// Faults that are told at once; a list of wrong entries needs no more to be understood.
const TOLD_MAX: usize = 100;

impl Faults {
    pub(super) fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < TOLD_MAX {
            self.0.push(PolicyFault { field: field.into(), message: message.into() });
        }
    }

    pub(super) fn into_result<T>(self, value: T) -> Result<T, Vec<PolicyFault>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}
