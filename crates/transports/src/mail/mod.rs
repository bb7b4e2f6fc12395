//! Mail: endpoints `mailto:` over SMTP, and proxy services that listen on a mailbox over POP3 or IMAP.
//!
//! A mail is sent when the server has accepted it for every recipient. A mail that arrived is deleted or moved when its flow
//! has ended well. Parameters have the names of Micro Integrator, which are those of JavaMail (`mail.smtp.host`).
//!
//! Start reading at `form.rs` (a message as a mail), then `poll.rs` (a mail as a message).

mod account;
mod address;
mod connection;
mod form;
mod imap;
pub mod inbound;
mod mailbox;
mod poll;
mod pop3;
mod received;
mod sender;

#[doc(hidden)]
pub use pop3::parse as parse_pop3;
#[doc(hidden)]
pub use received::{Retain, received as parse_mail};

use penstock_compile::{MakeSenders, NamedConnections, TransportKind};
use penstock_engine::ports::ConnectionFactory;

use crate::broker::sender::senders;
use sender::Mail;

/// The scheme of endpoints, and the name of the transport.
const SCHEME: &str = "mailto";

/// The transport.
pub const TRANSPORT: TransportKind = TransportKind {
    schemes: &[SCHEME],
    listeners: &[inbound::LISTENER],
    connections: Some(NamedConnections {
        tables: &["transport.mail.sender"],
        keys: &[
            ("hostname", "mail.smtp.host"),
            ("port", "mail.smtp.port"),
            ("username", "mail.smtp.user"),
            ("password", "mail.smtp.password"),
            ("from", "mail.smtp.from"),
            ("enable_tls", "mail.smtp.starttls.enable"),
            ("auth", "mail.smtp.auth"),
        ],
    }),
    senders: Some(mail_senders),
    ..TransportKind::new(SCHEME)
};

/// A sender of the configuration is found by its name, which is the scheme of its addresses.
fn mail_senders(factories: &[ConnectionFactory]) -> MakeSenders {
    let mail = Mail::new(factories);
    let schemes = mail.schemes().map(str::to_owned).collect();
    senders(mail, schemes)
}
