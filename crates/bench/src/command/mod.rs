//! What `penstock bench …` and `penstock echo …` do. Arguments are those after the command's own name.
use std::process::ExitCode;

/// Runs `penstock bench ARGS…`.
pub fn bench(_args: Vec<String>) -> ExitCode {
    ExitCode::from(2)
}

/// Runs `penstock echo ARGS…`.
pub fn echo(_args: Vec<String>) -> ExitCode {
    ExitCode::from(2)
}
