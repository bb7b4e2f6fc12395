//! Locks: `<file>.lock` beside a file, with the content `random:host:ip:time` as in Micro Integrator. Who makes the file has
//! the lock.

use std::collections::HashSet;
use std::io;
use std::rc::Rc;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_message::Form;

use super::system::FileSystem;

/// How names of locks end.
pub(super) const SUFFIX: &str = ".lock";

/// Locks that this process holds. A lock that names this process and is not here was left by a run that was ended.
static HELD: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// How files are locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Locking {
    /// `AutoLockRelease`: locks older than this are broken.
    pub(super) release_after: Option<Duration>,
    /// `LockReleaseSameNode`: only those of this host.
    pub(super) same_host_only: bool,
}

/// A lock that is held. [`Lock::release`] removes it; dropped without, the next poll of this process breaks it.
pub(super) struct Lock {
    path: String,
    key: String,
}

impl Lock {
    /// Locks a file; `None` while another has the lock.
    pub(super) async fn take(
        system: &Rc<dyn FileSystem>,
        scope: &str,
        file: &str,
        locking: Locking,
    ) -> io::Result<Option<Lock>> {
        let path = format!("{file}{SUFFIX}");
        let key = format!("{scope}{path}");
        if !held().insert(key.clone()) {
            return Ok(None);
        }
        let lock = Lock { path, key };
        for _ in 0..2 {
            if system.create(&lock.path, content().into()).await? {
                return Ok(Some(lock));
            }
            let Some(found) = text_of(system, &lock.path).await? else { continue };
            if !is_stale(&found, locking) {
                break;
            }
            system.remove(&lock.path).await?;
        }
        Ok(None)
    }

    /// Removes a lock whose file is gone, when the process that made it has ended.
    pub(super) async fn remove_orphan(system: &Rc<dyn FileSystem>, scope: &str, path: &str) -> io::Result<()> {
        let locking = Locking { release_after: None, same_host_only: false };
        if !held().contains(&format!("{scope}{path}"))
            && let Some(text) = text_of(system, path).await?
            && is_stale(&text, locking)
        {
            system.remove(path).await?;
        }
        Ok(())
    }

    /// Removes the lock.
    pub(super) async fn release(self, system: &Rc<dyn FileSystem>) -> io::Result<()> {
        system.remove(&self.path).await
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        held().remove(&self.key);
    }
}

fn held() -> std::sync::MutexGuard<'static, HashSet<String>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn text_of(system: &Rc<dyn FileSystem>, path: &str) -> io::Result<Option<String>> {
    let Some(mut body) = system.read(path).await? else { return Ok(None) };
    Ok(Some(match body.take() {
        Form::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        _ => String::new(),
    }))
}

fn millis_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The number of this process and when it began, so that a lock of a process that ended is known as such.
fn process() -> &'static str {
    static PROCESS: LazyLock<String> = LazyLock::new(|| {
        let number = std::process::id();
        format!("{number}-{}", start_of(number).unwrap_or_default())
    });
    &PROCESS
}

/// When a process began, in ticks of the kernel; `None` when there is no such process, or no /proc.
fn start_of(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // proc(5): the second field is in parentheses and may contain anything; the 22nd is the start time.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn host() -> &'static str {
    static HOST: LazyLock<String> = LazyLock::new(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = name.trim().replace(':', "-");
        if name.is_empty() { "localhost".to_owned() } else { name }
    });
    &HOST
}

fn content() -> String {
    let noise = penstock_engine::clock::random();
    format!("{}-{noise:x}:{}:127.0.0.1:{}", process(), host(), millis_now())
}

/// Whether a lock may be broken: its process on this host has ended, or it is older than the configuration allows.
fn is_stale(text: &str, locking: Locking) -> bool {
    let mut parts = text.trim().split(':');
    let (random, lock_host) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_own_host = lock_host == host();
    if is_own_host && is_of_ended_process(random) {
        return true;
    }
    let Some(after) = locking.release_after else { return false };
    let written = parts.next_back().and_then(|time| time.parse::<u64>().ok()).unwrap_or_default();
    let age = millis_now().saturating_sub(written);
    age > after.as_millis() as u64 && (is_own_host || !locking.same_host_only)
}

/// Whether the first part of a lock names a process that ended, or this one, which no longer holds it.
fn is_of_ended_process(random: &str) -> bool {
    let mut parts = random.split('-');
    let number = parts.next().and_then(|number| number.parse::<u32>().ok());
    let started = parts.next().and_then(|ticks| ticks.parse::<u64>().ok());
    let (Some(number), Some(started), Some(_)) = (number, started, parts.next()) else { return false };
    // Without /proc nothing is known of other processes.
    start_of(std::process::id()).is_some() && (start_of(number) != Some(started) || number == std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_stale_when_its_process_ended_or_it_is_too_old() {
        let never = Locking { release_after: None, same_host_only: false };
        let soon = Locking { release_after: Some(Duration::from_millis(1)), same_host_only: false };
        let own = Locking { same_host_only: true, ..soon };
        let host = host();
        // No process has this number: the kernel's highest is 2^22.
        assert!(is_stale(&format!("4194305-1-ff:{host}:127.0.0.1:1"), never));
        assert!(!is_stale(&format!("8123871623:{host}:127.0.0.1:1"), never), "of Micro Integrator");
        assert!(is_stale(&format!("8123871623:{host}:127.0.0.1:1"), own));
        assert!(!is_stale("4194305-1-ff:elsewhere:10.0.0.1:1", never));
        assert!(is_stale("8123871623:elsewhere:10.0.0.1:1", soon));
        assert!(!is_stale("8123871623:elsewhere:10.0.0.1:1", own));
        assert!(!is_stale(&format!("7:elsewhere:10.0.0.1:{}", millis_now() + 60_000), soon));
    }
}
