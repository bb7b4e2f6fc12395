//! JTL, JMeter's result files: one line of comma-separated values per sample, in JMeter's default columns.
mod read;
mod write;

pub use read::{JtlSummary, read};
pub use write::{JtlBuffer, JtlSink, Names, Sample};
