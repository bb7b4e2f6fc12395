//! Functions on dates, times and durations.

use crate::error::{Result, XPathError, type_error};
use crate::eval::Args;
use crate::value::duration::format_fraction;
use crate::value::{Atomic, AtomicType, DateTime, Decimal, Duration, Sequence, cast};

fn now(args: &Args<'_, '_>) -> DateTime {
    DateTime::from_system_time(args.ev.now())
}

pub(super) fn current_date_time(args: &Args<'_, '_>) -> Result<Sequence> {
    Ok(Sequence::from(Atomic::DateTime(now(args))))
}

pub(super) fn current_date(args: &Args<'_, '_>) -> Result<Sequence> {
    Ok(Sequence::from(Atomic::Date(now(args).date())))
}

pub(super) fn current_time(args: &Args<'_, '_>) -> Result<Sequence> {
    Ok(Sequence::from(Atomic::Time(now(args).time())))
}

pub(super) fn implicit_timezone(_: &Args<'_, '_>) -> Result<Sequence> {
    Ok(Sequence::from(Atomic::DayTimeDuration(Duration::from_months(0))))
}

/// An argument of a certain type; untyped values are cast, and strings too where XPath 1.0 rules apply.
pub(super) fn typed(args: &Args<'_, '_>, index: usize, wanted: AtomicType) -> Result<Option<Atomic>> {
    let Some(value) = args.atomic(index)? else { return Ok(None) };
    if value.atomic_type().derives_from(wanted) {
        return Ok(Some(value));
    }
    match &value {
        Atomic::Untyped(_) => cast::cast(&value, wanted, false).map(Some),
        Atomic::String(_) if args.compat() => cast::cast(&value, wanted, false).map(Some),
        _ => Err(type_error(format!("expected {}, found {}", wanted.name(), value.atomic_type().name()))),
    }
}

fn moment(args: &Args<'_, '_>, wanted: AtomicType) -> Result<Option<DateTime>> {
    Ok(match typed(args, 0, wanted)? {
        Some(Atomic::DateTime(value) | Atomic::Date(value) | Atomic::Time(value)) => Some(value),
        _ => None,
    })
}

pub(super) fn date_time(args: &Args<'_, '_>) -> Result<Sequence> {
    let (Some(Atomic::Date(date)), Some(Atomic::Time(time))) =
        (typed(args, 0, AtomicType::Date)?, typed(args, 1, AtomicType::Time)?)
    else {
        return Ok(Sequence::Empty);
    };
    let zone = match (date.zone_minutes(), time.zone_minutes()) {
        (Some(a), Some(b)) if a != b => {
            return Err(XPathError::new("FORG0008", "date and time have different time zones"));
        }
        (a, b) => a.or(b),
    };
    Ok(Sequence::from(Atomic::DateTime(time.on_date(date).with_zone(zone))))
}

/// A component that is an integer.
fn component(args: &Args<'_, '_>, wanted: AtomicType, of: fn(DateTime) -> i64) -> Result<Sequence> {
    Ok(moment(args, wanted)?.map_or(Sequence::Empty, |value| Sequence::from(of(value))))
}

fn seconds_of(args: &Args<'_, '_>, wanted: AtomicType) -> Result<Sequence> {
    let Some(value) = moment(args, wanted)? else { return Ok(Sequence::Empty) };
    let text = format!("{}{}", value.second, format_fraction(value.nanos));
    Ok(Decimal::parse(&text).map_or(Sequence::Empty, |seconds| Sequence::from(Atomic::Decimal(seconds))))
}

fn zone_of(args: &Args<'_, '_>, wanted: AtomicType) -> Result<Sequence> {
    let zone = moment(args, wanted)?.and_then(DateTime::zone_minutes);
    Ok(zone.map_or(Sequence::Empty, |minutes| {
        let duration = Duration { months: 0, nanos: 0, seconds: i64::from(minutes) * 60 };
        Sequence::from(Atomic::DayTimeDuration(duration))
    }))
}

macro_rules! components {
    ($($name:ident: $wanted:ident, $of:expr;)*) => {$(
        pub(super) fn $name(args: &Args<'_, '_>) -> Result<Sequence> {
            component(args, AtomicType::$wanted, $of)
        }
    )*};
}

