//! Ports that a test must know before the server opens them. They are below the range from which Linux takes the ports of
//! clients (32768 to 60999), so no connection takes one between the choice and its use.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u16 = 11_000;
const LAST: u16 = 32_767;

/// Where connections are refused: only root may listen on this port, and no server does.
pub const CLOSED: u16 = 1;

/// A free port.
pub fn free() -> u16 {
    offset(&[0])
}

/// A number that, added to each of `ports`, gives free ports.
pub fn offset(ports: &[u16]) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let highest = ports.iter().max().copied().unwrap_or(0);
    let choices = LAST - FIRST - highest;
    // Processes begin at different places; the tests of one process go on where the last one stopped.
    let start = (std::process::id() % u32::from(choices)) as u16;
    let is_free = |port: u16| TcpListener::bind(("0.0.0.0", port)).is_ok();
    (0..choices)
        .map(|_| FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % choices)
        .find(|offset| ports.iter().all(|port| is_free(port + offset)))
        .expect("free ports")
}
