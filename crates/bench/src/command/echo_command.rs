//! `penstock echo`: the backend of the published tests, on its own.
use super::arguments::{duration, flag, number, option, text};
use super::{Outcome, stop_on_interrupt};
use crate::echo::{EchoServer, EchoSpec};
use crate::error::Error;
use clap::ArgMatches;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub fn command() -> clap::Command {
    clap::Command::new("echo")
        .bin_name("penstock echo")
        .about("Returns every request's body and content type, over HTTP/1.1 and HTTP/2")
        .arg(option("port", "PORT", "Port to listen on; 0 takes a free one").default_value("8688"))
        .arg(option("address", "ADDRESS", "Address to listen on [default: every address]"))
        .arg(option("delay", "TIME", "Delay before each response, such as 30ms").default_value("0ms"))
        .arg(flag("tls", "Use TLS with a self-signed certificate"))
        .arg(flag("describe", "Return method and path in JSON for requests without a body"))
        .arg(option("threads", "N", "Threads [default: one per processor]"))
}

pub fn run(matches: &ArgMatches) -> Result<Outcome, Error> {
    let mut spec =
        EchoSpec { tls: matches.get_flag("tls"), describe: matches.get_flag("describe"), ..EchoSpec::default() };
    if let Some(port) = number(matches, "port")? {
        spec.port =
            u16::try_from(port).map_err(|_| Error::Usage(format!("`--port {port}`: a port is at most 65535")))?;
    }
    if let Some(address) = text(matches, "address") {
        let wrong = |_| Error::Usage(format!("`--address {address}`: `{address}` is not an IP address"));
        spec.address = Some(address.parse().map_err(wrong)?);
    }
    spec.delay = duration(matches, "delay")?.unwrap_or_default();
    spec.threads = number(matches, "threads")?.unwrap_or(spec.threads).max(1);
    let stop = stop_on_interrupt();
    let server = EchoServer::start(&spec)?;
    let scheme = if spec.tls { "https" } else { "http" };
    let delay = if spec.delay.is_zero() { String::new() } else { format!(", delay {:?}", spec.delay) };
    let _ =
        writeln!(std::io::stderr(), "echo backend on {scheme}://localhost:{}{delay}; Ctrl-C ends it", server.port());
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(Outcome::Done)
}
