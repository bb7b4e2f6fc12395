//! WebSocket (RFC 6455) between a client and a backend: bytes are moved, only frame headers are parsed.
//!
//! - [`FrameScanner`] reads the headers of frames where they lie and says how many bytes go on. It neither unmasks
//!   nor copies payloads.
//! - [`MessageReader`] reads whole messages, for connections where something decides by what they say.
//! - `lane.rs` moves what one side sends, `tunnel.rs` both ways until either side is through.
//!
//! The handshake is HTTP: the listener and the sender do it, and each hands over its wire.

mod frame;
mod lane;
mod message;
mod tunnel;

pub use frame::{FrameError, FrameScanner, FrameStep};
pub use message::{MESSAGE_BYTES_MAX, MessageReader, MessageStep};
pub(crate) use tunnel::{Carried, Tunnel, TunnelTimes};
