//! CPU time, memory, threads and context switches of a process and its children, from `/proc`.
use std::fs;
use std::ops::{Add, Sub};
use std::path::{Path, PathBuf};

/// CPU time used. The total comes from the scheduler in nanoseconds where the kernel has it;
/// how it divides into user and system comes from clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    run_ns: u64,
    user_ticks: u64,
    system_ticks: u64,
}

/// Length of a clock tick as `/proc` counts it: `USER_HZ` is 100 on every Linux this runs on.
const TICK_US: f64 = 10_000.0;

impl CpuTime {
    /// Microseconds in user and in system code.
    pub fn user_and_system_us(&self) -> (f64, f64) {
        let (user, system) = (as_f64(self.user_ticks) * TICK_US, as_f64(self.system_ticks) * TICK_US);
        let ticked = user + system;
        let total = as_f64(self.run_ns) / 1e3;
        if total == 0.0 {
            (user, system)
        } else if ticked == 0.0 {
            (total, 0.0)
        } else {
            (total * user / ticked, total * system / ticked)
        }
    }

    /// Microseconds altogether.
    pub fn total_us(&self) -> f64 {
        let (user, system) = self.user_and_system_us();
        user + system
    }
}

impl Add for CpuTime {
    type Output = CpuTime;
    fn add(self, other: CpuTime) -> CpuTime {
        CpuTime {
            run_ns: self.run_ns + other.run_ns,
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
        }
    }
}

impl Sub for CpuTime {
    type Output = CpuTime;
    fn sub(self, earlier: CpuTime) -> CpuTime {
        CpuTime {
            run_ns: self.run_ns.saturating_sub(earlier.run_ns),
            user_ticks: self.user_ticks.saturating_sub(earlier.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(earlier.system_ticks),
        }
    }
}

fn as_f64(value: u64) -> f64 {
    value as f64
}

/// CPU time of one thread, given its directory under `/proc/PID/task`. Zero if it is gone.
pub fn thread_cpu(task: &Path) -> CpuTime {
    let (user_ticks, system_ticks) = stat_ticks(&task.join("stat")).unwrap_or((0, 0));
    CpuTime { run_ns: schedstat_ns(&task.join("schedstat")), user_ticks, system_ticks }
}

fn schedstat_ns(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn stat_ticks(path: &Path) -> Option<(u64, u64)> {
    let text = fs::read_to_string(path).ok()?;
    parse_stat(&text).map(|stat| (stat.user_ticks, stat.system_ticks))
}

struct Stat {
    parent: u32,
    user_ticks: u64,
    system_ticks: u64,
}

/// proc(5): the command name in parentheses may hold anything, so fields are counted from the last `)`.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, after) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        user_ticks: fields.get(11)?.parse().ok()?,
        system_ticks: fields.get(12)?.parse().ok()?,
    })
}

/// A snapshot of a process and its children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time used so far.
    pub cpu: CpuTime,
    /// Resident memory in bytes.
    pub resident_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Context switches so far, voluntary and involuntary.
    pub context_switches: u64,
}

/// A running process and all its descendants, found once.
#[derive(Debug, Clone)]
pub struct ProcessTree {
    pids: Vec<u32>,
}

impl ProcessTree {
    /// The tree below `root` as it is now; `None` if there is no such process.
    pub fn find(root: u32) -> Option<Self> {
        if !Path::new("/proc").join(root.to_string()).exists() {
            return None;
        }
        let parents: Vec<(u32, u32)> = fs::read_dir("/proc")
            .ok()?
            .filter_map(|entry| {
                let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
                let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                Some((pid, parse_stat(&text)?.parent))
            })
            .collect();
        let mut pids = vec![root];
        let mut next = 0;
        while let Some(parent) = pids.get(next).copied() {
            pids.extend(parents.iter().filter(|(pid, of)| *of == parent && *pid != root).map(|(pid, _)| *pid));
            next += 1;
        }
        Some(ProcessTree { pids })
    }

    /// What the tree uses. Processes that ended meanwhile count nothing.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for pid in &self.pids {
            let process = PathBuf::from(format!("/proc/{pid}"));
            let status = fs::read_to_string(process.join("status")).unwrap_or_default();
            usage.resident_bytes += status_value(&status, "VmRSS:") * 1024;
            usage.threads += status_value(&status, "Threads:");
            let Some((user_ticks, system_ticks)) = stat_ticks(&process.join("stat")) else { continue };
            let mut cpu = CpuTime { run_ns: 0, user_ticks, system_ticks };
            for task in fs::read_dir(process.join("task")).into_iter().flatten().flatten() {
                cpu.run_ns += schedstat_ns(&task.path().join("schedstat"));
                let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
                usage.context_switches += status_value(&status, "voluntary_ctxt_switches:");
                usage.context_switches += status_value(&status, "nonvoluntary_ctxt_switches:");
            }
            usage.cpu = usage.cpu + cpu;
        }
        usage
    }

    /// Resident memory and threads only: cheap enough to ask many times a second.
    pub fn memory(&self) -> (u64, u64) {
        let mut sum = (0, 0);
        for pid in &self.pids {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            sum.0 += status_value(&status, "VmRSS:") * 1024;
            sum.1 += status_value(&status, "Threads:");
        }
        sum
    }
}

fn status_value(status: &str, key: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_past_any_command_name() {
        let stat = parse_stat("7 (a) b) c) S 3 7 7 0 -1 0 0 0 0 0 21 34 0 0 20 0 1 0").unwrap();
        assert_eq!((stat.parent, stat.user_ticks, stat.system_ticks), (3, 21, 34));
    }

    #[test]
    fn this_process_uses_memory_threads_and_time() {
        let tree = ProcessTree::find(std::process::id()).unwrap();
        let mut sum = 0_u64;
        for number in 0..20_000_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(number));
        }
        let usage = tree.usage();
        assert!(usage.resident_bytes > 0 && usage.threads > 0 && usage.cpu.total_us() > 0.0, "{usage:?}");
        assert!(ProcessTree::find(u32::MAX).is_none());
    }

    #[test]
    fn the_split_follows_the_ticks_and_the_total_the_scheduler() {
        let cpu = CpuTime { run_ns: 1_000_000, user_ticks: 3, system_ticks: 1 };
        assert_eq!(cpu.user_and_system_us(), (750.0, 250.0));
        assert_eq!(CpuTime { run_ns: 0, user_ticks: 3, system_ticks: 1 }.user_and_system_us(), (30_000.0, 10_000.0));
    }
}
