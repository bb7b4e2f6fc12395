//! Checks of names and passwords.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Name and password of `Basic …`, the value of an Authorization field (RFC 7617 §2).
pub fn basic_credentials(field: &str) -> Option<(String, String)> {
    let (scheme, encoded) = field.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = pair.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

/// Whether what was given is the secret. How long it takes depends on the length of what was given, which the client
/// it knows, and neither on the secret nor on where they differ.
pub fn is_secret(secret: &[u8], given: &[u8]) -> bool {
    let mut expected = secret.iter().cycle();
    let mut differs = secret.len() ^ given.len();
    for byte in given {
        differs |= usize::from(byte ^ expected.next().copied().unwrap_or_default());
    }
    // Kept from the optimizer, which might leave the loop at the first difference.
    std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_read() {
        for (field, expected) in [
            ("Basic YWRhOnNlY3JldA==", Some(("ada", "secret"))),
            (" basic  YWRhOnNlY3JldA== ", Some(("ada", "secret"))),
            ("Basic YWRhOmE6Yg==", Some(("ada", "a:b"))),
            ("Basic YWRh", None),
            ("Basic ?", None),
            ("Bearer YWRhOnNlY3JldA==", None),
            ("Basic", None),
        ] {
            let expected = expected.map(|(name, password)| (name.to_owned(), password.to_owned()));
            assert_eq!(basic_credentials(field), expected, "{field}");
        }
    }

    #[test]
    fn only_the_secret_is_the_secret() {
        for (secret, given, expected) in [
            ("", "", true),
            ("", "a", false),
            ("ab", "", false),
            ("ab", "ab", true),
            ("ab", "ac", false),
            ("ab", "abab", false),
            ("abab", "ab", false),
        ] {
            assert_eq!(is_secret(secret.as_bytes(), given.as_bytes()), expected, "{secret} {given}");
        }
    }
}
