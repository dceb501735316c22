//! The bounds of a request, checked by the server behind the parser and by clients before they send.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::{fmt::Display, ops::RangeInclusive};

use super::{Algorithm, BadRequest, Budget, Command, Fairness, Request, SetMode, Step, Window};
use crate::{bounds, identity::Digest};

impl Request {
    /// Checks every bound that the types do not hold by themselves.
    ///
    /// # Errors
    /// The first place that is out of bounds.
    pub fn validate(&self) -> Result<(), BadRequest> {
        fairness(&self.fairness).map_err(|fault| fault.within("fairness"))?;
        count("steps", self.steps.len(), bounds::STEPS_MAX)?;
        each("steps", &self.steps, step)?;
        if self.commands() > bounds::RPC_COMMANDS_MAX {
            let message = format!("must hold at most {} commands in all", bounds::RPC_COMMANDS_MAX);
            return Err(BadRequest::at("steps", message));
        }
        Ok(())
    }

    /// The JSON to sign and send.
    ///
    /// # Errors
    /// The request is out of bounds, and no server would take it.
    pub fn to_json(&self) -> Result<Vec<u8>, BadRequest> {
        self.validate()?;
        let json = serde_json::to_vec(self).expect("a request has string keys and plain values only");
        if json.len() > bounds::BODY_BYTES_MAX {
            return Err(BadRequest::whole("must be at most 16 KiB"));
        }
        Ok(json)
    }
}

impl BadRequest {
    pub(super) fn whole(message: impl Into<String>) -> Self {
        Self::at("", message)
    }

    fn at(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }

    fn within(self, outer: impl Display) -> Self {
        let separator = if self.place.is_empty() { "" } else { "." };
        Self { place: format!("{outer}{separator}{}", self.place), ..self }
    }
}

fn fairness(fairness: &Fairness) -> Result<(), BadRequest> {
    if fairness.networks.len() > bounds::NETWORKS_MAX {
        return Err(BadRequest::at("networks", format!("must be at most {}", bounds::NETWORKS_MAX)));
    }
    for (index, network) in fairness.networks.iter().enumerate() {
        let place = || format!("networks[{index}].prefix");
        if !matches!(network.prefix, 24 | 48 | 56) {
            return Err(BadRequest::at(place(), "must be 24, 48 or 56"));
        }
        if fairness.networks[..index].iter().any(|other| other.prefix == network.prefix) {
            return Err(BadRequest::at(place(), "must stand once"));
        }
    }
    Ok(())
}

fn step(step: &Step) -> Result<(), BadRequest> {
    count("commands", step.commands.len(), bounds::STEP_COMMANDS_MAX)?;
    each("commands", &step.commands, command)
}

fn command(command: &Command) -> Result<(), BadRequest> {
    match command {
        Command::Get { .. } | Command::Delete { .. } | Command::Ttl { .. } | Command::Refund { .. } => Ok(()),
        Command::Hit { windows, cost } => hit(windows, *cost),
        Command::Set { value, ttl_ms, mode, keep_ttl, .. } => set(value, *ttl_ms, *mode, *keep_ttl),
        Command::Expire { ttl_ms, .. } => number("ttl_ms", *ttl_ms, LIFE_MS),
        Command::Increment { by, ttl_ms, .. } => {
            if by.unsigned_abs() > bounds::INTEGER_MAX {
                let message = format!("must be from -{0} to {0}", bounds::INTEGER_MAX);
                return Err(BadRequest::at("by", message));
            }
            number("ttl_ms", *ttl_ms, LIFE_MS)
        }
        Command::Reserve { budgets, target, cost } => reserve(budgets, *target, *cost),
    }
}

fn hit(windows: &[Window], cost: u64) -> Result<(), BadRequest> {
    count("windows", windows.len(), bounds::WINDOWS_MAX)?;
    each("windows", windows, |window| {
        number("limit", window.limit, INTEGER)?;
        let longest_ms = match window.algorithm {
            Algorithm::Sliding => bounds::SLIDING_PERIOD_MS_MAX,
            Algorithm::Fixed | Algorithm::Bucket => bounds::TTL_MS_MAX,
        };
        number("period_ms", window.period_ms, bounds::TTL_MS_MIN..=longest_ms)
    })?;
    distinct("windows", windows, |window| window.key)?;
    number("cost", cost, INTEGER)
}

fn reserve(budgets: &[Budget], target: usize, cost: u64) -> Result<(), BadRequest> {
    count("budgets", budgets.len(), bounds::BUDGETS_MAX)?;
    each("budgets", budgets, |budget| {
        number("limit", budget.limit, INTEGER)?;
        number("period_ms", budget.period_ms, LIFE_MS)
    })?;
    distinct("budgets", budgets, |budget| budget.key)?;
    if target >= budgets.len() {
        return Err(BadRequest::at("target", "must be the index or the key of one of the budgets"));
    }
    number("cost", cost, INTEGER)
}

fn set(value: &str, ttl_ms: Option<u64>, mode: SetMode, keep_ttl: bool) -> Result<(), BadRequest> {
    if value.len() > bounds::VALUE_BYTES_MAX {
        return Err(BadRequest::at("value", "must be at most 2 KiB of UTF-8"));
    }
    match ttl_ms {
        Some(ttl_ms) => number("ttl_ms", ttl_ms, LIFE_MS),
        None if keep_ttl && mode == SetMode::Xx => Ok(()),
        None if keep_ttl => Err(BadRequest::at(
            "keep_ttl",
            "needs mode xx, or a ttl_ms for the case that the record is absent",
        )),
        None => Err(BadRequest::at("ttl_ms", "is needed: every record ends")),
    }
}

fn number(place: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), BadRequest> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(BadRequest::at(place, format!("must be from {} to {}", range.start(), range.end())))
}

fn count(place: &str, len: usize, max: usize) -> Result<(), BadRequest> {
    if (1..=max).contains(&len) {
        return Ok(());
    }
    Err(BadRequest::at(place, format!("must be 1 to {max}")))
}

fn each<T>(place: &str, list: &[T], check: impl Fn(&T) -> Result<(), BadRequest>) -> Result<(), BadRequest> {
    list.iter().enumerate().try_for_each(|(index, item)| {
        check(item).map_err(|fault| fault.within(format_args!("{place}[{index}]")))
    })
}

fn distinct<T>(place: &str, list: &[T], key: impl Fn(&T) -> Digest) -> Result<(), BadRequest> {
    let again = |index: &usize| list[..*index].iter().any(|earlier| key(earlier) == key(&list[*index]));
    match (1..list.len()).find(again) {
        Some(index) => Err(BadRequest::at(format!("{place}[{index}].key"), "must stand once".to_string())),
        None => Ok(()),
    }
}

const INTEGER: RangeInclusive<u64> = 0..=bounds::INTEGER_MAX;
const LIFE_MS: RangeInclusive<u64> = bounds::TTL_MS_MIN..=bounds::TTL_MS_MAX;
