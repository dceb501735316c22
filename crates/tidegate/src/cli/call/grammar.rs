//! The words of `tidegate call`: `5/1m`, `burst=20/1m`, `10/15m:alice`.

use std::str::FromStr;

use tidegate_core::{INTEGER_MAX, decimal, duration};

/// A window as it is typed: `LIMIT/PERIOD` or `NAME=LIMIT/PERIOD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowWord {
    /// Its key: the name, or else the period as it was typed.
    pub key: String,
    /// How much a period takes.
    pub limit: u64,
    /// The period.
    pub period_ms: u64,
}

/// A budget as it is typed: `LIMIT/PERIOD:KEY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWord {
    /// Its key.
    pub key: String,
    /// How much a period takes.
    pub limit: u64,
    /// The period.
    pub period_ms: u64,
}

impl FromStr for WindowWord {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let (name, rate) = match word.split_once('=') {
            Some(("", _)) => return Err("the name before `=` is empty".into()),
            Some((name, rate)) => (Some(name), rate),
            None => (None, word),
        };
        let (limit, period, period_ms) = parse_rate(rate)?;
        Ok(Self { key: name.unwrap_or(period).to_owned(), limit, period_ms })
    }
}

impl FromStr for BudgetWord {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word.split_once(':') {
            Some((rate, key)) if !key.is_empty() => {
                let (limit, _, period_ms) = parse_rate(rate)?;
                Ok(Self { key: key.to_owned(), limit, period_ms })
            }
            _ => Err("a budget is LIMIT/PERIOD:KEY, such as 10/15m:alice".into()),
        }
    }
}

/// A whole number from 0 to the largest that the protocol carries.
pub(super) fn number(word: &str) -> Result<u64, String> {
    let number = decimal::parse::<i64>(word).and_then(|number| u64::try_from(number).ok());
    let fits = number.filter(|number| *number <= INTEGER_MAX);
    fits.ok_or_else(|| format!("must be a whole number from 0 to {INTEGER_MAX}"))
}

/// A whole number with or without a minus sign.
pub(super) fn signed(word: &str) -> Result<i64, String> {
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    let magnitude = number(digits).ok().and_then(|number| i64::try_from(number).ok());
    magnitude
        .map(|magnitude| sign * magnitude)
        .ok_or_else(|| format!("must be a whole number from -{INTEGER_MAX} to {INTEGER_MAX}"))
}

fn parse_rate(rate: &str) -> Result<(u64, &str, u64), String> {
    let Some((limit, period)) = rate.split_once('/') else {
        return Err("a rate is LIMIT/PERIOD, such as 5/1m".into());
    };
    let limit = number(limit).map_err(|fault| format!("the limit {fault}"))?;
    let period_ms = duration::parse_ms(period).map_err(|fault| format!("the period {fault}"))?;
    Ok((limit, period, period_ms))
}
