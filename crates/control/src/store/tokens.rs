//! Refresh tokens and revoked access tokens.

use rusqlite::OptionalExtension;

use super::Transaction;
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
            "INSERT INTO refresh_token (hash, organization, client, user, scope, access_id, access_ends, ends) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        let RefreshToken { hash, organization, client, user, scope, access_id, access_ends, ends } = token;
        let (access_ends, ends) = (seconds(*access_ends), seconds(*ends));
        statement.execute((hash, organization, client, user, scope, access_id, access_ends, ends))?;
        Ok(())
    }

    /// Takes a refresh token: it counts once.
    pub(crate) fn take_refresh_token(&self, hash: &str, client: &str) -> Result<Option<RefreshToken>, Problem> {
        let mut statement = self.inner.prepare_cached(
            "DELETE FROM refresh_token WHERE hash = ?1 AND client = ?2 RETURNING organization, user, scope, access_id, \
             access_ends, ends",
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
            })
        });
        Ok(found.optional()?)
    }

    /// Ends the refresh tokens of a client.
    pub(crate) fn drop_refresh_tokens(&self, client: &str) -> Result<(), Problem> {
        self.inner.prepare_cached("DELETE FROM refresh_token WHERE client = ?1")?.execute([client])?;
        Ok(())
    }

    /// Ends the refresh tokens of a user.
    pub(crate) fn drop_refresh_tokens_of_user(&self, organization: &str, user: &str) -> Result<(), Problem> {
        let mut statement =
            self.inner.prepare_cached("DELETE FROM refresh_token WHERE organization = ?1 AND user = ?2")?;
        statement.execute((organization, user))?;
        Ok(())
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
        Ok(())
    }
}

fn seconds(time: u64) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}
