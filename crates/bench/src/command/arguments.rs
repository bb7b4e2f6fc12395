//! Arguments several subcommands share.
use crate::error::Error;
use clap::{Arg, ArgAction, ArgMatches};
use std::time::Duration;

/// An option with a value.
pub fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// An option that may be given several times.
pub fn repeated(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).action(ArgAction::Append)
}

/// An option without a value.
pub fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
}

/// The text of an option.
pub fn text<'a>(matches: &'a ArgMatches, name: &str) -> Option<&'a str> {
    matches.get_one::<String>(name).map(String::as_str)
}

/// All texts of an option.
pub fn texts<'a>(matches: &'a ArgMatches, name: &str) -> Vec<&'a str> {
    matches.get_many::<String>(name).into_iter().flatten().map(String::as_str).collect()
}

/// A whole number of an option.
pub fn number(matches: &ArgMatches, name: &str) -> Result<Option<usize>, Error> {
    let parse = |text: &str| {
        text.parse().map_err(|_| Error::Usage(format!("`--{name} {text}`: `{text}` is not a whole number")))
    };
    text(matches, name).map(parse).transpose()
}

/// A length of time of an option.
pub fn duration(matches: &ArgMatches, name: &str) -> Result<Option<Duration>, Error> {
    let parse = |text: &str| {
        parse_duration(text).ok_or_else(|| {
            Error::Usage(format!("`--{name} {text}`: `{text}` is not a time like `500ms`, `10s` or `15m`"))
        })
    };
    text(matches, name).map(parse).transpose()
}

/// Default number of load threads: half the processors, because the gateway and the backend need some too.
pub fn default_threads() -> usize {
    (std::thread::available_parallelism().map_or(1, std::num::NonZero::get) / 2).max(1)
}

/// Reads `500ms`, `10s`, `1.5s`, `15m` or `2h`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let split = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let seconds_per_unit = match unit.trim() {
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = digits.parse::<f64>().ok()? * seconds_per_unit;
    // A year is longer than any test; what is longer is a mistake.
    (0.0..=31_536_000.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// Refuses a ramp-up that is longer than the warm-up: the measured window would begin with fewer users than its row names.
pub fn check_ramp_up(ramp_up: Duration, warm_up: Duration) -> Result<(), Error> {
    if ramp_up > warm_up {
        let (ramp_up, warm_up) = (ramp_up.as_secs_f64(), warm_up.as_secs_f64());
        return Err(Error::Usage(format!(
            "the ramp-up ({ramp_up} s) must not be longer than the warm-up ({warm_up} s): users would be missing from the measured time"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, expected_ms) in
            [("500ms", 500), ("10s", 10_000), ("1.5s", 1500), ("2m", 120_000), ("7", 7000), ("0", 0)]
        {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(expected_ms)), "{text}");
        }
        for text in ["", "s", "-1s", "1d", "1..2s", "99999h"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
