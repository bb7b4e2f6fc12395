//! Pauses between attempts to reach what is away.

use std::time::Duration;

/// The first pause; it doubles with each failure in a row.
const FIRST: Duration = Duration::from_millis(500);

/// The longest pause between two attempts.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// The pauses of one service.
#[derive(Debug, Clone)]
pub struct Backoff {
    next: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff { next: FIRST }
    }
}

impl Backoff {
    /// The next pause: between three quarters of its length and all of it, so that many services do not return to a broker
    /// at once.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        let noise = u32::from(crate::clock::random() as u8);
        pause * 3 / 4 + pause / 4 * noise / u32::from(u8::MAX)
    }

    /// The next pause is the first one again.
    pub fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::default();
        let mut expected = FIRST;
        for _ in 0..12 {
            let pause = backoff.next_pause();
            assert!(pause <= expected && pause >= expected * 3 / 4, "{pause:?} of {expected:?}");
            expected = (expected * 2).min(LONGEST);
        }
        backoff.reset();
        assert!(backoff.next_pause() <= FIRST);
    }
}
