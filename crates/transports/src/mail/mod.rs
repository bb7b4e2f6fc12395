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
pub use sender::{Mail, MailSender};

/// The scheme of endpoints, and the name of the transport.
pub const SCHEME: &str = "mailto";
