//! One line on the terminal that says what runs and how much time is left.
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is drawn anew.
const REDRAW: Duration = Duration::from_millis(250);

/// The progress of a whole command. Draws nothing when standard error is not a terminal.
pub struct Progress {
    whole: Duration,
    /// Time of the parts that are over.
    done: Duration,
    terminal: bool,
    drawn: Option<Instant>,
}

impl Progress {
    /// `whole` is how long everything together will take.
    pub fn start(whole: Duration) -> Self {
        Progress { whole, done: Duration::ZERO, terminal: std::io::stderr().is_terminal(), drawn: None }
    }

    /// Counts a part as over.
    pub fn finish_part(&mut self, part: Duration) {
        self.done += part;
    }

    /// Draws the line; `elapsed` is the time spent in the running part.
    pub fn show(&mut self, what: &str, elapsed: Duration) {
        let due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW);
        if !self.terminal || !due {
            return;
        }
        self.drawn = Some(Instant::now());
        let spent = (self.done + elapsed).min(self.whole);
        let left = clock(self.whole - spent);
        let share = if self.whole.is_zero() { 1.0 } else { spent.as_secs_f64() / self.whole.as_secs_f64() };
        const BAR_WIDTH: usize = 20;
        let filled = (share * BAR_WIDTH as f64) as usize;
        let bar = format!("{}{}", "━".repeat(filled), "─".repeat(BAR_WIDTH.saturating_sub(filled)));
        // A line longer than the terminal is wide would wrap, and only its last part could be erased.
        let line: String = format!("{bar} {left} left  {what}").chars().take(terminal_width() - 1).collect();
        // Carriage return, then erase to the end of the line: the line is always the last one on the terminal.
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    }

    /// Removes the line, so that other text can be written.
    pub fn clear(&mut self) {
        if self.terminal && self.drawn.take().is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    /// Writes a line above the progress.
    pub fn note(&mut self, text: &str) {
        self.clear();
        let _ = writeln!(std::io::stderr(), "{text}");
    }
}

/// Columns of the terminal; default 80, minimum 2.
fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map_or(80, |size| if size.ws_col == 0 { 80 } else { usize::from(size.ws_col) }).max(2)
}

/// Minutes and seconds, with hours when there are any.
pub fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs() + u64::from(duration.subsec_millis() >= 500);
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_a_clock() {
        for (milliseconds, expected) in [(0, "0:00"), (61_400, "1:01"), (59_600, "1:00"), (3_723_000, "1:02:03")] {
            assert_eq!(clock(Duration::from_millis(milliseconds)), expected);
        }
    }
}
