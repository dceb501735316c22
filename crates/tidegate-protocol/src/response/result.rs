//! The JSON of a command's result: which one it is shows by its fields.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error, ser::SerializeMap};

use super::{CommandResult, RefundReason, Usage};
use crate::name::ReceiptId;

/// Writes an object of these variables, under their names.
macro_rules! object {
    ($serializer:ident, $($field:ident),+) => {{
        let mut map = $serializer.serialize_map(None)?;
        $(map.serialize_entry(stringify!($field), $field)?;)+
        map.end()
    }};
}

impl Serialize for CommandResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Hit { allowed, windows, retry_after_ms } => {
                object!(serializer, allowed, windows, retry_after_ms)
            }
            Self::Get { value, ttl_ms } => object!(serializer, value, ttl_ms),
            Self::Set { written, current } => object!(serializer, written, current),
            Self::Delete { deleted } => object!(serializer, deleted),
            Self::Ttl { ttl_ms } => object!(serializer, ttl_ms),
            Self::Expire { updated } => object!(serializer, updated),
            Self::Increment { value, ttl_ms } => object!(serializer, value, ttl_ms),
            Self::Reserved { receipt, budgets } => {
                let reserved = &true;
                match receipt {
                    Some(receipt) => object!(serializer, reserved, receipt, budgets),
                    None => object!(serializer, reserved, budgets),
                }
            }
            Self::NotReserved { denied_by, retry_after_ms, budgets } => {
                let reserved = &false;
                object!(serializer, reserved, denied_by, retry_after_ms, budgets)
            }
            Self::Refund { refunded, reason: Some(reason) } => object!(serializer, refunded, reason),
            Self::Refund { refunded, reason: None } => object!(serializer, refunded),
        }
    }
}

/// The fields of all results. The inner `None` is a null, the outer one an absent field.
#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    allowed: Option<bool>,
    #[serde(default)]
    windows: Vec<Usage>,
    #[serde(default, deserialize_with = "given")]
    retry_after_ms: Option<Option<u64>>,
    #[serde(default, deserialize_with = "given")]
    value: Option<Option<Value>>,
    #[serde(default, deserialize_with = "given")]
    ttl_ms: Option<Option<u64>>,
    #[serde(default)]
    written: Option<bool>,
    #[serde(default)]
    current: Option<String>,
    #[serde(default)]
    deleted: Option<bool>,
    #[serde(default)]
    updated: Option<bool>,
    #[serde(default)]
    reserved: Option<bool>,
    #[serde(default)]
    receipt: Option<ReceiptId>,
    #[serde(default)]
    budgets: Vec<Usage>,
    #[serde(default)]
    denied_by: Vec<usize>,
    #[serde(default)]
    refunded: Option<bool>,
    #[serde(default)]
    reason: Option<RefundReason>,
}

/// A record's value is a text, a counter's a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Counter(i64),
    Text(String),
}

impl<'de> Deserialize<'de> for CommandResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(deserializer)?;
        fields.into_result().ok_or_else(|| D::Error::custom("not the result of a known command"))
    }
}

impl Fields {
    fn into_result(self) -> Option<CommandResult> {
        if let Some(allowed) = self.allowed {
            let retry_after_ms = self.retry_after_ms?;
            return Some(CommandResult::Hit { allowed, windows: self.windows, retry_after_ms });
        }
        if let Some(reserved) = self.reserved {
            return if reserved {
                Some(CommandResult::Reserved { receipt: self.receipt, budgets: self.budgets })
            } else {
                let (denied_by, retry_after_ms) = (self.denied_by, self.retry_after_ms?);
                Some(CommandResult::NotReserved { denied_by, retry_after_ms, budgets: self.budgets })
            };
        }
        if let Some(refunded) = self.refunded {
            return Some(CommandResult::Refund { refunded, reason: self.reason });
        }
        if let Some(written) = self.written {
            return Some(CommandResult::Set { written, current: self.current });
        }
        if let Some(deleted) = self.deleted {
            return Some(CommandResult::Delete { deleted });
        }
        if let Some(updated) = self.updated {
            return Some(CommandResult::Expire { updated });
        }
        let ttl_ms = self.ttl_ms?;
        Some(match self.value {
            None => CommandResult::Ttl { ttl_ms },
            Some(None) => CommandResult::Get { value: None, ttl_ms },
            Some(Some(Value::Text(value))) => CommandResult::Get { value: Some(value), ttl_ms },
            Some(Some(Value::Counter(value))) => CommandResult::Increment { value, ttl_ms: ttl_ms? },
        })
    }
}

fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
