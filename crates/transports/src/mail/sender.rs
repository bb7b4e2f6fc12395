//! Endpoints `mailto:a@example.com,b@example.com`: a mail is sent when the server has accepted it.

use std::error::Error;
use std::sync::Arc;

use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use penstock_engine::ports::{ConnectionFactory, Outgoing};
use penstock_engine::{Fault, Side, codes};
use penstock_message::Message;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::SCHEME;
use super::account::{Account, Protocol, Security};
use super::address;
use super::form::{self, Defaults};
use crate::broker::lookup::{Lookup, decoded};
use crate::broker::sender::SharedClient;
use crate::broker::{body, handle};

type Smtp = AsyncSmtpTransport<Tokio1Executor>;

/// The senders of the configuration. One for the whole process.
pub(crate) struct Mail {
    /// The scheme of a sender is its name: `[[transport.mail.sender]] name = "mailto"`.
    senders: Vec<(String, Result<Arc<Outlet>, String>)>,
}

/// A mail server that takes mails.
struct Outlet {
    account: Account,
    from: Option<lettre::message::Mailbox>,
    bcc: Vec<lettre::message::Mailbox>,
    hello: Option<String>,
    /// Keeps connections; made when the first mail is sent, on the runtime of broker clients.
    smtp: OnceCell<Smtp>,
}

impl Mail {
    /// Nothing is connected before it is used. `factories`: the connection factories of the configuration.
    pub(crate) fn new(factories: &[ConnectionFactory]) -> Mail {
        let senders = factories.iter().filter(|factory| factory.transport == SCHEME).map(|factory| {
            let outlet = Lookup::default().with_factory(SCHEME, &factory.name, factories);
            (factory.name.clone(), outlet.and_then(|lookup| Outlet::parse(&lookup)).map(Arc::new))
        });
        Mail { senders: senders.collect() }
    }

    /// The schemes of the senders; `mailto` is always one of them, so that a missing sender is named.
    pub(crate) fn schemes(&self) -> impl Iterator<Item = &str> {
        let names = self.senders.iter().map(|(name, _)| name.as_str());
        names.chain((!self.senders.iter().any(|(name, _)| name == SCHEME)).then_some(SCHEME))
    }

    fn outlet(&self, scheme: &str) -> Result<Arc<Outlet>, String> {
        match self.senders.iter().find(|(name, _)| name.eq_ignore_ascii_case(scheme)) {
            Some((_, Ok(outlet))) => Ok(outlet.clone()),
            Some((name, Err(why))) => Err(format!("the mail sender `{name}` of the configuration: {why}")),
            None => Err(format!("the configuration has no mail sender `{scheme}`")),
        }
    }

    /// Sends what a flow made, by the sender `scheme`, to `to` unless the message names recipients.
    pub(super) async fn send(
        &self,
        scheme: &str,
        to: &str,
        message: &Message,
        payload: Vec<u8>,
    ) -> Result<(), MailError> {
        let outlet = self.outlet(scheme).map_err(MailError::Refused)?;
        let defaults = Defaults {
            to: address::parse_list(to).map_err(MailError::Refused)?,
            from: outlet.from.clone(),
            bcc: outlet.bcc.clone(),
        };
        let mail = form::mail(message, payload, defaults).map_err(MailError::Refused)?;
        let (envelope, bytes) = (mail.envelope().clone(), mail.formatted());
        let runtime = handle().map_err(MailError::Refused)?;
        // A task of its own: connections live on one runtime, and a flow that gives up must not break one.
        let sent = runtime.spawn(async move {
            let smtp = outlet.smtp().await.map_err(MailError::Refused)?;
            smtp.send_raw(&envelope, &bytes).await.map_err(|error| MailError::from_smtp(&error, &outlet.account))
        });
        sent.await.map_err(|error| MailError::Refused(error.to_string()))?.map(drop)
    }
}

/// Why a mail was not sent.
pub(super) enum MailError {
    /// The server, the sender or the mail itself is the reason.
    Refused(String),
    /// The server cannot be reached.
    Unreachable(String),
    /// The server did not answer in time; it may have taken the mail.
    TimedOut(String),
}

