//! `penstock xslt` on its own: `xslt xslt STYLESHEET [SOURCE] [-p name=value]… [-o FILE]`.

use std::process::ExitCode;

use penstock_xslt::command::{Status, USAGE, parse_arguments, run};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "xslt") {
        arguments.remove(0);
    }
    let mut errors = std::io::stderr();
    let status = match parse_arguments(arguments) {
        Ok(arguments) => run(&arguments, &mut errors),
        Err(message) => {
            use std::io::Write;
            // A closed standard error is ignored.
            let _ = writeln!(errors, "error: {message}\n{USAGE}");
            Status::Usage
        }
    };
    ExitCode::from(status as u8)
}
