//! WebSocket (RFC 6455) between a client and a backend: bytes are moved, frames are only told apart.
//!
//! - [`FrameScanner`] reads the headers of frames where they lie and says how many bytes go on. It neither unmasks
//!   nor copies payloads.
//! - `tunnel.rs` moves bytes both ways until either side is through.
//!
//! The handshake is HTTP: the listener and the sender do it, and each hands over its wire.

mod frame;
mod tunnel;

pub use frame::{FrameError, FrameScanner, FrameStep};
pub(crate) use tunnel::{Carried, Tunnel, TunnelTimes};
