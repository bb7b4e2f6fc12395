//! The moment of a line, in UTC: servers in several places write logs that one can compare.

use std::time::{SystemTime, UNIX_EPOCH};

use penstock_engine::clock::{MONTHS, civil};

/// A moment, split up.
pub(super) struct Moment {
    pub(super) year: i64,
    pub(super) month: u32,
    pub(super) day: u32,
    pub(super) hour: u64,
    pub(super) minute: u64,
    pub(super) second: u64,
    pub(super) milli: u32,
}

impl Moment {
    pub(super) fn from_time(time: SystemTime) -> Moment {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (days, seconds) = ((since.as_secs() / 86_400) as i64, since.as_secs() % 86_400);
        let (year, month, day) = civil(days);
        Moment {
            year,
            month,
            day,
            hour: seconds / 3600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
            milli: since.subsec_millis(),
        }
    }

    pub(super) fn month_name(&self) -> &'static str {
        MONTHS.get(self.month as usize - 1).map_or("", |name| &name[..3])
    }
}
