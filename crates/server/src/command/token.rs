//! `penstock token`: signed tokens for development and load tests.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_gateway::security::{Claims, Encoding, Signer, issue};
use serde_json::{Value, json};

use super::Failure;
use crate::config::{self, Keystore, Settings, read_signing_key};
use crate::serve;

const AFTER: &str = "\
The token is signed with the gateway's own key, which a gateway with the same configuration and state folder accepts.

  penstock token                                        a token for an hour
  penstock token --scope read:pets --claim team=blue    with a scope and a claim
  penstock token --api-key --api pets:1.0.0             an API key for one API
  penstock token --count 10000 --output tokens.csv      one a line, each for another user";

/// More tokens than a load test needs.
const COUNT_MAX: u32 = 10_000_000;

pub(super) fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let file =
        |name: &'static str, help: &'static str| text(name, "FILE", help).value_parser(clap::value_parser!(PathBuf));
    Command::new("token")
        .about("Issues signed tokens for development and load tests")
        .after_help(AFTER)
        .arg(file("config", "The gateway's penstock.toml [default: ./penstock.toml if it is there]"))
        .arg(file("key", "A private key in PEM instead of the gateway's"))
        .arg(text("issuer", "TEXT", "`iss` [default: the gateway's own]"))
        .arg(text("subject", "NAME", "`sub` [default: admin]"))
        .arg(text("audience", "TEXT", "`aud`, any number of times").action(ArgAction::Append))
        .arg(text("scope", "NAME", "A scope, any number of times").action(ArgAction::Append))
        .arg(text("consumer-key", "TEXT", "`azp`: the consumer key of an application"))
        .arg(
            text("api", "NAME:VERSION[:PLAN]", "An API in the subscriptions of the application")
                .action(ArgAction::Append),
        )
        .arg(text("claim", "NAME=VALUE", "Another claim; JSON, or else a text").action(ArgAction::Append))
        .arg(Arg::new("sandbox").long("sandbox").action(ArgAction::SetTrue).help("A key for the sandbox"))
        .arg(Arg::new("api-key").long("api-key").action(ArgAction::SetTrue).help("An API key instead of a token"))
        .arg(
            text("lifetime", "SECONDS", "Lifetime [default: 3600]")
                .value_parser(clap::value_parser!(u64).range(1..=3_153_600_000)),
        )
        .arg(
            text("count", "N", "Number of tokens, each with its own subject and id [default: 1]")
                .value_parser(clap::value_parser!(u32).range(1..=i64::from(COUNT_MAX))),
        )
        .arg(file("output", "File for the tokens, one a line [default: standard output]"))
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let settings = settings(matches)?;
    let signer = signer(matches, &settings)?;
    let count = matches.get_one::<u32>("count").copied().unwrap_or(1);
    let template = claims(matches, &settings)?;
    let subject = matches.get_one::<String>("subject").map_or("admin", String::as_str);
    let lifetime = matches.get_one::<u64>("lifetime").copied().unwrap_or(3600);
    let make = |number: u32| -> Result<String, Failure> {
        let mut claims = Claims::lasting(lifetime);
        let subject = if count == 1 { subject.to_owned() } else { format!("{subject}{number}") };
        claims.set("sub", subject);
        for (name, value) in &template {
            claims.set(name, value.clone());
        }
        let token = issue(&signer, &claims, Encoding::Base64Url);
        token.map_err(|error| Failure::environment(error.to_string()))
    };
    let Some(file) = matches.get_one::<PathBuf>("output") else {
        for number in 1..=count {
            super::print(&format!("{}\n", make(number)?));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let cannot = |cause: std::io::Error| Failure::environment(format!("`{}`: {cause}", file.display()));
    let mut out = std::io::BufWriter::new(std::fs::File::create(file).map_err(cannot)?);
    for number in 1..=count {
        writeln!(out, "{}", make(number)?).map_err(cannot)?;
    }
    out.flush().map_err(cannot)?;
    Ok(ExitCode::SUCCESS)
}

fn settings(matches: &ArgMatches) -> Result<Settings, Failure> {
    let surroundings = config::surroundings(&[]);
    let usual = Path::new("penstock.toml");
    match matches.get_one::<PathBuf>("config") {
        Some(file) => super::run::read_file(file, &surroundings),
        None if usual.is_file() => super::run::read_file(usual, &surroundings),
        None => Ok(Settings::default()),
    }
}

fn signer(matches: &ArgMatches, settings: &Settings) -> Result<Signer, Failure> {
    let given = matches.get_one::<PathBuf>("key").map(|file| Keystore { file: file.clone(), ..Keystore::default() });
    if let Some(key) = given.as_ref().or(settings.security.signing_key.as_ref()) {
        return read_signing_key(key).map_err(Failure::environment);
    }
    let (signer, made) = serve::kept_key(&settings.adapter.state).map_err(Failure::environment)?;
    if let Some(file) = made {
        // The file is a side effect; a failure to print its name is ignored.
        let _ = writeln!(std::io::stderr(), "the gateway's key was generated: `{}`", file.display());
    }
    Ok(signer)
}

/// The claims that all tokens share.
fn claims(matches: &ArgMatches, settings: &Settings) -> Result<Vec<(String, Value)>, Failure> {
    let mut claims: Vec<(String, Value)> = Vec::new();
    let mut set = |name: &str, value: Value| claims.push((name.to_owned(), value));
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let all = |name: &str| matches.get_many::<String>(name).into_iter().flatten().map(String::as_str);
    set("iss", text("issuer").unwrap_or(&settings.gateway.security.own_issuer).into());
    set("keytype", if matches.get_flag("sandbox") { "SANDBOX" } else { "PRODUCTION" }.into());
    let scopes: Vec<&str> = all("scope").collect();
    if !scopes.is_empty() {
        set("scope", scopes.join(" ").into());
    }
    match all("audience").collect::<Vec<_>>().as_slice() {
        [] => {}
        [one] => set("aud", (*one).into()),
        several => set("aud", json!(several)),
    }
    if let Some(key) = text("consumer-key") {
        set("azp", key.into());
    }
    let mut subscribed = Vec::new();
    for api in all("api") {
        let mut parts = api.splitn(3, ':');
        let (Some(name), Some(version)) = (parts.next(), parts.next()) else {
            return Err(Failure::usage(format!("`--api {api}` must be `NAME:VERSION` or `NAME:VERSION:PLAN`")));
        };
        let plan = parts.next().unwrap_or("Unlimited");
        subscribed.push(json!({"name": name, "version": version, "subscriptionTier": plan}));
    }
    if !subscribed.is_empty() {
        set("subscribedAPIs", subscribed.into());
    }
    if matches.get_flag("api-key") {
        set("token_type", "apiKey".into());
        set("application", json!({"id": 1, "name": "penstock-token", "tier": "Unlimited", "owner": "admin"}));
    }
    for claim in all("claim") {
        let Some((name, value)) = claim.split_once('=') else {
            return Err(Failure::usage(format!("`--claim {claim}` must be `NAME=VALUE`")));
        };
        set(name, serde_json::from_str(value).unwrap_or_else(|_| value.into()));
    }
    Ok(claims)
}
