//! Drives the kit without the product: `cargo run --release -p penstock-bench --example penstock-bench -- bench …`.
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next();
    let rest = args.collect();
    match command.as_deref() {
        Some("echo") => penstock_bench::command::echo(rest),
        Some("bench") => penstock_bench::command::bench(rest),
        _ => {
            let usage = "usage: penstock-bench bench|echo …\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), usage.as_bytes());
            ExitCode::from(2)
        }
    }
}
