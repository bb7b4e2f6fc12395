//! A scalar of a configuration file and the types it can be read as.

use std::path::PathBuf;
use std::time::Duration;

/// A scalar, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value(pub(super) String);

impl Value {
    pub(super) fn text(&self) -> &str {
        self.0.trim()
    }

    /// The trimmed text as a type of its own.
    pub(super) fn string<'v, T: From<&'v str>>(&'v self) -> T {
        self.text().into()
    }

    /// The text with its white space, as passwords have it.
    pub(super) fn verbatim(&self) -> String {
        self.0.clone()
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(self.text())
    }

    /// The texts of a list, which are kept one a line.
    pub(super) fn list(&self) -> Vec<std::sync::Arc<str>> {
        self.0.lines().map(str::trim).filter(|text| !text.is_empty()).map(Into::into).collect()
    }

    pub(super) fn flag(&self) -> Result<bool, String> {
        match self.text().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("must be `true` or `false`, not `{}`", self.0)),
        }
    }

    pub(super) fn number<N: std::str::FromStr>(&self, what: &str) -> Result<N, String> {
        self.text().parse().map_err(|_| format!("must be {what}, not `{}`", self.0))
    }

    pub(super) fn positive(&self) -> Result<usize, String> {
        match self.number("a whole number above 0")? {
            0 => Err("must be a whole number above 0, not `0`".to_owned()),
            number => Ok(number),
        }
    }

    pub(super) fn port(&self) -> Result<u16, String> {
        self.number("a port from 0 to 65535")
    }

    /// A time; a bare number counts in `unit`.
    pub(super) fn duration(&self, unit: &str) -> Result<Duration, String> {
        let text = self.text();
        let bare = text.bytes().all(|byte| byte.is_ascii_digit());
        let found = if bare { parse_duration(&format!("{text}{unit}")) } else { parse_duration(text) };
        found
            .filter(|time| !time.is_zero())
            .ok_or_else(|| format!("must be a time such as `30s` or `500ms`, not `{}`", self.0))
    }

    /// A size: `64KiB`, `10MB`, or bytes.
    pub(super) fn bytes(&self) -> Result<u64, String> {
        parse_bytes(self.text())
            .filter(|size| *size > 0)
            .ok_or_else(|| format!("must be a size such as `64KiB` or `10MiB`, not `{}`", self.0))
    }

    /// A size of something in memory.
    pub(super) fn size(&self) -> Result<usize, String> {
        usize::try_from(self.bytes()?).map_err(|_| "is too large".to_owned())
    }
}

/// Reads `500ms`, `30s`, `5m`, `2h`; a bare number is seconds.
fn parse_duration(text: &str) -> Option<Duration> {
    let split = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let seconds = digits.parse::<f64>().ok()?
        * match unit.trim() {
            "ms" => 1e-3,
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
    // A year: what is longer is a mistake.
    (0.0..=31_536_000.0).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

fn parse_bytes(text: &str) -> Option<u64> {
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = match unit.trim() {
        "" | "B" => 1,
        "K" | "KB" | "KiB" | "k" | "kB" => 1 << 10,
        "M" | "MB" | "MiB" | "m" => 1 << 20,
        "G" | "GB" | "GiB" | "g" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, expected) in
            [("1", Some(1)), ("64KiB", Some(65_536)), ("2 MB", Some(2 << 20)), ("", None), ("x", None), ("1T", None)]
        {
            assert_eq!(parse_bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn times_are_read_with_the_unit_of_their_key() {
        assert_eq!(Value("120000".into()).duration("ms"), Ok(Duration::from_secs(120)));
        assert_eq!(Value("2m".into()).duration("ms"), Ok(Duration::from_secs(120)));
        assert!(Value("0".into()).duration("s").is_err());
        assert!(Value("soon".into()).duration("s").is_err());
    }
}
