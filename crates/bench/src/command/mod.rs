//! What `penstock bench …` and `penstock echo …` do. Arguments are those after the command's own name.
//!
//! One file per subcommand; each builds its [`clap::Command`] and runs the matches.
mod arguments;
mod echo_command;
mod jmx_command;
mod overrides;
mod plans;
mod report_command;
mod run;
mod url;

pub use arguments::parse_duration;

use crate::error::Error;
use clap::ArgMatches;
use clap::error::ErrorKind;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `penstock bench ARGS…`.
pub fn bench(args: Vec<String>) -> ExitCode {
    run(bench_command(), args, |matches| match matches.subcommand() {
        Some(("run", matches)) => run::run(matches),
        Some(("plans", matches)) => plans::run(matches),
        Some(("url", matches)) => url::run(matches),
        Some(("jmx", matches)) => jmx_command::run(matches),
        Some(("report", matches)) => report_command::run(matches),
        Some(("payload", matches)) => plans::run_payload(matches),
        _ => Err(Error::Usage("missing subcommand; see `penstock bench --help`".to_owned())),
    })
}

/// Runs `penstock echo ARGS…`.
pub fn echo(args: Vec<String>) -> ExitCode {
    run(echo_command(), args, echo_command::run)
}

/// The command line of `penstock echo`.
pub fn echo_command() -> clap::Command {
    echo_command::command()
}

/// The command line of `penstock bench`.
pub fn bench_command() -> clap::Command {
    clap::Command::new("bench")
        .bin_name("penstock bench")
        .about("Measures any gateway as the published results were measured")
        .after_help(
            "Start with `penstock bench run quick`: it measures this program with its own backend in under two minutes.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(run::command())
        .subcommand(plans::command())
        .subcommand(url::command())
        .subcommand(jmx_command::command())
        .subcommand(report_command::command())
        .subcommand(plans::payload_command())
}

/// How a command that ran to its end ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything went well.
    Done,
    /// Results were written, but requests failed or assertions did not hold.
    Failures,
}

fn run(command: clap::Command, args: Vec<String>, act: impl FnOnce(&ArgMatches) -> Result<Outcome, Error>) -> ExitCode {
    let name = command.get_name().to_owned();
    let outcome = match command.try_get_matches_from(std::iter::once(name).chain(args)) {
        Ok(matches) => {
            raise_open_files_limit();
            act(&matches)
        }
        Err(help) if matches!(help.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            print(&help.to_string());
            return ExitCode::SUCCESS;
        }
        Err(help) if help.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = write!(std::io::stderr(), "{help}");
            return ExitCode::from(2);
        }
        Err(error) => Err(Error::Usage(error.to_string().trim_end().trim_start_matches("error: ").to_owned())),
    };
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::Failures) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error}");
            error.exit_code()
        }
    }
}

/// A thousand users are a thousand sockets here, as many in the gateway and again in the back-end, while many systems
/// allow 1024 open files by default. A refused limit shows as failed connections.
fn raise_open_files_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Prints to standard output; a closed pipe is not an error.
pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// A flag that Ctrl-C sets, so that what was measured is kept. A second Ctrl-C ends the program at once.
pub(crate) fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let listen = move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            while wait_for_interrupt().await {
                if flag.swap(true, Ordering::Relaxed) {
                    // Status 130 is what a shell reports for a program that Ctrl-C ended.
                    std::process::exit(130);
                }
            }
        });
    };
    // Without the thread Ctrl-C ends the program as it does any other.
    let _ = std::thread::Builder::new().name("interrupt".to_owned()).spawn(listen);
    stop
}

/// Waits for Ctrl-C or a request to terminate; `false` if signals cannot be received.
async fn wait_for_interrupt() -> bool {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return false;
    };
    std::future::poll_fn(|cx| {
        if interrupt.poll_recv(cx).is_ready() || terminate.poll_recv(cx).is_ready() {
            return std::task::Poll::Ready(true);
        }
        std::task::Poll::Pending
    })
    .await
}
