//! One poll of a mailbox: list, and for each mail fetch, run the flow, reply, delete or move.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use penstock_engine::background::{Control, Poll, PollSource, Polled, ServiceError};
use penstock_engine::inject::{Consumer, Outcome};
use penstock_engine::ports::{Level, LocalFuture};
use penstock_message::{Headers, Message};

use super::SCHEME;
use super::account::Account;
use super::connection::MAIL_BYTES_MAX;
use super::mailbox::{Action, Listed, Mailbox};
use super::received::{Origin, Retain, received};
use super::sender::Mail;
use crate::broker::body;

/// Mails of one session. POP3 deletes them at its end, so a session that breaks leaves at most these to be deleted later.
const SESSION_MAILS_MAX: usize = 50;

/// What a listener does.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// `transport.mail.Address`: the sender of replies.
    pub(super) address: String,
    pub(super) folder: String,
    pub(super) content_type: Option<String>,
    pub(super) after_process: Action,
    pub(super) after_failure: Action,
    /// `transport.mail.ReplyAddress`: where replies go instead of to the sender.
    pub(super) reply_address: Option<String>,
    pub(super) retain: Retain,
}

/// A mailbox that is polled.
pub(super) struct Source {
    pub(super) account: Account,
    pub(super) settings: Arc<Settings>,
    pub(super) consumer: Consumer,
}

impl PollSource for Source {
    fn open(&self) -> Box<dyn Poll> {
        Box::new(Poller {
            account: self.account.clone(),
            settings: self.settings.clone(),
            consumer: self.consumer.clone(),
            mail: None,
            done: HashMap::new(),
        })
    }
}

struct Poller {
    account: Account,
    settings: Arc<Settings>,
    consumer: Consumer,
    /// For replies.
    mail: Option<Mail>,
    /// Mails whose flow ended and that are still there: kept ones, and those whose deletion or move failed.
    done: HashMap<String, Action>,
}

impl Poll for Poller {
    fn poll<'a>(&'a mut self, control: &'a Control) -> LocalFuture<'a, Result<Polled, ServiceError>> {
        Box::pin(async move {
            loop {
                match self.session(control).await {
                    Ok(true) if control.is_wanted() => {}
                    Ok(_) => return Ok(Polled::Done),
                    Err(error) => return Err(ServiceError::temporary(format!("{}: {error}", self.account))),
                }
            }
        })
    }
}

impl Poller {
    /// Processes the first mails. Whether more are there.
    async fn session(&mut self, control: &Control) -> io::Result<bool> {
        let mut mailbox = Mailbox::open(&self.account, &self.settings.folder).await?;
        let mut listed = mailbox.list().await?;
        self.done.retain(|id, _| listed.iter().any(|mail| mail.id == *id));
        listed.retain(|mail| self.done.get(&mail.id) != Some(&Action::Keep));
        let has_more = listed.len() > SESSION_MAILS_MAX;
        let mut finished = Vec::new();
        for mail in listed.iter().take(SESSION_MAILS_MAX) {
            if !control.is_wanted() {
                break;
            }
            if self.process(&mut mailbox, mail, control).await? {
                finished.push(&mail.id);
            }
        }
        mailbox.close().await?;
        // They are gone: a server may give their identifiers to new mails.
        finished.into_iter().for_each(|id| drop(self.done.remove(id)));
        Ok(has_more)
    }

