//! Files: polled by inbound endpoints (`protocol="file"`) and proxy services (`transports="vfs"`), written by endpoints
//! (`vfs:file:///folder`), and read, written, copied and listed by the file connector.
//!
//! A file is a message. It is locked, read, and moved or deleted when its flow has ended; a process that is killed in between
//! leaves the file where it was. Large files stream.
//!
//! Start reading at [`poll`], then `lock.rs` and `sender.rs`.

mod connector;
#[cfg(any(feature = "ftp", feature = "sftp"))]
mod download;
mod finish;
#[cfg(feature = "ftp")]
mod ftp;
pub mod inbound;
mod local;
mod location;
mod lock;
mod message;
mod poll;
pub mod sender;
mod settings;
#[cfg(feature = "sftp")]
mod sftp;
mod system;

use std::rc::Rc;

use penstock_compile::TransportKind;

use sender::FileSender;

/// The scheme of addresses, and the name of the transport.
const SCHEME: &str = "vfs";

/// The transport.
pub const TRANSPORT: TransportKind = TransportKind {
    schemes: &[SCHEME],
    inbound: &[inbound::KIND],
    listeners: &[inbound::LISTENER],
    connectors: &[connector::KIND],
    senders: Some(|_| Box::new(|| vec![(SCHEME.to_owned(), Rc::new(FileSender))])),
    ..TransportKind::new(SCHEME)
};
