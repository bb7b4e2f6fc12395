//! Integers beyond 64 bits.

/// An `xs:integer` that does not fit 64 bits; arithmetic beyond 128 bits is an overflow.
///
/// Stored as two words so that an [`super::Atomic`] stays small: `i128` would align it to sixteen bytes.
/// Invariant: the value is outside the range of `i64`, so that equal integers have one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WideInteger {
    high: i64,
    low: u64,
}

impl WideInteger {
    pub(super) fn new(value: i128) -> WideInteger {
        WideInteger { high: (value >> 64) as i64, low: value as u64 }
    }

    /// The number.
    pub fn value(self) -> i128 {
        (i128::from(self.high) << 64) | i128::from(self.low)
    }
}
