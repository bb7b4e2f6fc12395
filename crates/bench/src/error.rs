//! What can go wrong, sorted by who has to act: the exit status follows from it.
use std::fmt;
use std::process::ExitCode;

/// A failure of a command, with a message for the person at the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The input is wrong: a plan, a JMeter file, a result file, or a target that answers wrongly. Exit status 1.
    Input(String),
    /// The command line is wrong. Exit status 2.
    Usage(String),
    /// The environment is wrong: a port is taken, a file is missing, a program does not start. Exit status 3.
    Environment(String),
}

impl Error {
    /// The exit status this failure ends the process with.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Error::Input(_) => 1,
            Error::Usage(_) => 2,
            Error::Environment(_) => 3,
        })
    }

    /// A failed operation on a file, naming the file.
    pub fn file(path: &std::path::Path, error: &std::io::Error) -> Self {
        Error::Environment(format!("cannot open `{}`: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Input(message) | Error::Usage(message) | Error::Environment(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}
