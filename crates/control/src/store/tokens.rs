//! Refresh tokens and revoked access tokens.

use rusqlite::OptionalExtension;

use super::Transaction;
use super::tickets::Presented;
use crate::problem::Problem;

/// What a refresh token stands for.
#[derive(Debug, Clone)]
pub(crate) struct RefreshToken {
    /// SHA-256 of the token.
    pub(crate) hash: String,
    pub(crate) organization: String,
    pub(crate) client: String,
    pub(crate) user: String,
    pub(crate) scope: String,
    /// Shared by all tokens that came of one login.
    pub(crate) family: String,
    /// The access token it came with, and its end in seconds since 1970.
    pub(crate) access_id: String,
    pub(crate) access_ends: u64,
    /// Its end in seconds since 1970.
    pub(crate) ends: u64,
}

impl Transaction<'_> {
    /// Keeps a refresh token.
    pub(crate) fn keep_refresh_token(&self, token: &RefreshToken) -> Result<(), Problem> {
        let mut statement = self.inner.prepare_cached(
            "INSERT INTO refresh_token (hash, organization, client, user, scope, access_id, access_ends, ends, family) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        let RefreshToken { hash, organization, client, user, scope, access_id, access_ends, ends, family } = token;
        let (access_ends, ends) = (seconds(*access_ends), seconds(*ends));
        statement.execute((hash, organization, client, user, scope, access_id, access_ends, ends, family))?;
        Ok(())
    }

    /// Takes a refresh token: it counts once. It is kept until its end, so that a replay is noticed.
    pub(crate) fn take_refresh_token(&self, hash: &str, client: &str) -> Result<Presented, Problem> {
        let mut statement = self.inner.prepare_cached(
            "UPDATE refresh_token SET used = 1 WHERE hash = ?1 AND client = ?2 AND used = 0 \
             RETURNING organization, user, scope, access_id, access_ends, ends, family",
        )?;
        let found = statement.query_row((hash, client), |row| {
            Ok(RefreshToken {
                hash: hash.to_owned(),
                organization: row.get(0)?,
                client: client.to_owned(),
                user: row.get(1)?,
                scope: row.get(2)?,
                access_id: row.get(3)?,
                access_ends: row.get::<_, i64>(4)?.unsigned_abs(),
                ends: row.get::<_, i64>(5)?.unsigned_abs(),
                family: row.get(6)?,
            })
        });
        if let Some(token) = found.optional()? {
            return Ok(Presented::First(token));
        }
        Ok(self.refresh_family(hash, client)?.map_or(Presented::Unknown, Presented::Replayed))
    }

    /// The family of a refresh token, used or not.
    pub(crate) fn refresh_family(&self, hash: &str, client: &str) -> Result<Option<String>, Problem> {
        let mut statement =
            self.inner.prepare_cached("SELECT family FROM refresh_token WHERE hash = ?1 AND client = ?2")?;
        Ok(statement.query_row((hash, client), |row| row.get(0)).optional()?)
    }

    /// Ends what was issued to a client. The ids and ends of the access tokens that were revoked are returned.
    pub(crate) fn end_tokens_of_client(&self, client: &str) -> Result<Vec<(String, u64)>, Problem> {
        let mut statement = self.inner.prepare_cached("SELECT DISTINCT family FROM refresh_token WHERE client = ?1")?;
        let rows = statement.query_map([client], |row| row.get::<_, String>(0))?;
        let mut ended = Vec::new();
        for family in rows.collect::<Result<Vec<_>, _>>()? {
            ended.extend(self.end_family(&family)?);
        }
        self.drop_tickets_of_client(client)?;
        Ok(ended)
    }

    /// Ends what was issued to a user: refresh tokens, sessions, codes and consents. The ids and ends of the access tokens
    /// that were revoked are returned, for the gateway.
    pub(crate) fn end_tokens_of_user(&self, organization: &str, user: &str) -> Result<Vec<(String, u64)>, Problem> {
        let subject = crate::identity::shown(user, organization);
        let mut statement = self
            .inner
            .prepare_cached("SELECT DISTINCT family FROM refresh_token WHERE organization = ?1 AND user = ?2")?;
        let rows = statement.query_map((organization, &subject), |row| row.get::<_, String>(0))?;
        let mut ended = Vec::new();
        for family in rows.collect::<Result<Vec<_>, _>>()? {
            ended.extend(self.end_family(&family)?);
        }
        self.drop_tickets_of_user(&subject)?;
        Ok(ended)
    }

    /// Ends the refresh token that came with an access token.
    pub(crate) fn drop_refresh_token_of(&self, client: &str, access_id: &str) -> Result<(), Problem> {
        let mut statement =
            self.inner.prepare_cached("DELETE FROM refresh_token WHERE client = ?1 AND access_id = ?2")?;
        statement.execute((client, access_id))?;
        Ok(())
    }

    /// Revokes an access token.
    pub(crate) fn revoke(&self, organization: &str, id: &str, ends: u64) -> Result<(), Problem> {
        let mut statement = self.inner.prepare_cached(
            "INSERT INTO revoked_token (id, organization, ends) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO NOTHING",
        )?;
        statement.execute((id, organization, seconds(ends)))?;
        Ok(())
    }

    /// Whether an access token is revoked.
    pub(crate) fn is_revoked(&self, id: &str) -> Result<bool, Problem> {
        let mut statement = self.inner.prepare_cached("SELECT 1 FROM revoked_token WHERE id = ?1")?;
        Ok(statement.exists([id])?)
    }

    /// The revoked tokens that have not ended by themselves.
    pub(crate) fn revoked(&self, now: u64) -> Result<Vec<(String, u64)>, Problem> {
        let mut statement = self.inner.prepare_cached("SELECT id, ends FROM revoked_token WHERE ends >= ?1")?;
        let rows = statement
            .query_map([seconds(now)], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Forgets tokens that have ended by themselves.
    pub(crate) fn sweep_tokens(&self, now: u64) -> Result<(), Problem> {
        self.inner.prepare_cached("DELETE FROM refresh_token WHERE ends < ?1")?.execute([seconds(now)])?;
        self.inner.prepare_cached("DELETE FROM revoked_token WHERE ends < ?1")?.execute([seconds(now)])?;
        self.inner.prepare_cached("DELETE FROM ticket WHERE ends < ?1")?.execute([seconds(now)])?;
        Ok(())
    }
}

pub(super) fn seconds(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
