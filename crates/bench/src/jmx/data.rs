//! CSV data sets: files whose records become variables.
use super::context::Context;
use crate::csv;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The records of a file and how they are handed out.
#[derive(Debug)]
pub struct CsvData {
    /// Names of the variables, by column.
    pub names: Vec<String>,
    pub records: Vec<Vec<String>>,
    pub recycle: bool,
    pub stop_at_end: bool,
    pub sharing: Sharing,
    /// Of all users: the next record.
    pub next: Arc<AtomicUsize>,
    /// Of each group: the next record.
    pub next_of_group: Mutex<HashMap<Arc<str>, usize>>,
    /// Place of the next record in the state of a user.
    pub state: usize,
}

/// Who shares the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    All,
    Group,
    User,
}

/// What JMeter gives to variables when a file is at its end.
const END_OF_FILE: &str = "<EOF>";

impl CsvData {
    /// Gives the variables the values of the next record; `false` if the user stops because there is none.
    pub fn next_record(&self, context: &mut Context, own_next: &mut u64) -> bool {
        let number = match self.sharing {
            Sharing::All => self.next.fetch_add(1, Ordering::Relaxed),
            Sharing::Group => {
                let mut groups = self.next_of_group.lock().unwrap_or_else(PoisonError::into_inner);
                let next = groups.entry(context.group.clone()).or_default();
                *next += 1;
                *next - 1
            }
            Sharing::User => {
                *own_next += 1;
                usize::try_from(*own_next - 1).unwrap_or(usize::MAX)
            }
        };
        let index = if self.recycle { number % self.records.len().max(1) } else { number };
        let record = self.records.get(index);
        if record.is_none() && self.stop_at_end {
            return false;
        }
        for (column, name) in self.names.iter().enumerate() {
            match record.map(|record| record.get(column)) {
                Some(Some(value)) => drop(context.variables.insert(name.clone(), value.clone())),
                // A short record leaves its other variables as they are.
                Some(None) => {}
                None => drop(context.variables.insert(name.clone(), END_OF_FILE.to_owned())),
            }
        }
        true
    }
}

/// Splits a line at a delimiter; fields in quotes may contain it if `quoted`.
pub fn split_line(line: &str, delimiter: &str, quoted: bool) -> Vec<String> {
    if !quoted || !line.contains('"') {
        return line.split(delimiter).map(str::to_owned).collect();
    }
    let mut fields = Vec::new();
    csv::split(line, delimiter, &mut fields);
    fields
}
