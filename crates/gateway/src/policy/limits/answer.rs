//! What clients are told about limits.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_engine::{Exchange, clock};

use crate::policy::facts::{DIGITS_MAX, decimal};

/// One limit as a client sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    pub(super) limit: u64,
    pub(super) left: u64,
    pub(super) reset_ms: u64,
}

/// Names of fields, shared: an answer has three of them at the least.
struct Names {
    standard: [Arc<str>; 3],
    common: [Arc<str>; 3],
    retry_after: Arc<str>,
}

thread_local! {
    // Of the core, for the count of an `Arc` is a place where cores meet.
    static NAMES: Names = Names {
        standard: ["RateLimit-Limit".into(), "RateLimit-Remaining".into(), "RateLimit-Reset".into()],
        common: ["X-RateLimit-Limit".into(), "X-RateLimit-Remaining".into(), "X-RateLimit-Reset".into()],
        retry_after: "Retry-After".into(),
    };
}

impl Told {
    /// How much is left.
    pub(super) fn tell(&self, exchange: &mut Exchange) {
        NAMES.with(|names| self.put(exchange, &names.standard));
    }

    /// That nothing is left, and when to come again.
    pub(super) fn refuse(&self, exchange: &mut Exchange) {
        let retry_after = NAMES.with(|names| {
            self.put(exchange, &names.standard);
            self.put(exchange, &names.common);
            names.retry_after.clone()
        });
        // The next full second: whoever comes at that time is not refused again.
        let again = SystemTime::now() + Duration::from_millis(self.reset_ms + 999);
        exchange.reply_headers.push((retry_after, http_date(again).into()));
    }

    fn put(&self, exchange: &mut Exchange, names: &[Arc<str>; 3]) {
        let values = [self.limit, self.left, self.reset_ms.div_ceil(1000)];
        for (name, value) in names.iter().zip(values) {
            exchange.reply_headers.push((name.clone(), decimal(value, &mut [0; DIGITS_MAX]).into()));
        }
    }
}

/// RFC 9110 §5.6.7.
fn http_date(time: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = clock::civil(days as i64);
    let (weekday, month) = (DAYS[(days % 7) as usize], MONTHS[(month - 1) as usize]);
    format!("{weekday}, {day:02} {month} {year:04} {:02}:{:02}:{:02} GMT", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_http_wants_them() {
        let date = http_date(UNIX_EPOCH + Duration::from_secs(784_111_777));
        assert_eq!(date, "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
