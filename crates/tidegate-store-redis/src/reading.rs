//! What a batch is decided on: rows of one instant, the clock, and how many rows there are.

use redis::{Cmd, FromRedisValue, Pipeline, Value, from_redis_value};
use thiserror::Error;
use tidegate_store::Key;

use crate::{
    names::Names,
    row::{BrokenRow, Row},
};

/// What the server answers to [`commands`].
#[derive(Debug)]
pub(crate) struct Reading {
    /// Who goes before all others, if anybody does.
    pub(crate) turn: Option<Vec<u8>>,
    pub(crate) now_ms: u64,
    /// How many rows the store holds.
    pub(crate) rows_held: u64,
    /// One for each key, expired ones too.
    pub(crate) rows: Vec<Option<Row>>,
}

/// An answer that can't be read.
#[derive(Debug, Error)]
pub(crate) enum Unreadable {
    #[error("the server answered something else than was asked")]
    Form,
    #[error(transparent)]
    Row(#[from] BrokenRow),
}

/// The wish to go before all others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish<'a> {
    /// Whose it is.
    pub(crate) token: &'a [u8],
    /// For how long.
    pub(crate) turn_ms: u64,
}

/// The commands that read the rows of `keys`, and take the turn first if that is wished and nobody has it. They
/// are no script, since what a script reads is copied several times more; and no `MULTI`, in which a server without
/// memory refuses to read, too.
pub(crate) fn commands(names: &Names, keys: &[Key], wish: Option<Wish<'_>>) -> Pipeline {
    let mut commands = Pipeline::with_capacity(6);
    if let Some(Wish { token, turn_ms }) = wish {
        commands.cmd("SET").arg(names.turn()).arg(token).arg("NX").arg("PX").arg(turn_ms);
    }
    commands.cmd("GET").arg(names.turn());
    commands.cmd("HLEN").arg(names.rows());
    commands.cmd("TIME");
    if !keys.is_empty() {
        let mut rows = Cmd::with_capacity(2 + keys.len(), 64 + Key::BYTES * keys.len());
        rows.arg("HMGET").arg(names.rows());
        for key in keys {
            rows.arg(key.as_bytes().as_slice());
        }
        commands.add_command(rows).cmd("TIME");
    }
    commands
}

impl Reading {
    /// Reads the `answers` to [`commands`] for so many keys. None if it can't be said which rows were live: one
    /// ended between the two looks at the clock, and so perhaps before it was read.
    pub(crate) fn of(mut answers: Vec<Value>, keys: usize) -> Result<Option<Self>, Unreadable> {
        let mut last = || answers.pop().ok_or(Unreadable::Form);
        let (now_ms, rows) =
            if keys == 0 { (None, Vec::new()) } else { (Some(clock(last()?)?), rows(last()?)?) };
        let before_ms = clock(last()?)?;
        let (rows_held, turn) = (part(last()?)?, part(last()?)?);
        if rows.len() != keys {
            return Err(Unreadable::Form);
        }
        let now_ms = now_ms.unwrap_or(before_ms);
        let ended = |row: &Row| (before_ms + 1..=now_ms).contains(&row.entry.expires_at_ms);
        Ok((!rows.iter().flatten().any(ended)).then_some(Self { turn, now_ms, rows_held, rows }))
    }
}

fn clock(value: Value) -> Result<u64, Unreadable> {
    let (seconds, micros): (u64, u64) = part(value)?;
    Ok(seconds.saturating_mul(1000).saturating_add(micros / 1000))
}

fn part<T: FromRedisValue>(value: Value) -> Result<T, Unreadable> {
    from_redis_value(value).map_err(|_| Unreadable::Form)
}

fn rows(value: Value) -> Result<Vec<Option<Row>>, Unreadable> {
    let row = |value| match value {
        Value::Nil => Ok(None),
        Value::BulkString(bytes) => Ok(Some(Row::decode(&bytes)?)),
        _ => Err(Unreadable::Form),
    };
    let Value::Array(values) = value else { return Err(Unreadable::Form) };
    values.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use tidegate_store::Entry;

    use super::*;
    use crate::row::encode;

    fn time(ms: u64) -> Value {
        let part = |number: u64| Value::BulkString(number.to_string().into_bytes());
        Value::Array(vec![part(ms / 1000), part(ms % 1000 * 1000 + 999)])
    }

    #[test]
    fn a_row_that_ends_while_it_is_read_is_read_again() {
        let table = [
            (5000, 5000, 4999, true),
            (5000, 5000, 5000, true),
            (5000, 5000, 5001, true),
            (4999, 5002, 4999, true),
            (4999, 5002, 5000, false),
            (4999, 5002, 5002, false),
            (4999, 5002, 5003, true),
        ];
        for (before_ms, after_ms, expires_at_ms, is_clear) in table {
            let mut row = Vec::new();
            encode(&mut row, [7; 8], &Entry { value: b"x".as_slice().into(), expires_at_ms });
            let rows = Value::Array(vec![Value::Nil, Value::BulkString(row)]);
            let answers = vec![Value::Nil, Value::Int(3), time(before_ms), rows, time(after_ms)];
            let reading = Reading::of(answers, 2).unwrap();
            assert_eq!(reading.is_some(), is_clear, "{before_ms}, {after_ms}, {expires_at_ms}");
            if let Some(Reading { turn, now_ms, rows_held, rows }) = reading {
                assert_eq!((turn, now_ms, rows_held, rows.len()), (None, after_ms, 3, 2));
            }
        }
    }

    #[test]
    fn answers_that_were_not_asked_for() {
        let good = || vec![Value::Nil, Value::Int(3), time(1), Value::Array(vec![Value::Nil]), time(1)];
        assert!(Reading::of(good(), 1).unwrap().is_some());
        assert!(Reading::of(good(), 2).is_err(), "too few rows");
        for at in 0..5 {
            let mut answers = good();
            answers[at] = Value::Array(vec![Value::Okay]);
            assert!(Reading::of(answers, 1).is_err(), "answer {at}");
            let mut answers = good();
            answers.remove(at);
            assert!(Reading::of(answers, 1).is_err(), "without answer {at}");
        }
    }
}
