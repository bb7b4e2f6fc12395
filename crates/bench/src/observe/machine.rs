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
    /// Reads what the system tells; what it does not tell stays empty.
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
    fn the_machine_has_a_processor_memory_and_a_kernel() {
        let machine = Machine::read();
        assert!(machine.cpus >= 1 && machine.memory_bytes > 1_000_000 && machine.kernel.starts_with("Linux"));
        assert!(load_average() >= 0.0);
    }
}