impl MailError {
    fn from_smtp(error: &SmtpError, account: &Account) -> MailError {
        let mut reason = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            let text = source.to_string();
            if !reason.contains(&text) {
                reason = format!("{reason}: {text}");
            }
            cause = source.source();
        }
        if error.is_timeout() {
            MailError::TimedOut(format!("{account} did not answer in time"))
        } else if error.is_permanent() || error.is_transient() || error.is_response() || error.is_client() {
            MailError::Refused(format!("{account} did not take the mail: {reason}"))
        } else {
            MailError::Unreachable(format!("no connection to {account}: {reason}"))
        }
    }

    pub(super) fn reason(self) -> String {
        match self {
            MailError::Refused(reason) | MailError::Unreachable(reason) | MailError::TimedOut(reason) => reason,
        }
    }
}

impl Outlet {
    fn parse(lookup: &Lookup) -> Result<Outlet, String> {
        if lookup.beginning_with("transport.mail.oauth").next().is_some() {
            return Err("OAuth of mail servers is not supported".to_owned());
        }
        let is_tls = lookup.get("mail.transport.protocol").is_some_and(|protocol| protocol == "smtps");
        let mut account = Account::parse(lookup, Protocol::Smtp, is_tls)?;
        if lookup.get("mail.smtp.auth").is_some_and(|auth| auth.eq_ignore_ascii_case("false")) {
            account.login = None;
        }
        let from = lookup.get("mail.smtp.from").map(address::parse).transpose();
        Ok(Outlet {
            account,
            from: from.map_err(|why| format!("`mail.smtp.from`: {why}"))?,
            bcc: address::parse_list(lookup.get("transport.mail.SMTPBccAddresses").unwrap_or_default())?,
            hello: lookup.get("mail.smtp.localhost").map(str::to_owned),
            smtp: OnceCell::new(),
        })
    }

    async fn smtp(&self) -> Result<&Smtp, String> {
        self.smtp.get_or_try_init(|| self.build()).await
    }

    async fn build(&self) -> Result<Smtp, String> {
        let Account { host, port, security, trusts_any, login, timeout, .. } = self.account.clone();
        let mut builder = Smtp::builder_dangerous(host.clone()).port(port).timeout(Some(timeout));
        if let Some((user, password)) = login {
            builder = builder.credentials(Credentials::new(user, password));
        }
        if let Some(hello) = &self.hello {
            builder = builder.hello_name(ClientId::Domain(hello.clone()));
        }
        if security != Security::Plain {
            // Reads the authorities of the machine from files.
            let parameters = tokio::task::spawn_blocking(move || {
                let builder = TlsParameters::builder(host).dangerous_accept_invalid_certs(trusts_any);
                builder.dangerous_accept_invalid_hostnames(trusts_any).build_rustls()
            });
            let parameters = parameters.await.map_err(|error| error.to_string())?;
            let parameters = parameters.map_err(|error| error.to_string())?;
            builder = builder.tls(match security {
                Security::Tls => Tls::Wrapper(parameters),
                Security::StartTls => Tls::Required(parameters),
                Security::IfOffered | Security::Plain => Tls::Opportunistic(parameters),
            });
        }
        Ok(builder.build())
    }
}

impl SharedClient for Mail {
    async fn deliver(self: Arc<Self>, outgoing: Outgoing) -> Result<Message, Fault> {
        let Outgoing { url, message: mut sent, options, .. } = outgoing;
        let (scheme, rest) = url.split_once(':').unwrap_or((SCHEME, &url));
        let to = decoded(rest.split_once('?').map_or(rest, |(to, _)| to).trim_start_matches('/'));
        let payload = body::whole(std::mem::take(&mut sent.body)).await?;
        match timeout(options.time_left, self.send(scheme, &to, &sent, payload.to_vec())).await {
            // A mail has no response; a reply arrives in a mailbox.
            Ok(Ok(())) => Ok(Message { status: 202, ..Message::default() }),
            Ok(Err(error)) => {
                let code = match &error {
                    MailError::Refused(_) => codes::SENDER_IO_SENDING,
                    MailError::Unreachable(_) => codes::CONNECTION_FAILED,
                    MailError::TimedOut(_) => codes::CONNECTION_TIMED_OUT,
                };
                Err(Fault::coded(code, Side::Backend, format!("mail endpoint: {}", error.reason())))
            }
            Err(_) => {
                let text = "mail endpoint: the server did not accept the mail before the deadline";
                Err(Fault::coded(codes::CONNECTION_TIMED_OUT, Side::Backend, text.to_owned()))
            }
        }
    }
}
