//! The steps of an exchange and their durations, for authorized readers. The loop writes it while an exchange has
//! one; mediators only add notes.

use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::Fault;

/// Maximum recorded steps; a header has a limit.
const STEPS_MAX: usize = 60;

/// Maximum length of a fault and of a note.
const TEXT_BYTES_MAX: usize = 300;

/// What one exchange ran.
#[derive(Debug)]
pub struct Trace {
    started: Instant,
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    steps: Vec<TracedStep>,
    left_out: usize,
    running: Option<(&'static str, Instant)>,
    notes: Vec<(&'static str, String)>,
}

#[derive(Debug)]
struct TracedStep {
    kind: &'static str,
    took: Duration,
    fault: Option<String>,
}

impl Trace {
    /// Starts now.
    pub fn start() -> Rc<Trace> {
        Rc::new(Trace { started: Instant::now(), inner: RefCell::default() })
    }

    /// Records a note about the exchange. The last value of a name wins.
    pub fn note(&self, name: &'static str, text: String) {
        let notes = &mut self.inner.borrow_mut().notes;
        match notes.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = text,
            None => notes.push((name, text)),
        }
    }

    /// A step begins.
    pub(crate) fn begin(&self, kind: &'static str) {
        self.inner.borrow_mut().running = Some((kind, Instant::now()));
    }

    /// The step ends.
    pub(crate) fn end(&self, fault: Option<&Fault>) {
        let mut inner = self.inner.borrow_mut();
        let Some((kind, since)) = inner.running.take() else { return };
        if inner.steps.len() < STEPS_MAX {
            let fault = fault.map(|fault| fault.message.to_string());
            inner.steps.push(TracedStep { kind, took: since.elapsed(), fault });
        } else {
            inner.left_out += 1;
        }
    }

    /// As JSON on one line in ASCII: the notes, the steps with their microseconds, the whole time so far.
    pub fn to_json(&self) -> String {
        let inner = self.inner.borrow();
        let mut out = String::from("{");
        for (name, text) in &inner.notes {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "{}:{},", quoted(name), quoted(text));
        }
        out.push_str("\"steps\":[");
        for (index, step) in inner.steps.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(out, "{comma}[{},{}", quoted(step.kind), micros(step.took));
            if let Some(fault) = &step.fault {
                let _ = write!(out, ",{}", quoted(fault));
            }
            out.push(']');
        }
        out.push(']');
        if inner.left_out > 0 {
            let _ = write!(out, ",\"more_steps\":{}", inner.left_out);
        }
        let _ = write!(out, ",\"total_us\":{}}}", micros(self.started.elapsed()));
        out
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e6)
}

/// A text of bounded length as JSON in ASCII: it becomes a header field.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if out.len() > TEXT_BYTES_MAX {
            out.push_str("...");
            break;
        }
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            other => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_tells_is_json_in_ascii_of_bounded_length() {
        let trace = Trace::start();
        trace.note("route", "old".into());
        trace.note("route", "GET /ä\n\"x\"".into());
        trace.begin("one");
        trace.end(Some(&Fault::new("é".repeat(1000))));
        for _ in 0..STEPS_MAX {
            trace.begin("more");
            trace.end(None);
        }
        let text = trace.to_json();
        assert!(text.is_ascii() && !text.contains('\n') && text.len() < 4096, "{} bytes", text.len());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["route"], "GET /ä\n\"x\"");
        assert_eq!((json["steps"].as_array().unwrap().len(), json["more_steps"].as_u64()), (STEPS_MAX, Some(1)));
    }
}
