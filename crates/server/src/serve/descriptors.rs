//! File descriptors: how many the process may have, and which of them are for connections.

use std::os::fd::RawFd;

use penstock_engine::ports::Level;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Settings;
use crate::log::Log;

/// Kept for probes, metrics, logs, names that are looked up, files that are read again.
const RESERVE: u64 = 192;

/// Kept for each worker besides: a connection of each of its listeners may wait there for a free descriptor.
const RESERVE_PER_WORKER: u64 = 4;

/// Of a small limit no more than this part is reserve.
const RESERVE_PART: u64 = 4;

/// Connections of the admin port, which lives in the reserve, take no more than this part of it.
const ADMIN_PART: u64 = 4;

/// What the process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptors {
    /// Descriptors from this number on are the reserve; `None` when there is no limit.
    pub(super) connections_max: Option<RawFd>,
    /// Connections of the admin port at once.
    pub(super) admin_connections_max: usize,
}

/// Raises the soft limit to the hard one, and warns when it is too low for the settings.
pub(super) fn prepare(settings: &Settings, log: &Log) -> Descriptors {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Where raising is not permitted the soft limit stays.
    let raised = current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let limit = if raised { maximum } else { current };
    let descriptors = share(limit, settings.worker_count());
    let wanted = settings.connections_max as u64;
    if let Some(most) = descriptors.connections_max.filter(|most| (*most as u64) < wanted.saturating_mul(2)) {
        let text = format!(
            "the limit of {} file descriptors leaves {most} for connections: `listener.connections_max` = {wanted} may need {} \
             with one connection to a backend for each; raise it (`ulimit -Hn`, LimitNOFILE= of systemd)",
            limit.unwrap_or_default(),
            wanted.saturating_mul(2),
        );
        log.say(Level::Warn, "Server", &text);
    }
    descriptors
}

fn share(limit: Option<u64>, workers: usize) -> Descriptors {
    let wanted = RESERVE + RESERVE_PER_WORKER * workers as u64;
    let reserve = limit.map_or(wanted, |limit| wanted.min(limit / RESERVE_PART));
    Descriptors {
        connections_max: limit.map(|limit| RawFd::try_from(limit - reserve).unwrap_or(RawFd::MAX)),
        admin_connections_max: (reserve / ADMIN_PART).max(1) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_kept_of_every_limit() {
        for (limit, connections, admin) in
            [(None, None, 50), (Some(20_000), Some(19_800), 50), (Some(256), Some(192), 16), (Some(8), Some(6), 1)]
        {
            let expected = Descriptors { connections_max: connections, admin_connections_max: admin };
            assert_eq!(share(limit, 2), expected, "{limit:?}");
        }
    }
}
