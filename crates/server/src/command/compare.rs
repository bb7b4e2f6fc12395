//! `penstock compare --with URL FILE…`: the same requests to two servers.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_transports::http::tls::{ClientTrust, TlsClient};
use tokio::runtime::LocalOptions;

use super::Failure;
use crate::compare::{self, Comparison, Mask};

const AFTER: &str = "\
A file holds recorded requests: a HAR file of a browser or proxy, or a line of JSON for each request:
  {\"method\": \"POST\", \"path\": \"/orders?x=1\", \"headers\": {\"Content-Type\": \"application/json\"}, \"body\": \"{}\"}

Status, header fields and bodies are compared, JSON and XML by their content. Identifiers (UUIDs) and times of now may differ,
as may fields of the connection, `Date`, `Server` and `Set-Cookie`. Requests are sent: do not record what must not happen twice.

Exit status 1 if a response differs.";

pub(super) fn command() -> Command {
    Command::new("compare")
        .about("Sends recorded requests to two servers and compares the responses")
        .after_help(AFTER)
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .action(ArgAction::Append)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Recorded requests; - for standard input"),
        )
        .arg(
            Arg::new("with")
                .long("with")
                .value_name("URL")
                .required(true)
                .value_parser(server)
                .help("The server that is replaced, such as http://localhost:8290"),
        )
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("URL")
                .default_value("http://localhost:8290")
                .value_parser(server)
                .help("The server that replaces it"),
        )
        .arg(
            Arg::new("mask")
                .long("mask")
                .value_name("RULE")
                .action(ArgAction::Append)
                .value_parser(Mask::parse)
                .help("What may differ: header:NAME, json:$.a.*.b, xml:NAME; may be given several times"),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .default_value("60")
                .value_parser(clap::value_parser!(u64).range(1..=3600))
                .help("How long a response may take"),
        )
        .arg(
            Arg::new("trust-all")
                .long("trust-all")
                .action(ArgAction::SetTrue)
                .help("Do not check the certificates of the servers"),
        )
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Prints JSON"))
}

fn server(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest.filter(|rest| !rest.is_empty() && !rest.contains('@')) {
        Some(_) => Ok(text.to_owned()),
        None => Err("must begin with `http://` or `https://`".to_owned()),
    }
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let mut requests = Vec::new();
    for file in matches.get_many::<PathBuf>("file").into_iter().flatten() {
        let shown = file.display();
        let bytes = super::read(&file.to_string_lossy())?;
        let text = String::from_utf8(bytes).map_err(|_| Failure::input(format!("`{shown}`: it is not UTF-8")))?;
        requests.extend(compare::read(&text).map_err(|why| Failure::input(format!("`{shown}`: {why}")))?);
    }
    if requests.is_empty() {
        return Err(Failure::input("the files hold no request"));
    }
    let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let trust = ClientTrust { trust_everything: matches.get_flag("trust-all"), ..ClientTrust::default() };
    let comparison = Comparison {
        reference: text("with"),
        candidate: text("to"),
        timeout: Duration::from_secs(matches.get_one::<u64>("timeout").copied().unwrap_or(60)),
        masks: matches.get_many::<Mask>("mask").into_iter().flatten().cloned().collect(),
        tls: Arc::new(TlsClient::new(trust)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(|cause| Failure::environment(format!("no runtime: {cause}")))?;
    let outcome = runtime.block_on(compare::run(&comparison, &requests));
    super::print(&if matches.get_flag("json") { outcome.as_json() } else { outcome.as_text() });
    Ok(if outcome.different.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