    /// Whether the mail is deleted or moved.
    async fn process(&mut self, mailbox: &mut Mailbox, mail: &Listed, control: &Control) -> io::Result<bool> {
        let action = match self.done.get(&mail.id) {
            // Only its deletion or move failed.
            Some(action) => action.clone(),
            None => {
                let Some(is_success) = self.run(mailbox, mail, control).await? else { return Ok(false) };
                let settings = &self.settings;
                let action = if is_success { &settings.after_process } else { &settings.after_failure };
                self.done.insert(mail.id.clone(), action.clone());
                action.clone()
            }
        };
        match mailbox.finish(mail, &action).await {
            // The server refuses this one, such as a move to a folder that it does not allow; the others are not to wait for it.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let text = format!("mail {} was processed and cannot be deleted or moved: {error}", mail.id);
                control.log(Level::Error, &text);
                Ok(false)
            }
            finished => finished.map(|()| action != Action::Keep),
        }
    }

    /// Runs the flow of a mail; whether it succeeded. `None`: the mail is gone.
    async fn run(&mut self, mailbox: &mut Mailbox, mail: &Listed, control: &Control) -> io::Result<Option<bool>> {
        let Some(bytes) = mailbox.size(mail).await? else { return Ok(None) };
        let parsed = if bytes > MAIL_BYTES_MAX {
            Err(format!("it has {bytes} bytes, more than {MAIL_BYTES_MAX}"))
        } else {
            let sized = Listed { bytes, ..mail.clone() };
            let Some(bytes) = mailbox.fetch(&sized).await? else { return Ok(None) };
            received(&bytes, self.settings.content_type.as_deref(), &self.settings.retain)
        };
        let (message, origin) = match parsed {
            Ok(parsed) => parsed,
            Err(why) => {
                control.log(Level::Error, &format!("Failed to process message {}: {why}", mail.id));
                control.count(false);
                return Ok(Some(false));
            }
        };
        let headers = message.headers.clone();
        let injected = self.consumer.consume(control, message).await;
        let why = match &injected.outcome {
            Outcome::Done => match self.reply(control, &origin, &headers, injected.reply).await {
                Ok(()) => return Ok(Some(true)),
                Err(why) => format!("the response was not sent: {why}"),
            },
            Outcome::RolledBack => "its flow rolled back".to_owned(),
            Outcome::Failed(fault) => format!("its flow failed: {}", fault.message),
        };
        let what = match &self.settings.after_failure {
            Action::Delete => "it is deleted".to_owned(),
            Action::Move(folder) => format!("it is moved to `{folder}`"),
            Action::Keep => "it stays in the mailbox".to_owned(),
        };
        let Origin { subject, id, .. } = &origin;
        control.log(Level::Error, &format!("Failed to process message {id} `{subject}`: {why}; {what}"));
        Ok(Some(false))
    }

    /// Sends the response of the flow, if it made one.
    async fn reply(
        &mut self,
        control: &Control,
        origin: &Origin,
        original: &Headers,
        reply: Option<Message>,
    ) -> Result<(), String> {
        let Some(reply) = reply else { return Ok(()) };
        if origin.is_automatic {
            return Ok(());
        }
        let program = control.core().program().program.clone();
        let (payload, headers) =
            body::written(&reply, &program.conversion).map_err(|fault| fault.message.to_string())?;
        let to = self.settings.reply_address.as_deref().unwrap_or(&origin.reply_to);
        if to.is_empty() {
            return Err("the mail has no sender".to_owned());
        }
        let mut sent = Message { axis2: reply.axis2, ..Message::default() };
        for (name, value) in headers.iter() {
            let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            // A flow that responds with the mail itself still has its headers: the reply would go to this mailbox.
            if name.eq_ignore_ascii_case("Content-Type") || original.get(&name) != Some(&value) {
                sent.headers.set(&name, &*value);
            }
        }
        for (name, value) in [
            ("From", self.settings.address.as_str()),
            ("Subject", &format!("Re: {}", origin.subject)),
            ("In-Reply-To", &origin.id),
        ] {
            if !sent.headers.contains(name) && !value.is_empty() {
                sent.headers.set(name, value);
            }
        }
        sent.headers.set("Auto-Submitted", "auto-replied");
        let mail = self.mail.get_or_insert_with(|| Mail::new(&control.core().environment.connection_factories));
        mail.send(SCHEME, to, &sent, payload.to_vec()).await.map_err(super::sender::MailError::reason)
    }
}
