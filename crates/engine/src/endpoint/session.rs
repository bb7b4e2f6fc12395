//! Sessions of a load balance: a client that has one goes to the member it went to before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use penstock_message::{Envelope, Message};

use crate::Exchange;

/// Sessions that are remembered. Beyond, those that are over are forgotten, then the oldest ones.
const SESSIONS_MAX: usize = 100_000;

/// By what a session is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionKind {
    /// A cookie of the member (`http`).
    Http,
    /// The service group that a member names in its SOAP header (`soap`).
    Soap,
    /// `ClientID` in the SOAP header of the client (`simpleClientSession`).
    Client,
}

/// The sessions of one load balance. Shared by all cores.
pub struct Sessions {
    kind: SessionKind,
    lifetime: Duration,
    members: Mutex<HashMap<Arc<str>, (usize, Instant)>>,
}

impl Sessions {
    /// Sessions that expire after `lifetime` without use.
    pub fn new(kind: SessionKind, lifetime: Duration) -> Sessions {
        Sessions { kind, lifetime, members: Mutex::default() }
    }

    /// Whether the body must be there to know.
    pub(super) fn reads_body(&self) -> bool {
        self.kind != SessionKind::Http
    }

    /// The sessions a request may belong to.
    pub(super) fn asked(&self, exchange: &mut Exchange) -> Vec<Arc<str>> {
        match self.kind {
            SessionKind::Http => {
                let cookies = exchange.message.headers.get("Cookie").unwrap_or_default();
                cookies.split(';').map(str::trim).filter(|pair| !pair.is_empty()).map(Arc::from).collect()
            }
            SessionKind::Soap | SessionKind::Client => {
                let Ok(envelope) = exchange.xml() else { return Vec::new() };
                header_text(&envelope, self.name()).into_iter().collect()
            }
        }
    }

    fn name(&self) -> &'static str {
        if self.kind == SessionKind::Client { "ClientID" } else { "ServiceGroupId" }
    }

    /// The member of the first session that is known.
    pub(super) fn member(&self, asked: &[Arc<str>]) -> Option<usize> {
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        asked.iter().find_map(|id| {
            let (member, until) = members.get_mut(id).filter(|(_, until)| *until > now)?;
            *until = now + self.lifetime;
            Some(*member)
        })
    }

    /// Remembers who answered.
    pub(super) fn answered(&self, exchange: &Exchange, reply: &mut Message, asked: Vec<Arc<str>>, member: usize) {
        let ids: Vec<Arc<str>> = match self.kind {
            SessionKind::Http => {
                let cookies = reply.headers.get_all("Set-Cookie").filter_map(|value| std::str::from_utf8(value).ok());
                cookies.filter_map(|cookie| Some(cookie.split(';').next()?.trim().into())).collect()
            }
            SessionKind::Client => asked,
            SessionKind::Soap => {
                let envelope = reply.xml(&exchange.program().conversion).ok();
                envelope.and_then(|envelope| header_text(&envelope, self.name())).into_iter().collect()
            }
        };
        if ids.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        if members.len() >= SESSIONS_MAX {
            members.retain(|_, (_, until)| *until > now);
            if members.len() >= SESSIONS_MAX {
                let half = now + self.lifetime / 2;
                members.retain(|_, (_, until)| *until > half);
            }
            // All of them were used lately: forgetting them costs less than looking through them for every answer.
            if members.len() >= SESSIONS_MAX {
                members.clear();
            }
        }
        members.extend(ids.into_iter().map(|id| (id, (member, now + self.lifetime))));
    }
}

/// The text of an element in the header of an envelope, at any depth.
fn header_text(envelope: &Envelope, name: &str) -> Option<Arc<str>> {
    let document = &envelope.document;
    let mut inside = document.descendants(envelope.header?);
    let found = inside.find(|node| document.is_element(*node) && document.local_name(*node) == name)?;
    let text = document.string_value(found);
    let text = text.trim();
    (!text.is_empty()).then(|| text.into())
}
