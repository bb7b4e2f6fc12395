//! `penstock manage [PATH…]`: the gateway and the control plane in one process.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::{Arg, ArgAction, ArgMatches, Command};
use penstock_control::{Control, ControlConfig, PasswordCost, Started};
use penstock_gateway::{ErrorStyle, GatewayConfig};

use super::{Failure, run};
use crate::build::{self, BuildOptions};
use crate::config::{self, Opening, Settings, read_rsa_key};
use crate::control::{ControlHost, ControlPlane};
use crate::serve::{self, Plan, Reread, Signals};

const AFTER: &str = "\
The REST APIs and the key manager are served at 9443 (HTTPS), managed APIs at 8280 (HTTP) and 8243 (HTTPS); --offset is added to
all of them, so that several servers run on one machine. What is created is kept in the state folder.

The first start creates the user `admin`. The password is the value of the environment variable PENSTOCK_ADMIN_PASSWORD;
without it one is generated and printed once.";

/// The port of the REST APIs.
const PORT: u16 = 9443;

/// The environment variable with the password of `admin`.
const PASSWORD_VARIABLE: &str = "PENSTOCK_ADMIN_PASSWORD";

pub(super) fn command() -> Command {
    let command = Command::new("manage").about("Serves and manages APIs: gateway and control plane").after_help(AFTER);
    run::serving_arguments(command)
        .arg(state_argument())
        .arg(
            Arg::new("demo").long("demo").action(ArgAction::SetTrue).help(
                "For trying out: the user `admin` has the password `admin`; only clients of this machine are served",
            ),
        )
        .arg(super::paths_argument())
        .subcommand(
            Command::new("backup")
                .about("Copies the database and the keys of a state folder; the server may run meanwhile")
                .arg(folder_argument("The folder of the copy; it is created")),
        )
        .subcommand(
            Command::new("restore")
                .about("Makes a state folder of a backup")
                .arg(folder_argument("The folder of the backup")),
        )
        .subcommand(
            Command::new("rotate-key")
                .about("Replaces the signing key from the next start on; tokens of the replaced key stay valid"),
        )
}

fn state_argument() -> Arg {
    Arg::new("state")
        .long("state")
        .value_name("DIR")
        .default_value("penstock-state")
        .value_parser(clap::value_parser!(PathBuf))
        .help("The folder of the database and the keys")
        .global(true)
}

fn folder_argument(help: &'static str) -> Arg {
    Arg::new("folder").value_name("FOLDER").required(true).value_parser(clap::value_parser!(PathBuf)).help(help)
}

/// The commands on a state folder, without a server.
fn maintain(name: &str, matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let state = state_folder(matches);
    let folder = || matches.get_one::<PathBuf>("folder").cloned().unwrap_or_default();
    let done = match name {
        "backup" => penstock_control::backup(&state, &folder()),
        "restore" => penstock_control::restore(&folder(), &state),
        _ => penstock_control::rotate_signing_key(&state),
    };
    done.map(|()| ExitCode::SUCCESS).map_err(Failure::environment)
}

pub(super) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    if let Some((name, matches)) = matches.subcommand() {
        return maintain(name, matches);
    }
    let started = Instant::now();
    let signals = Signals::receive()?;
    let paths = super::paths(matches);
    let surroundings = config::surroundings(&paths);
    let settings = with_control(matches, run::settings(matches, &paths, &surroundings)?);
    let port = PORT.saturating_add(settings.offset);
    let given = surroundings.variables.get(PASSWORD_VARIABLE).filter(|password| !password.is_empty()).cloned();
    let signing_key = settings.security.signing_key.as_ref().map(read_rsa_key).transpose();
    let host = Arc::new(ControlHost::default());
    let Started { control, generated_password } = Control::open(
        ControlConfig {
            folder: state_folder(matches),
            hostname: settings.hostname.clone(),
            port,
            gateway_ports: (settings.gateway.http_port, settings.gateway.https_port),
            admin_password: if matches.get_flag("demo") { Some("admin".to_owned()) } else { given },
            signing_key: signing_key.map_err(Failure::environment)?,
            password_cost: PasswordCost::default(),
        },
        host.clone(),
    )
    .map_err(|why| Failure::environment(format!("the control plane cannot start: {why}")))?;
    host.load(&control, &settings.gateway_state).map_err(Failure::environment)?;
    let settings = host.configure(settings);
    let options = BuildOptions { managed: host.managed(), ..run::build_options(matches, &surroundings) };
    let built = build::build(&paths, &options, &settings)?;
    let (again, from, configuring) = (matches.clone(), paths.clone(), host.clone());
    let reread: Reread = Box::new(move || {
        let (settings, diagnostics) = run::reread_settings(&again, &from, &config::surroundings(&from))?;
        Ok((configuring.configure(with_control(&again, settings)), diagnostics))
    });
    let hostname = settings.hostname.clone();
    let is_demo = matches.get_flag("demo");
    let epilogue = move |_: &serve::Served| {
        let login = match &generated_password {
            Some(password) => {
                format!("\nThe user `admin` was created with the password {password}; it is not shown again.")
            }
            None if is_demo => {
                "\nThe user is `admin` with the password `admin`; only clients of this machine are served.".to_owned()
            }
            None => String::new(),
        };
        format!("API management: https://{hostname}:{port}{login}\n")
    };
    serve::serve(Plan {
        paths,
        reread: Some(reread),
        epilogue: Some(Box::new(epilogue)),
        control: Some(ControlPlane { control, host }),
        ..Plan::new(settings, surroundings, options, started, built, signals)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn state_folder(matches: &ArgMatches) -> PathBuf {
    matches.get_one::<PathBuf>("state").cloned().unwrap_or_else(|| PathBuf::from("penstock-state"))
}

/// Settings of a server with a control plane: the ports of managed APIs are open from the start, integrations are served at the
/// same ones, and errors are those of API Manager.
fn with_control(matches: &ArgMatches, mut settings: Settings) -> Settings {
    if matches.get_one::<u16>("offset").is_none() {
        settings.move_ports(0);
    }
    settings.gateway_opening = Opening::Always;
    let gateway: &mut GatewayConfig = Arc::make_mut(&mut settings.gateway);
    gateway.error_style = ErrorStyle::ApiManager;
    settings.adapter.state = state_folder(matches);
    let mut host = settings.host;
    if matches.get_flag("demo") {
        host = IpAddr::V4(Ipv4Addr::LOCALHOST);
        (settings.host, settings.admin_host) = (host, host);
        // Every client is on this machine and reaches its ports anyway.
        settings.fetch_from.allow_loopback();
    }
    settings.control = Some(SocketAddr::new(host, PORT.saturating_add(settings.offset)));
    settings
}
