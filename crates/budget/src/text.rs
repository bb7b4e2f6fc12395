//! Text of any length, checked with pauses.
#![expect(unsafe_code, reason = "checking 64 MB a second time takes tens of milliseconds, without a pause")]

use crate::steps;

/// Bytes that are checked between two pauses: some tens of microseconds.
const BYTES_AT_ONCE: usize = 64 << 10;

/// Bytes that are checked in the time of one step.
const BYTES_PER_STEP: usize = 64;

/// The bytes as text; otherwise the number of leading bytes that are text.
pub fn utf8(bytes: &[u8]) -> Result<&str, usize> {
    let mut checked = 0;
    while bytes.len() - checked > BYTES_AT_ONCE {
        checked += match std::str::from_utf8(&bytes[checked..checked + BYTES_AT_ONCE]) {
            Ok(piece) => piece.len(),
            // The last character is cut.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            Err(error) => return Err(checked + error.valid_up_to()),
        };
        steps(BYTES_AT_ONCE / BYTES_PER_STEP);
    }
    if let Err(error) = std::str::from_utf8(&bytes[checked..]) {
        return Err(checked + error.valid_up_to());
    }
    // SAFETY: `bytes` is the pieces that were checked, one after another without a gap, and each is whole characters.
    Ok(unsafe { std::str::from_utf8_unchecked(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_between_characters() {
        for shift in 0..4 {
            let mut text = "x".repeat(shift);
            while text.len() < 3 * BYTES_AT_ONCE {
                text.push('\u{10348}');
            }
            assert_eq!(utf8(text.as_bytes()), Ok(text.as_str()));
            for at in [0, BYTES_AT_ONCE - 1, BYTES_AT_ONCE, BYTES_AT_ONCE + 1, text.len() - 1] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = 0xff;
                let expected = std::str::from_utf8(&bytes).unwrap_err().valid_up_to();
                assert_eq!(utf8(&bytes), Err(expected), "{shift} {at}");
            }
        }
    }
}
