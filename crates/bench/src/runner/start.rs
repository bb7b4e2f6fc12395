//! Starting the backend and the gateways of a plan.
use super::{Report, Session};
use crate::echo::{EchoServer, EchoSpec};
use crate::error::Error;
use crate::plan::Target;
use crate::target::{self, NotRunning, Placeholders, Running};
use std::path::Path;

impl Session<'_> {
    pub(super) fn start_backend(&self) -> Result<Option<EchoServer>, Error> {
        let Some(backend) = &self.plan.backend else { return Ok(None) };
        let spec = EchoSpec { port: backend.port, tls: backend.tls, ..EchoSpec::default() };
        EchoServer::start(&spec).map(Some).map_err(|error| {
            let hint = "choose another with `--backend-port`, or use what runs there with `--no-backend`";
            Error::Environment(format!("{error}; {hint}"))
        })
    }

    pub(super) fn write_kit(&self, kit: &Path, backend_port: u16) -> Result<(), Error> {
        let mut substitutions = vec![
            ("localhost:8688", format!("localhost:{backend_port}")),
            ("@BACKEND_PORT@", backend_port.to_string()),
            ("@KIT@", kit.display().to_string()),
        ];
        for (target, name) in [("nginx", "@PORT_NGINX@"), ("haproxy", "@PORT_HAPROXY@"), ("envoy", "@PORT_ENVOY@")] {
            let port = self.plan.targets.iter().find(|other| other.name == target).map_or(0, |target| target.port);
            substitutions.push((name, port.to_string()));
        }
        crate::plan::builtin::write_files(kit, &substitutions)
    }

    pub(super) fn start_targets(
        &self,
        kit: &Path,
        backend_port: u16,
        report: &mut Report,
    ) -> Result<Vec<Running>, Error> {
        let mut running = Vec::new();
        for target in &self.plan.targets {
            if self.stopped() {
                break;
            }
            // Gateways of the WSO2 family are moved by an offset from their first port.
            let offset = i32::from(target.port) - 8280;
            let placeholders: Placeholders = vec![
                ("{penstock}", self.penstock.clone()),
                ("{kit}", kit.display().to_string()),
                ("{plan}", self.plan_directory.display().to_string()),
                ("{port}", target.port.to_string()),
                ("{offset}", offset.to_string()),
                ("{backend_port}", backend_port.to_string()),
            ];
            let log = self.directory.file(&format!("{}.log", file_name(&target.name)));
            match target::start(target, &placeholders, &log) {
                Ok(started) => {
                    report.gateways.push((target.name.clone(), describe(target, &placeholders, &started)));
                    running.push(started);
                }
                Err(NotRunning::NotInstalled(program)) if target.optional => {
                    report.left_out.push(format!("{}: `{program}` is not installed", target.name));
                }
                Err(NotRunning::NotInstalled(program)) => {
                    let hint = "is it installed, or is its directory missing in PATH?";
                    return Err(Error::Environment(format!(
                        "target `{}`: no program `{program}`; {hint}",
                        target.name
                    )));
                }
                Err(NotRunning::Failed(error)) if target.optional => {
                    report.left_out.push(format!("{}: {error}", target.name));
                }
                Err(NotRunning::Failed(error)) => return Err(error),
            }
        }
        Ok(running)
    }
}

/// How a gateway was started, without the paths of this machine: reports are made to be shown around.
fn describe(target: &Target, placeholders: &Placeholders, running: &Running) -> String {
    let place = running.url.to_string();
    if target.start.is_empty() {
        return place;
    }
    let mut line = target.start.join(" ").replace("{kit}", "bench").replace("{penstock}", "penstock");
    for (name, value) in placeholders.iter().filter(|(name, _)| *name != "{plan}") {
        line = line.replace(name, value);
    }
    format!("`{line}` at {place}")
}

/// A name as part of a file name.
pub(super) fn file_name(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' }).collect()
}
