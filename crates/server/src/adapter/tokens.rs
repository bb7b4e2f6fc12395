//! Access tokens of those who deploy. They live as long as the process at the most.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tokens at once. Whoever asks for one for every call must not fill the memory.
const TOKENS_MAX: usize = 10_000;

/// The tokens that are out.
#[derive(Debug)]
pub(super) struct Tokens {
    lifetime: Duration,
    until: Mutex<HashMap<String, Instant>>,
}

impl Tokens {
    pub(super) fn new(lifetime: Duration) -> Tokens {
        Tokens { lifetime, until: Mutex::default() }
    }

    /// Makes a token; `None` when the system has no random numbers.
    pub(super) fn issue(&self) -> Option<String> {
        let mut random = [0u8; 32];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut random))
            .ok()?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let now = Instant::now();
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.retain(|_, end| *end > now);
        if until.len() >= TOKENS_MAX
            && let Some(first) = until.iter().min_by_key(|(_, end)| **end).map(|(token, _)| token.clone())
        {
            until.remove(&first);
        }
        until.insert(token.clone(), now + self.lifetime);
        Some(token)
    }

    /// Whether a token is good.
    pub(super) fn knows(&self, token: &str) -> bool {
        let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.get(token).is_some_and(|end| *end > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_end() {
        let tokens = Tokens::new(Duration::from_secs(60));
        let token = tokens.issue().unwrap();
        assert!(tokens.knows(&token) && !tokens.knows(&token[1..]));
        assert_ne!(tokens.issue().unwrap(), token);
        let ended = Tokens::new(Duration::ZERO);
        let token = ended.issue().unwrap();
        assert!(!ended.knows(&token));
    }
}
