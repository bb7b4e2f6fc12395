//! Which steps elements of a name can never match: found out once per name.

use super::super::super::plan::Mask;

/// Names of which the misses are remembered.
const MISSES: usize = 32;

/// Steps that elements of a name cannot pass in any namespace, by the number the reader gives the name.
pub(in super::super) struct Misses([(u32, Mask); MISSES]);

impl Default for Misses {
    fn default() -> Misses {
        Misses([(0, 0); MISSES])
    }
}

impl Misses {
    /// Whether an element of this name is known to pass none of these steps.
    #[inline]
    pub(in super::super) fn cover(&self, number: u32, applying: Mask) -> bool {
        let (known, missed) = self.0[number as usize % MISSES];
        applying == 0 || (known == number && number != 0 && applying & !missed == 0)
    }

    pub(super) fn remember(&mut self, number: u32, missed: Mask) {
        self.0[number as usize % MISSES] = (number, missed);
    }
}
