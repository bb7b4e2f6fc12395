//! A folder of a mailbox, over either protocol.

use std::future::Future;
use std::io;

use super::account::{Account, Protocol};
use super::imap::Imap;
use super::pop3::Pop3;

/// A mail of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// Unique in the folder, and the same in each session.
    pub(super) id: String,
    /// What the protocol calls it in this session.
    pub(super) number: u32,
    /// 0 with IMAP, which lists no sizes.
    pub(super) bytes: usize,
}

/// What happens to a mail after its flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Delete,
    /// To a folder, which is created when it is missing.
    Move(String),
    /// It stays, and is not read again by this process.
    Keep,
}

/// An open session.
pub(super) enum Mailbox {
    Pop3(Box<Pop3>),
    Imap(Box<Imap>),
}

impl Mailbox {
    pub(super) async fn open(account: &Account, folder: &str) -> io::Result<Mailbox> {
        Ok(match account.protocol {
            Protocol::Imap => Mailbox::Imap(Box::new(Imap::open(account, folder).await?)),
            Protocol::Pop3 | Protocol::Smtp => Mailbox::Pop3(Box::new(Pop3::open(account).await?)),
        })
    }

    /// The mails, oldest first.
    pub(super) async fn list(&mut self) -> io::Result<Vec<Listed>> {
        match self {
            Mailbox::Pop3(session) => session.list().await,
            Mailbox::Imap(session) => session.list().await,
        }
    }

    /// How large a mail is, in bytes. `None`: it is gone.
    pub(super) async fn size(&mut self, mail: &Listed) -> io::Result<Option<usize>> {
        match self {
            Mailbox::Pop3(_) => Ok(Some(mail.bytes)),
            Mailbox::Imap(session) => session.size(mail).await,
        }
    }

    /// A mail as its sender wrote it. `None`: it is gone.
    pub(super) async fn fetch(&mut self, mail: &Listed) -> io::Result<Option<Vec<u8>>> {
        match self {
            Mailbox::Pop3(session) => session.fetch(mail).await,
            Mailbox::Imap(session) => session.fetch(mail).await,
        }
    }

    /// Deletes or moves a mail. POP3 deletes it when the session is closed.
    pub(super) async fn finish(&mut self, mail: &Listed, action: &Action) -> io::Result<()> {
        match (self, action) {
            (_, Action::Keep) => Ok(()),
            (Mailbox::Pop3(session), Action::Delete | Action::Move(_)) => session.delete(mail).await,
            (Mailbox::Imap(session), Action::Delete) => session.delete(mail).await,
            (Mailbox::Imap(session), Action::Move(folder)) => session.move_to(mail, folder).await,
        }
    }

    /// Ends the session.
    pub(super) async fn close(self) -> io::Result<()> {
        match self {
            Mailbox::Pop3(session) => session.quit().await,
            Mailbox::Imap(session) => session.logout().await,
        }
    }
}

/// Runs a command with the time limit of the account.
pub(super) async fn in_time<T>(account: &Account, command: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(account.timeout, command).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the server did not answer in time")),
    }
}
