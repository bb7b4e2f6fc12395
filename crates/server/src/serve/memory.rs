//! How much memory the process may use when the configuration does not say.

use rustix::process::{Resource, getrlimit};

/// Percent of the available memory: the rest is for socket buffers, free memory of the allocator, and other programs.
const SHARE_PERCENT: u64 = 75;

/// Of an address space, in percent. Stacks and what the allocator reserves take addresses without using memory.
const ADDRESS_SHARE_PERCENT: u64 = 50;

/// The least that anything works with.
const LEAST_BYTES: u64 = 64 << 20;

/// What the machine, the container and the limits of the process leave, whichever is the least.
pub(super) fn default_limit() -> usize {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    let share = |bytes: u64| bytes / 100 * SHARE_PERCENT;
    let addresses = getrlimit(Resource::As).current.map(|bytes| bytes / 100 * ADDRESS_SHARE_PERCENT);
    let least = [machine.map(share), container.map(share), addresses].into_iter().flatten().min();
    least.map_or(usize::MAX, |bytes| usize::try_from(bytes.max(LEAST_BYTES)).unwrap_or(usize::MAX))
}

fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_machine_is_read() {
        assert_eq!(total_of("MemFree:  12 kB\nMemTotal:       2048 kB\n"), Some(2 << 20));
        assert_eq!(total_of(""), None);
    }
}
