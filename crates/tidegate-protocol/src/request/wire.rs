//! The JSON of a request, read strictly: objects only where objects stand, every field once, none unknown,
//! no null for a field that is there, no number but a whole one.
//!
//! Derived readers take an array for an object and null for an absent field, hence the helpers at the end.
//! One flat struct serves all commands, since an internally tagged enum would buffer every field.

use alloc::{string::String, vec::Vec};
use core::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, Error, Visitor},
};

use super::{Algorithm, Mode, SetMode, words::Name};
use crate::{
    identity::Digest,
    name::{Family, OperationId, ReceiptId},
    strict::{object, present},
    word,
};

/// Reads as a [`super::Request`] that is not checked against the bounds yet.
pub(super) struct Request(pub(super) super::Request);

struct Fairness(super::Fairness);
struct Network(super::Network);
struct Step(super::Step);
struct Command(super::Command);
struct Window(super::Window);
struct Budget(super::Budget);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFields {
    op: OperationId,
    family: Family,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    good: bool,
    #[serde(default, deserialize_with = "present")]
    fairness: Option<Fairness>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FairnessFields {
    #[serde(default, deserialize_with = "present")]
    source: Option<Digest>,
    #[serde(default)]
    networks: Vec<Network>,
    #[serde(default, deserialize_with = "present")]
    principal: Option<Digest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkFields {
    #[serde(deserialize_with = "unsigned")]
    prefix: u64,
    digest: Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFields {
    partition: Digest,
    commands: Vec<Command>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WindowFields {
    key: Digest,
    #[serde(deserialize_with = "unsigned")]
    limit: u64,
    #[serde(deserialize_with = "unsigned")]
    period_ms: u64,
    #[serde(default, deserialize_with = "word::deserialize")]
    algorithm: Algorithm,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetFields {
    key: Digest,
    #[serde(deserialize_with = "unsigned")]
    limit: u64,
    #[serde(deserialize_with = "unsigned")]
    period_ms: u64,
}

/// The fields of all commands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandFields {
    cmd: Name,
    #[serde(default, deserialize_with = "present")]
    key: Option<Digest>,
    #[serde(default, deserialize_with = "present")]
    value: Option<String>,
    #[serde(default, deserialize_with = "some_unsigned")]
    ttl_ms: Option<u64>,
    #[serde(default, deserialize_with = "word::optional::deserialize")]
    mode: Option<SetMode>,
    #[serde(default, deserialize_with = "present")]
    keep_ttl: Option<bool>,
    #[serde(default, deserialize_with = "some_signed")]
    by: Option<i64>,
    #[serde(default, deserialize_with = "present")]
    windows: Option<Vec<Window>>,
    #[serde(default, deserialize_with = "some_unsigned")]
    cost: Option<u64>,
    #[serde(default, deserialize_with = "present")]
    budgets: Option<Vec<Budget>>,
    #[serde(default, deserialize_with = "present")]
    target: Option<Target>,
    #[serde(default, deserialize_with = "present")]
    receipt: Option<ReceiptId>,
}

/// A budget, by its place or by its key.
enum Target {
    Index(usize),
    Key(Digest),
}

/// What is wrong with the fields of a command as a whole.
enum Fault {
    Missing(&'static str),
    Stray(&'static str, Name),
}

impl CommandFields {
    fn into_command(mut self) -> Result<super::Command, Fault> {
        let command = match self.cmd {
            Name::Hit => super::Command::Hit {
                windows: unwrapped(needed("windows", self.windows.take())?, |window: Window| window.0),
                cost: self.cost.take().unwrap_or(1),
            },
            Name::Get => super::Command::Get { key: self.take_key()? },
            Name::Set => super::Command::Set {
                key: self.take_key()?,
                value: needed("value", self.value.take())?,
                ttl_ms: self.ttl_ms.take(),
                mode: self.mode.take().unwrap_or_default(),
                keep_ttl: self.keep_ttl.take().unwrap_or_default(),
            },
            Name::Delete => super::Command::Delete { key: self.take_key()? },
            Name::Ttl => super::Command::Ttl { key: self.take_key()? },
            Name::Expire => super::Command::Expire { key: self.take_key()?, ttl_ms: self.take_ttl()? },
            Name::Increment => super::Command::Increment {
                key: self.take_key()?,
                by: self.by.take().unwrap_or(1),
                ttl_ms: self.take_ttl()?,
            },
            Name::Reserve => self.take_reserve()?,
            Name::Refund => super::Command::Refund { receipt: needed("receipt", self.receipt.take())? },
        };
        self.stray().map_or(Ok(command), |field| Err(Fault::Stray(field, self.cmd)))
    }

    fn take_key(&mut self) -> Result<Digest, Fault> {
        needed("key", self.key.take())
    }

    fn take_ttl(&mut self) -> Result<u64, Fault> {
        needed("ttl_ms", self.ttl_ms.take())
    }

    fn take_reserve(&mut self) -> Result<super::Command, Fault> {
        let budgets = unwrapped(needed("budgets", self.budgets.take())?, |budget: Budget| budget.0);
        let target = match self.target.take() {
            Some(Target::Index(index)) => index,
            // A key that none has is out of range, as the check will say with its place.
            Some(Target::Key(key)) => {
                budgets.iter().position(|budget| budget.key == key).unwrap_or(usize::MAX)
            }
            None => budgets.len().saturating_sub(1),
        };
        Ok(super::Command::Reserve { budgets, target, cost: self.cost.take().unwrap_or(1) })
    }

    /// A field that was given and that the command didn't take.
    fn stray(&self) -> Option<&'static str> {
        let left = [
            ("key", self.key.is_some()),
            ("value", self.value.is_some()),
            ("ttl_ms", self.ttl_ms.is_some()),
            ("mode", self.mode.is_some()),
            ("keep_ttl", self.keep_ttl.is_some()),
            ("by", self.by.is_some()),
            ("windows", self.windows.is_some()),
            ("cost", self.cost.is_some()),
            ("budgets", self.budgets.is_some()),
            ("target", self.target.is_some()),
            ("receipt", self.receipt.is_some()),
        ];
        left.into_iter().find(|(_, given)| *given).map(|(field, _)| field)
    }
}

fn needed<T>(field: &'static str, value: Option<T>) -> Result<T, Fault> {
    value.ok_or(Fault::Missing(field))
}

/// The same list without its wrappers; the allocation is reused.
fn unwrapped<W, T>(list: Vec<W>, unwrap: fn(W) -> T) -> Vec<T> {
    list.into_iter().map(unwrap).collect()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(field) => write!(f, "missing field `{field}`"),
            Self::Stray(field, command) => write!(f, "`{field}` is not a field of {}", word::name(command)),
        }
    }
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields: RequestFields = object(deserializer)?;
        Ok(Self(super::Request {
            op: fields.op,
            family: fields.family,
            mode: fields.mode,
            good: fields.good,
            fairness: fields.fairness.map(|fairness| fairness.0).unwrap_or_default(),
            steps: unwrapped(fields.steps, |step| step.0),
        }))
    }
}

impl<'de> Deserialize<'de> for Fairness {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let FairnessFields { source, networks, principal } = object(deserializer)?;
        let networks = unwrapped(networks, |network| network.0);
        Ok(Self(super::Fairness { source, networks, principal }))
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let NetworkFields { prefix, digest } = object(deserializer)?;
        // What doesn't fit is no prefix either; the check says so at its place.
        Ok(Self(super::Network { prefix: u8::try_from(prefix).unwrap_or(u8::MAX), digest }))
    }
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StepFields { partition, commands } = object(deserializer)?;
        Ok(Self(super::Step { partition, commands: unwrapped(commands, |command| command.0) }))
    }
}

