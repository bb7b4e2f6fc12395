//! A session with an IMAP server.

use std::io;

use async_imap::error::Error;
use async_imap::{Client, Session};
use futures_util::TryStreamExt;

use super::account::{Account, Security};
use super::connection::Connection;
use super::mailbox::{Listed, in_time};

/// Mails that are listed. The others are listed when these are gone.
const LISTED_MAX: usize = 10_000;

/// What of an error is reported: the library puts whole answers in some.
const REASON_CHARS_MAX: usize = 300;

/// A session in which a folder is open.
pub(super) struct Imap {
    session: Session<Connection>,
    account: Account,
    /// Identifiers of mails are unique with it.
    validity: u32,
    can_move: bool,
    can_expunge_one: bool,
}

impl Imap {
    pub(super) async fn open(account: &Account, folder: &str) -> io::Result<Imap> {
        let mut connection = Connection::open(account).await?;
        if account.security == Security::Tls {
            connection = connection.with_tls(account).await?;
        }
        let mut client = greeted(connection, account).await?;
        if matches!(account.security, Security::StartTls | Security::IfOffered) {
            client = start_tls(client, account).await?;
        }
        let (user, password) = account.login.clone().unwrap_or_default();
        let login = async { client.login(user, password).await.map_err(|(error, _)| failed(error)) };
        let mut session = in_time(account, login).await?;
        let selected = in_time(account, async { session.select(folder).await.map_err(failed) }).await?;
        let capabilities = in_time(account, async { session.capabilities().await.map_err(failed) }).await?;
        Ok(Imap {
            account: account.clone(),
            validity: selected.uid_validity.unwrap_or_default(),
            can_move: capabilities.has_str("MOVE"),
            can_expunge_one: capabilities.has_str("UIDPLUS"),
            session,
        })
    }

    pub(super) async fn list(&mut self) -> io::Result<Vec<Listed>> {
        self.session.get_mut().allow(0);
        let (session, validity) = (&mut self.session, self.validity);
        in_time(&self.account, async {
            let mut found: Vec<u32> = session.uid_search("UNDELETED").await.map_err(failed)?.into_iter().collect();
            found.sort_unstable();
            found.truncate(LISTED_MAX);
            let listed = |uid| Listed { id: format!("{validity}.{uid}"), number: uid, bytes: 0 };
            Ok(found.into_iter().map(listed).collect())
        })
        .await
    }

    /// How large a mail is.
    pub(super) async fn size(&mut self, mail: &Listed) -> io::Result<Option<usize>> {
        self.session.get_mut().allow(0);
        let session = &mut self.session;
        in_time(&self.account, async {
            let mails = session.uid_fetch(mail.number.to_string(), "(UID RFC822.SIZE)").await.map_err(failed)?;
            let mails: Vec<_> = mails.try_collect().await.map_err(failed)?;
            let found = mails.into_iter().find(|found| found.uid == Some(mail.number));
            Ok(found.and_then(|found| found.size).map(|bytes| bytes as usize))
        })
        .await
    }

    /// Does not mark the mail as seen: its flow may fail.
    pub(super) async fn fetch(&mut self, mail: &Listed) -> io::Result<Option<Vec<u8>>> {
        self.session.get_mut().allow(mail.bytes);
        let session = &mut self.session;
        in_time(&self.account, async {
            let mails = session.uid_fetch(mail.number.to_string(), "(UID BODY.PEEK[])").await.map_err(failed)?;
            let mails: Vec<_> = mails.try_collect().await.map_err(failed)?;
            let found = mails.iter().find(|found| found.uid == Some(mail.number));
            Ok(found.and_then(|found| found.body()).map(<[u8]>::to_vec))
        })
        .await
    }

    pub(super) async fn delete(&mut self, mail: &Listed) -> io::Result<()> {
        self.session.get_mut().allow(0);
        let (session, uid, expunge_one) = (&mut self.session, mail.number.to_string(), self.can_expunge_one);
        in_time(&self.account, async {
            let changed = session.uid_store(&uid, "+FLAGS.SILENT (\\Seen \\Deleted)").await.map_err(failed)?;
            changed.try_collect::<Vec<_>>().await.map_err(failed)?;
            // Without UIDPLUS mails go that others marked as deleted, as with JavaMail.
            match expunge_one {
                true => session.uid_expunge(&uid).await.map_err(failed)?.try_collect::<Vec<_>>().await.map(drop),
                false => session.expunge().await.map_err(failed)?.try_collect::<Vec<_>>().await.map(drop),
            }
            .map_err(failed)
        })
        .await
    }

    pub(super) async fn move_to(&mut self, mail: &Listed, folder: &str) -> io::Result<()> {
        let first = self.transfer(mail, folder).await;
        let Err(error) = first else { return Ok(()) };
        if error.kind() != io::ErrorKind::PermissionDenied {
            return Err(error);
        }
        // The server refused, most often because there is no such folder.
        let session = &mut self.session;
        let created = in_time(&self.account, async { session.create(folder).await.map_err(failed) }).await;
        match created {
            Ok(()) => self.transfer(mail, folder).await,
            Err(_) => Err(error),
        }
    }

    async fn transfer(&mut self, mail: &Listed, folder: &str) -> io::Result<()> {
        self.session.get_mut().allow(0);
        let (session, uid) = (&mut self.session, mail.number.to_string());
        if self.can_move {
            return in_time(&self.account, async { session.uid_mv(&uid, folder).await.map_err(failed) }).await;
        }
        in_time(&self.account, async { session.uid_copy(&uid, folder).await.map_err(failed) }).await?;
        self.delete(mail).await
    }

    pub(super) async fn logout(mut self) -> io::Result<()> {
        let session = &mut self.session;
        in_time(&self.account, async { session.logout().await.map_err(failed) }).await
    }
}

async fn greeted(connection: Connection, account: &Account) -> io::Result<Client<Connection>> {
    let mut client = Client::new(connection);
    match in_time(account, client.read_response()).await? {
        Some(_) => Ok(client),
        None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
    }
}

async fn start_tls(mut client: Client<Connection>, account: &Account) -> io::Result<Client<Connection>> {
    let asked = async { client.run_command_and_check_ok("STARTTLS", None).await.map_err(failed) };
    match in_time(account, asked).await {
        // The library drops what it had read; a server that sent more before TLS is not understood after it.
        Ok(()) => Ok(Client::new(client.into_inner().with_tls(account).await?)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && account.security == Security::IfOffered => {
            Ok(client)
        }
        Err(error) => Err(error),
    }
}

/// A refusal of the server has the kind `PermissionDenied`.
fn failed(error: Error) -> io::Error {
    match error {
        Error::Io(error) => match error.to_string() {
            text if text.len() > REASON_CHARS_MAX => io::Error::new(error.kind(), shortened(&text)),
            _ => error,
        },
        Error::No(text) | Error::Bad(text) => io::Error::new(io::ErrorKind::PermissionDenied, shortened(&text)),
        Error::ConnectionLost => io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"),
        other => io::Error::other(shortened(&other.to_string())),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(REASON_CHARS_MAX).collect()
}
