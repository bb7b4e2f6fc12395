//! Numbers as text, for what every message has some of. By hand: the formatter would cost more than what the number is
//! written into.

/// As many digits as a number may have.
pub const DIGITS_MAX: usize = 20;

/// `00` to `99`: a division by a hundred costs what one by ten does.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// The digits of a number, in ASCII.
pub fn decimal(mut number: u64, digits: &mut [u8; DIGITS_MAX]) -> &[u8] {
    let mut at = DIGITS_MAX;
    while number >= 10 {
        at -= 2;
        [digits[at], digits[at + 1]] = PAIRS[(number % 100) as usize];
        number /= 100;
    }
    // The last digit of an odd number of them.
    if number > 0 || at == DIGITS_MAX {
        at -= 1;
        digits[at] = b'0' + number as u8;
    }
    &digits[at..]
}

/// Puts the digits of a number behind a text.
pub fn push_decimal(text: &mut String, number: u64) {
    text.extend(decimal(number, &mut [0; DIGITS_MAX]).iter().map(|digit| char::from(*digit)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_formatter_writes_them() {
        for number in [0, 7, 10, 99, 100, 65_535, u64::MAX - 1, u64::MAX] {
            let mut text = String::new();
            push_decimal(&mut text, number);
            assert_eq!(text, number.to_string());
        }
    }
}
