//! Short-lived grants of the key manager: authorization codes, device codes, sessions, consents, opaque tokens. Only the
//! SHA-256 of a secret is kept.

use rusqlite::OptionalExtension;
use serde_json::{Map, Value};

use super::tokens::seconds;
use super::{RefreshToken, Transaction};
use crate::problem::Problem;

/// What a ticket stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TicketKind {
    /// An authorization code.
    Code,
    /// A device code.
    Device,
    /// The code that a user types for a device; the document names the hash of the device code.
    UserCode,
    /// A session of a browser.
    Session,
    /// A consent that a user gave for good.
    Consent,
    /// An opaque access token, with its claims.
    Opaque,
    /// The id of an assertion that was used.
    Assertion,
}

impl TicketKind {
    fn name(self) -> &'static str {
        match self {
            TicketKind::Code => "code",
            TicketKind::Device => "device",
            TicketKind::UserCode => "user-code",
            TicketKind::Session => "session",
            TicketKind::Consent => "consent",
            TicketKind::Opaque => "opaque",
            TicketKind::Assertion => "assertion",
        }
    }
}

/// A row.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    pub(crate) kind: TicketKind,
    /// SHA-256 of the secret.
    pub(crate) hash: String,
    pub(crate) client: String,
    /// The user as `sub` has it; empty until one is known.
    pub(crate) user: String,
    pub(crate) state: String,
    pub(crate) document: Map<String, Value>,
    /// Its end in seconds since 1970.
    pub(crate) ends: u64,
}

impl Ticket {
    /// A ticket for a secret.
    pub(crate) fn new(kind: TicketKind, secret: &str, ends: u64) -> Ticket {
        Ticket {
            kind,
            hash: crate::random::sha256(secret.as_bytes()),
            client: String::new(),
            user: String::new(),
            state: String::new(),
            document: Map::new(),
            ends,
        }
    }

    /// A text of the document; empty when there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.document.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A number of the document.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.document.get(name).and_then(Value::as_u64).unwrap_or_default()
    }
}

impl Transaction<'_> {
    /// Keeps a ticket; `false` when there is one with its hash.
    pub(crate) fn add_ticket(&self, ticket: &Ticket) -> Result<bool, Problem> {
        let mut statement = self.inner.prepare_cached(
            "INSERT INTO ticket (kind, hash, client, user_name, state, document, ends) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
             ON CONFLICT (kind, hash) DO NOTHING",
        )?;
        let document = Value::Object(ticket.document.clone()).to_string();
        let Ticket { kind, hash, client, user, state, ends, .. } = ticket;
        Ok(statement.execute((kind.name(), hash, client, user, state, document, seconds(*ends)))? > 0)
    }

    /// A ticket by its hash, also one that has ended and was not swept.
    pub(crate) fn ticket(&self, kind: TicketKind, hash: &str) -> Result<Option<Ticket>, Problem> {
        let mut statement = self.inner.prepare_cached(
            "SELECT client, user_name, state, document, ends FROM ticket WHERE kind = ?1 AND hash = ?2",
        )?;
        let found = statement.query_row((kind.name(), hash), |row| {
            let document: String = row.get(3)?;
            Ok(Ticket {
                kind,
                hash: hash.to_owned(),
                client: row.get(0)?,
                user: row.get(1)?,
                state: row.get(2)?,
                // Written by `add_ticket` and `update_ticket`, and by nothing else.
                document: serde_json::from_str(&document).unwrap_or_default(),
                ends: row.get::<_, i64>(4)?.unsigned_abs(),
            })
        });
        Ok(found.optional()?)
    }

    /// Replaces user, state, document and end of a ticket.
    pub(crate) fn update_ticket(&self, ticket: &Ticket) -> Result<(), Problem> {
        let mut statement = self.inner.prepare_cached(
            "UPDATE ticket SET user_name = ?3, state = ?4, document = ?5, ends = ?6 WHERE kind = ?1 AND hash = ?2",
        )?;
        let document = Value::Object(ticket.document.clone()).to_string();
        let Ticket { kind, hash, user, state, ends, .. } = ticket;
        statement.execute((kind.name(), hash, user, state, document, seconds(*ends)))?;
        Ok(())
    }

    /// Removes a ticket.
    pub(crate) fn drop_ticket(&self, kind: TicketKind, hash: &str) -> Result<(), Problem> {
        let mut statement = self.inner.prepare_cached("DELETE FROM ticket WHERE kind = ?1 AND hash = ?2")?;
        statement.execute((kind.name(), hash))?;
        Ok(())
    }

    /// Removes the tickets of a client.
    pub(crate) fn drop_tickets_of_client(&self, client: &str) -> Result<(), Problem> {
        self.inner.prepare_cached("DELETE FROM ticket WHERE client = ?1 AND client <> ''")?.execute([client])?;
        Ok(())
    }

    /// Removes the tickets of a user.
    pub(crate) fn drop_tickets_of_user(&self, user: &str) -> Result<(), Problem> {
        self.inner.prepare_cached("DELETE FROM ticket WHERE user_name = ?1 AND user_name <> ''")?.execute([user])?;
        Ok(())
    }

    /// How many tickets of a kind a client has.
    pub(crate) fn count_tickets(&self, kind: TicketKind, client: &str) -> Result<usize, Problem> {
        let mut statement = self.inner.prepare_cached("SELECT count(*) FROM ticket WHERE client = ?1 AND kind = ?2")?;
        let count: i64 = statement.query_row((client, kind.name()), |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// Ends everything that came of one login: the refresh tokens of a family, and the access tokens issued with them. The ids
    /// and ends of these are returned, for the gateway.
    pub(crate) fn end_family(&self, family: &str) -> Result<Vec<(String, u64)>, Problem> {
        let mut statement = self.inner.prepare_cached(
            "DELETE FROM refresh_token WHERE family = ?1 RETURNING organization, access_id, access_ends",
        )?;
        let rows = statement.query_map([family], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?.unsigned_abs()))
        })?;
        let mut ended = Vec::new();
        for row in rows.collect::<Result<Vec<_>, _>>()? {
            let (organization, id, ends) = row;
            if ends > crate::clock::now() {
                self.revoke(&organization, &id, ends)?;
                ended.push((id, ends));
            }
        }
        Ok(ended)
    }
}

/// What became of a refresh token that was presented.
pub(crate) enum Presented {
    /// It is not known, or of another client.
    Unknown,
    /// It was used before: the family that it belongs to is to be ended.
    Replayed(String),
    /// It is used now for the first time.
    First(RefreshToken),
}
