//! Path templates of operations, and the spellings of paths.

mod dots;
mod pattern;

pub use dots::{has_dot_segment, other_readings, without_needless_escapes, without_segment_escapes};
pub use pattern::{PathPattern, Segment, Segments, escaped, mixed};
