//! The machine the figures were made on.
use std::fs;

/// Name and size of the machine, for the head of every report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Model name of the processor.
    pub cpu_model: String,
    /// Processors the system sees.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Kernel name and release.
    pub kernel: String,
    /// Name of the distribution.
    pub distribution: String,
}

impl Machine {
    /// Reads the figures of the system; missing ones stay empty.
    pub fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        let read = |path| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
        Machine {
            cpu_model: value_after(&cpuinfo, "model name", ':').unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: value_after(&meminfo, "MemTotal", ':')
                .and_then(|value| value.split_ascii_whitespace().next()?.parse::<u64>().ok())
                .map_or(0, |kibibytes| kibibytes * 1024),
            kernel: format!("{} {}", read("/proc/sys/kernel/ostype"), read("/proc/sys/kernel/osrelease")),
            distribution: value_after(&os_release, "PRETTY_NAME", '=').unwrap_or_default().trim_matches('"').to_owned(),
        }
    }
}

/// The load average of the last minute.
pub fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// CPU time that all programs of the machine have used together, and that another guest of the host took away.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MachineCpu {
    used_us: f64,
    all_us: f64,
}

/// `/proc/stat` counts in hundredths of a second.
const TICK_US: f64 = 10_000.0;

impl MachineCpu {
    /// Reads it as it stands now.
    pub fn read() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        MachineCpu::parse(text.lines().next().unwrap_or_default())
    }

    fn parse(line: &str) -> Self {
        // user nice system idle iowait irq softirq steal. Time in interrupts is left out of what was used: the
        // scheduler books part of it on the programs that it interrupts, so it would count twice.
        let ticks: Vec<f64> = line.split_ascii_whitespace().skip(1).take(8).filter_map(|n| n.parse().ok()).collect();
        let [user, nice, system, idle, waiting, interrupt, soft, stolen] = ticks[..] else {
            return MachineCpu::default();
        };
        let used = user + nice + system + stolen;
        MachineCpu { used_us: used * TICK_US, all_us: (used + idle + waiting + interrupt + soft) * TICK_US }
    }

    /// The share of the machine, since `earlier`, that programs used which are not accounted for in `known_us`.
    pub fn foreign_share(&self, earlier: &MachineCpu, known_us: f64) -> Option<f64> {
        let all_us = self.all_us - earlier.all_us;
        (all_us > 0.0).then(|| (self.used_us - earlier.used_us - known_us).max(0.0) / all_us)
    }
}

fn value_after(text: &str, key: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(separator)?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unaccounted_cpu_time_is_foreign() {
        let earlier = MachineCpu::parse("cpu  100 0 100 800 0 0 0 0 0 0");
        let now = MachineCpu::parse("cpu  150 0 120 820 0 5 5 0 0 0");
        // 700 ms were used in a second of the machine; 500 ms of them are accounted for.
        assert!((now.foreign_share(&earlier, 500_000.0).unwrap() - 0.2).abs() < 1e-9);
        assert_eq!(now.foreign_share(&earlier, 900_000.0), Some(0.0));
        assert_eq!(now.foreign_share(&now, 0.0), None);
        assert_eq!(MachineCpu::parse("no such line"), MachineCpu::default());
        assert!(MachineCpu::read().all_us > 0.0);
    }

    #[test]
    fn the_machine_has_a_processor_memory_and_a_kernel() {
        let machine = Machine::read();
        assert!(machine.cpus >= 1 && machine.memory_bytes > 1_000_000 && machine.kernel.starts_with("Linux"));
        assert!(load_average() >= 0.0);
    }
}