components! {
    year: DateTime, |d| i64::from(d.year);
    month: DateTime, |d| i64::from(d.month);
    day: DateTime, |d| i64::from(d.day);
    hours: DateTime, |d| i64::from(d.hour);
    minutes: DateTime, |d| i64::from(d.minute);
    date_year: Date, |d| i64::from(d.year);
    date_month: Date, |d| i64::from(d.month);
    date_day: Date, |d| i64::from(d.day);
    time_hours: Time, |d| i64::from(d.hour);
    time_minutes: Time, |d| i64::from(d.minute);
}

pub(super) fn seconds(args: &Args<'_, '_>) -> Result<Sequence> {
    seconds_of(args, AtomicType::DateTime)
}

pub(super) fn time_seconds(args: &Args<'_, '_>) -> Result<Sequence> {
    seconds_of(args, AtomicType::Time)
}

pub(super) fn timezone(args: &Args<'_, '_>) -> Result<Sequence> {
    zone_of(args, AtomicType::DateTime)
}

pub(super) fn date_timezone(args: &Args<'_, '_>) -> Result<Sequence> {
    zone_of(args, AtomicType::Date)
}

pub(super) fn time_timezone(args: &Args<'_, '_>) -> Result<Sequence> {
    zone_of(args, AtomicType::Time)
}

fn duration(args: &Args<'_, '_>) -> Result<Option<Duration>> {
    Ok(match typed(args, 0, AtomicType::Duration)? {
        Some(Atomic::Duration(value) | Atomic::YearMonthDuration(value) | Atomic::DayTimeDuration(value)) => {
            Some(value)
        }
        _ => None,
    })
}

fn duration_part(args: &Args<'_, '_>, of: fn(Duration) -> i64) -> Result<Sequence> {
    Ok(duration(args)?.map_or(Sequence::Empty, |value| Sequence::from(of(value))))
}

pub(super) fn duration_years(args: &Args<'_, '_>) -> Result<Sequence> {
    duration_part(args, |d| i64::from(d.months / 12))
}

pub(super) fn duration_months(args: &Args<'_, '_>) -> Result<Sequence> {
    duration_part(args, |d| i64::from(d.months % 12))
}

pub(super) fn duration_days(args: &Args<'_, '_>) -> Result<Sequence> {
    duration_part(args, |d| d.seconds / 86_400)
}

pub(super) fn duration_hours(args: &Args<'_, '_>) -> Result<Sequence> {
    duration_part(args, |d| d.seconds / 3_600 % 24)
}

pub(super) fn duration_minutes(args: &Args<'_, '_>) -> Result<Sequence> {
    duration_part(args, |d| d.seconds / 60 % 60)
}

pub(super) fn duration_seconds(args: &Args<'_, '_>) -> Result<Sequence> {
    let seconds = duration(args)?.map(Duration::seconds_component);
    Ok(seconds.map_or(Sequence::Empty, |seconds| Sequence::from(Atomic::Decimal(seconds))))
}

/// Without a second argument to UTC, with `()` to no time zone.
fn adjusted(args: &Args<'_, '_>, wanted: AtomicType) -> Result<Option<DateTime>> {
    let Some(value) = moment(args, wanted)? else { return Ok(None) };
    let zone = match args.codes.get(1) {
        None => Some(0),
        Some(_) => match typed(args, 1, AtomicType::DayTimeDuration)? {
            Some(Atomic::DayTimeDuration(zone)) => {
                let minutes = i16::try_from(zone.seconds / 60).ok().filter(|minutes| minutes.abs() <= 14 * 60);
                let invalid = || XPathError::new("FODT0003", "time zones are at most fourteen hours from UTC");
                Some(minutes.filter(|_| zone.seconds % 60 == 0).ok_or_else(invalid)?)
            }
            _ => None,
        },
    };
    value.adjust(zone).map(Some).ok_or_else(|| XPathError::new("FODT0001", "date out of range"))
}

pub(super) fn adjust_date_time(args: &Args<'_, '_>) -> Result<Sequence> {
    let value = adjusted(args, AtomicType::DateTime)?;
    Ok(value.map_or(Sequence::Empty, |value| Sequence::from(Atomic::DateTime(value))))
}

pub(super) fn adjust_date(args: &Args<'_, '_>) -> Result<Sequence> {
    let value = adjusted(args, AtomicType::Date)?;
    Ok(value.map_or(Sequence::Empty, |value| Sequence::from(Atomic::Date(value.date()))))
}

pub(super) fn adjust_time(args: &Args<'_, '_>) -> Result<Sequence> {
    let value = adjusted(args, AtomicType::Time)?;
    Ok(value.map_or(Sequence::Empty, |value| Sequence::from(Atomic::Time(value.time()))))
}
