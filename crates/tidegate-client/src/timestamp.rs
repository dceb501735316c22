//! Full ISO-8601 timestamps: `2026-02-28T00:00:00Z`, with milliseconds or an offset if need be.
//!
//! A deadline that is read wrongly opens what it should have kept shut, so nothing is guessed: no date alone,
//! no local time, no leap second.

/// The instant that `text` says, in ms since the epoch; `None` if it is anything but a full timestamp from
/// 1970 on.
pub(crate) fn parse_ms(text: &str) -> Option<u64> {
    let (date, time) = text.split_once('T')?;
    let [year, month, day] = numbers::<3>(date, '-', [4, 2, 2])?;
    let (time, offset_minutes) = split_offset(time)?;
    let (time, ms) = match time.split_once('.') {
        Some((time, fraction)) => (time, fraction_ms(fraction)?),
        None => (time, 0),
    };
    let [hours, minutes, seconds] = numbers::<3>(time, ':', [2, 2, 2])?;
    let is_date = (1..=12).contains(&month) && (1..=days_of(month, year)).contains(&day);
    if !is_date || hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    let minutes = (days_since_epoch(year, month, day) * 24 + hours) * 60 + minutes - offset_minutes;
    u64::try_from((minutes * 60 + seconds) * 1000 + ms).ok()
}

/// `N` numbers of exactly so many digits each.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let fits = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = if fits { part.parse().ok()? } else { return None };
    }
    parts.next().is_none().then_some(numbers)
}

/// The time without its offset, and the offset in minutes east.
fn split_offset(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix('Z') {
        return Some((time, 0));
    }
    let place = time.rfind(['+', '-'])?;
    let [hours, minutes] = numbers::<2>(&time[place + 1..], ':', [2, 2])?;
    if hours > 23 || minutes > 59 {
        return None;
    }
    let east = hours * 60 + minutes;
    Some((&time[..place], if time[place..].starts_with('-') { -east } else { east }))
}

/// One to three digits.
fn fraction_ms(digits: &str) -> Option<i64> {
    let scale = match digits.len() {
        1 => 100,
        2 => 10,
        3 => 1,
        _ => return None,
    };
    let [number] = numbers::<1>(digits, ':', [digits.len()])?;
    Some(number * scale)
}

const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

const fn days_of(month: i64, year: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let before_year = year - 1;
    let leap_days = before_year / 4 - before_year / 100 + before_year / 400 - LEAP_DAYS_TO_1970;
    let in_year: i64 = (1..month).map(|month| days_of(month, year)).sum();
    (year - 1970) * 365 + leap_days + in_year + day - 1
}

/// 1969 / 4 - 1969 / 100 + 1969 / 400.
const LEAP_DAYS_TO_1970: i64 = 477;
