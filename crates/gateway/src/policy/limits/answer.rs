//! Headers and errors of limits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_engine::Exchange;
use penstock_engine::clock::{MONTHS, WEEKDAYS, civil};

/// One limit as a client sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LimitState {
    pub(super) limit: u64,
    pub(super) left: u64,
    pub(super) reset_ms: u64,
}

/// A limit that refused.
pub(super) struct Refusal {
    pub(super) code: u32,
    pub(super) state: LimitState,
}

const STANDARD: [&str; 3] = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];
const COMMON: [&str; 3] = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

impl LimitState {
    /// How much is left.
    pub(super) fn report(&self, exchange: &mut Exchange) {
        self.put(exchange, &STANDARD);
    }

    /// That nothing is left, and when to come again.
    pub(super) fn refuse(&self, exchange: &mut Exchange) {
        self.put(exchange, &STANDARD);
        self.put(exchange, &COMMON);
        // The next full second: a request at that time is not rejected again.
        let again = SystemTime::now() + Duration::from_millis(self.reset_ms + 999);
        exchange.reply_headers.append("Retry-After", http_date(again));
    }

    fn put(&self, exchange: &mut Exchange, names: &[&'static str; 3]) {
        let values = [self.limit, self.left, self.reset_ms.div_ceil(1000)];
        for (name, value) in names.iter().zip(values) {
            exchange.reply_headers.append_number(name, value);
        }
    }
}

/// RFC 9110 §5.6.7.
fn http_date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    let (weekday, month) = (&WEEKDAYS[(days % 7) as usize][..3], &MONTHS[(month - 1) as usize][..3]);
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
