//! Passwords of users that the API adds: hashed with Argon2id.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use penstock_engine::is_secret;
use ring::rand::{SecureRandom, SystemRandom};

/// Longer passwords are refused, because hashing takes the longer the longer they are.
pub(super) const PASSWORD_BYTES_MAX: usize = 256;

/// The first choice of OWASP for Argon2id: 19 MiB and two passes.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;

/// What a hash of a configuration may cost at most.
const MEMORY_KIB_MAX: u32 = 256 * 1024;
const PASSES_MAX: u32 = 16;

const HASH_BYTES: usize = 32;

/// Whether a text is a hash in place of a password.
pub(super) fn is_hash(text: &str) -> bool {
    text.starts_with("$argon2id$")
}

/// The hash of a password, with what is needed to verify it; `None` when the password is too long.
pub(super) fn hash(password: &str) -> Option<String> {
    let mut salt = [0; 16];
    SystemRandom::new().fill(&mut salt).ok()?;
    let hash = compute(password, &salt, MEMORY_KIB, PASSES)?;
    let (salt, hash) = (STANDARD_NO_PAD.encode(salt), STANDARD_NO_PAD.encode(hash));
    Some(format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p=1${salt}${hash}"))
}

/// Whether a password has a hash.
pub(super) fn verify(password: &str, kept: &str) -> bool {
    let parts: Vec<&str> = kept.split('$').collect();
    let ["", "argon2id", "v=19", parameters, salt, hash] = parts.as_slice() else { return false };
    let number = |name: &str| parameters.split(',').find_map(|pair| pair.strip_prefix(name)?.parse::<u32>().ok());
    let (Some(memory), Some(passes)) = (number("m="), number("t=")) else { return false };
    if memory > MEMORY_KIB_MAX || passes > PASSES_MAX || number("p=") != Some(1) {
        return false;
    }
    let (Ok(salt), Ok(expected)) = (STANDARD_NO_PAD.decode(salt), STANDARD_NO_PAD.decode(hash)) else { return false };
    compute(password, &salt, memory, passes).is_some_and(|hash| is_secret(&expected, &hash))
}

fn compute(password: &str, salt: &[u8], memory_kib: u32, passes: u32) -> Option<[u8; HASH_BYTES]> {
    if password.len() > PASSWORD_BYTES_MAX {
        return None;
    }
    let parameters = Params::new(memory_kib, passes, 1, Some(HASH_BYTES)).ok()?;
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
        let kept = hash("secret").unwrap();
        assert!(is_hash(&kept) && verify("secret", &kept));
        assert!(!verify("Secret", &kept));
        for broken in ["", "secret", "$argon2id$v=19$m=8$x$y", "$argon2id$v=19$m=4000000,t=1,p=1$AAAA$AAAA"] {
            assert!(!verify("secret", broken), "{broken}");
        }
        assert!(hash(&"x".repeat(PASSWORD_BYTES_MAX + 1)).is_none());
    }
}
