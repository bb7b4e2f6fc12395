//! Access tokens of users who deploy. They end with the process, and when the users change.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tokens at once: a script that gets one for every call must not fill the memory.
const TOKENS_MAX: usize = 10_000;

/// Names and passwords.
type Users = [(String, String)];

/// The tokens that are valid.
#[derive(Debug)]
pub(super) struct Tokens {
    lifetime: Duration,
    issued: Mutex<Issued>,
}

#[derive(Debug, Default)]
struct Issued {
    /// The users when the tokens were issued: a token must not outlive the password that it was given for.
    users: Vec<(String, String)>,
    until: HashMap<String, Instant>,
}

impl Issued {
    fn forget_others(&mut self, users: &Users) {
        if self.users != users {
            self.users = users.to_vec();
            self.until.clear();
        }
    }
}

impl Tokens {
    pub(super) fn new(lifetime: Duration) -> Tokens {
        Tokens { lifetime, issued: Mutex::default() }
    }

    /// Makes a token; `None` when the system has no random numbers.
    pub(super) fn issue(&self, users: &Users) -> Option<String> {
        let mut random = [0u8; 32];
        std::fs::File::open("/dev/urandom")
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut random))
            .ok()?;
        let token: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let now = Instant::now();
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.forget_others(users);
        let until = &mut issued.until;
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
    pub(super) fn knows(&self, token: &str, users: &Users) -> bool {
        let mut issued = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.forget_others(users);
        issued.until.get(token).is_some_and(|end| *end > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_end() {
        let users = [("anna".to_owned(), "secret".to_owned())];
        let tokens = Tokens::new(Duration::from_secs(60));
        let token = tokens.issue(&users).unwrap();
        assert!(tokens.knows(&token, &users) && !tokens.knows(&token[1..], &users));
        assert_ne!(tokens.issue(&users).unwrap(), token);
        assert!(!tokens.knows(&token, &[("anna".to_owned(), "other".to_owned())]), "the users changed");
        let ended = Tokens::new(Duration::ZERO);
        let token = ended.issue(&users).unwrap();
        assert!(!ended.knows(&token, &users));
    }
}
