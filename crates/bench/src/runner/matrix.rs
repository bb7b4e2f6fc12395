//! The cells of a plan's matrix, and the load that each of them means.
use super::Session;
use crate::csv::first_column;
use crate::error::Error;
use crate::http::request::Request;
use crate::load::{LoadSpec, Protocol};
use crate::plan::{BodySource, Scenario};
use crate::results::Cell;
use crate::target::Running;
use bytes::Bytes;
use std::time::Duration;

impl Session<'_> {
    pub(super) fn cells(&self) -> Vec<Cell> {
        let matrix = &self.plan.matrix;
        let mut cells = Vec::new();
        for scenario in &self.plan.scenarios {
            let own_size = match &scenario.body {
                BodySource::Generated(_) => None,
                BodySource::None => Some(vec![0]),
                BodySource::File(file) => {
                    let size = std::fs::metadata(self.plan_directory.join(file)).map_or(0, |metadata| metadata.len());
                    Some(vec![usize::try_from(size).unwrap_or(usize::MAX)])
                }
            };
            for users in &matrix.users {
                for message_bytes in own_size.as_ref().unwrap_or(&matrix.message_bytes) {
                    for backend_delay_ms in &matrix.backend_delay_ms {
                        cells.push(Cell {
                            scenario: scenario.name.clone(),
                            users: *users,
                            message_bytes: *message_bytes,
                            backend_delay_ms: *backend_delay_ms,
                        });
                    }
                }
            }
        }
        cells
    }

    pub(super) fn load_spec(
        &self,
        scenario: &Scenario,
        target: &Running,
        bytes: usize,
        users: usize,
    ) -> Result<LoadSpec, Error> {
        let body = match &scenario.body {
            BodySource::None => Bytes::new(),
            BodySource::Generated(shape) => shape.generate(bytes)?.into(),
            BodySource::File(file) => {
                let path = self.plan_directory.join(file);
                std::fs::read(&path).map_err(|error| Error::file(&path, &error))?.into()
            }
        };
        let tokens = match &scenario.tokens {
            None => self.tokens.clone(),
            Some(file) => first_column(&self.plan_directory.join(file))?.into(),
        };
        let timing = &self.plan.timing;
        Ok(LoadSpec {
            request: Request {
                method: scenario.method.clone(),
                url: target.url.with_path(&scenario.path),
                headers: scenario.headers.clone(),
                body,
                keep_alive: true,
            },
            expect: scenario.expect.clone(),
            tokens,
            users,
            ramp_up: timing.ramp_up,
            duration: timing.duration,
            warm_up: timing.warm_up,
            requests_per_user_max: None,
            rate: timing.rate,
            protocol: if scenario.http2 { Protocol::Http2 { users_per_connection: 1 } } else { Protocol::Http1 },
            threads: self.threads,
            connect_timeout: Duration::from_secs(10),
            response_timeout: timing.response_timeout,
            jtl: None,
            stop: self.stop.clone(),
        })
    }
}

pub(super) fn describe_cell(cell: &Cell, round: u32, rounds: u32) -> String {
    let delay =
        if cell.backend_delay_ms > 0 { format!(" · {} ms delay", cell.backend_delay_ms) } else { String::new() };
    let round = if rounds > 1 { format!(" · round {round}") } else { String::new() };
    format!("{} · {} users · {} B{delay}{round}", cell.scenario, cell.users, cell.message_bytes)
}
