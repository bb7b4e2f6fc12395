//! Passwords: hashed with Argon2id.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::random;

/// How much work a guess costs.
#[derive(Debug, Clone, Copy)]
pub struct PasswordCost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over it.
    pub passes: u32,
}

impl Default for PasswordCost {
    fn default() -> PasswordCost {
        // The first choice of OWASP for Argon2id: 19 MiB and two passes.
        PasswordCost { memory_kib: 19 * 1024, passes: 2 }
    }
}

/// What a hash from a file may cost at most.
const COST_MAX: PasswordCost = PasswordCost { memory_kib: 256 * 1024, passes: 16 };

/// Longer passwords are refused, because hashing takes the longer the longer they are.
pub const PASSWORD_BYTES_MAX: usize = 256;

const HASH_BYTES: usize = 32;

/// The hash of a password, with what is needed to check it.
pub fn hash(password: &str, cost: PasswordCost) -> Option<String> {
    let salt = random::bytes::<16>();
    let hash = compute(password, &salt, cost)?;
    let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
    Some(format!("$argon2id$v=19$m={},t={},p=1${salt}${hash}", cost.memory_kib, cost.passes))
}

/// Whether a text is a hash in place of a password.
pub fn is_hash(text: &str) -> bool {
    text.starts_with("$argon2id$")
}

/// Whether a password has a hash.
pub fn is(password: &str, kept: &str) -> bool {
    let parts: Vec<&str> = kept.split('$').collect();
    let ["", "argon2id", "v=19", parameters, salt, hash] = parts.as_slice() else { return false };
    let number = |name: &str| parameters.split(',').find_map(|pair| pair.strip_prefix(name)?.parse::<u32>().ok());
    let (Some(memory_kib), Some(passes), Some(1)) = (number("m="), number("t="), number("p=")) else { return false };
    if memory_kib > COST_MAX.memory_kib || passes > COST_MAX.passes {
        return false;
    }
    let (Ok(salt), Ok(expected)) = (STANDARD_NO_PAD.decode(salt), STANDARD_NO_PAD.decode(hash)) else { return false };
    compute(password, &salt, PasswordCost { memory_kib, passes }).is_some_and(|hash| random::is_same(&hash, &expected))
}

fn compute(password: &str, salt: &[u8], cost: PasswordCost) -> Option<[u8; HASH_BYTES]> {
    if password.len() > PASSWORD_BYTES_MAX {
        return None;
    }
    let parameters = Params::new(cost.memory_kib, cost.passes, 1, Some(HASH_BYTES)).ok()?;
    let mut hash = [0; HASH_BYTES];
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters);
    argon.hash_password_into(password.as_bytes(), salt, &mut hash).ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_one_password() {
        let cost = PasswordCost { memory_kib: 8, passes: 1 };
        let kept = hash("secret", cost).unwrap();
        assert!(is_hash(&kept) && is("secret", &kept) && !is("Secret", &kept) && !is("", &kept));
        assert_ne!(hash("secret", cost).unwrap(), kept, "each hash has a salt of its own");
        for broken in [
            "",
            "secret",
            "$argon2id$v=19$m=8$x$y",
            "$argon2i$v=19$m=8,t=1,p=1$AAAA$AAAA",
            "$argon2id$v=19$m=4000000,t=1,p=1$AAAA$AAAA",
        ] {
            assert!(!is("secret", broken), "{broken}");
        }
        assert!(hash(&"x".repeat(PASSWORD_BYTES_MAX + 1), cost).is_none());
    }
}
