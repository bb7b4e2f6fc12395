//! Why a command ended early, and its exit status.

use std::fmt;

use crate::load::LoadError;

/// A message for the person at the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit status.
    pub status: u8,
    /// What is wrong.
    pub message: String,
}

impl Failure {
    /// The input is wrong.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure { status: 1, message: message.into() }
    }

    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure { status: 2, message: message.into() }
    }

    /// The environment is wrong: a port is taken, a file is missing.
    pub fn environment(message: impl Into<String>) -> Failure {
        Failure { status: 3, message: message.into() }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Failure {
        Failure::environment(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