impl<'de> Deserialize<'de> for Command {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields: CommandFields = object(deserializer)?;
        fields.into_command().map(Self).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let WindowFields { key, limit, period_ms, algorithm } = object(deserializer)?;
        Ok(Self(super::Window { key, limit, period_ms, algorithm }))
    }
}

impl<'de> Deserialize<'de> for Budget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let BudgetFields { key, limit, period_ms } = object(deserializer)?;
        Ok(Self(super::Budget { key, limit, period_ms }))
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TargetVisitor)
    }
}

struct TargetVisitor;

impl Visitor<'_> for TargetVisitor {
    type Value = Target;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the index or the key of one of the budgets")
    }

    fn visit_u64<E: Error>(self, index: u64) -> Result<Target, E> {
        // An index that doesn't fit is out of range, as the check will say.
        Ok(Target::Index(usize::try_from(index).unwrap_or(usize::MAX)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Target, E> {
        Digest::parse(text).map(Target::Key).map_err(E::custom)
    }
}

fn unsigned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_u64(UnsignedVisitor)
}

fn some_unsigned<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    unsigned(deserializer).map(Some)
}

fn some_signed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    deserializer.deserialize_i64(SignedVisitor).map(Some)
}

struct UnsignedVisitor;

impl Visitor<'_> for UnsignedVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of 0 or more")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }
}

struct SignedVisitor;

impl Visitor<'_> for SignedVisitor {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<i64, E> {
        Ok(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<i64, E> {
        i64::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }
}
