//! The tables, and how a database of an older version becomes one of this version.

use rusqlite::{Connection, Error};

/// One entry for each version of the schema. An entry never changes after a release; changes are new entries.
///
/// The types and functions are those that SQLite and PostgreSQL share: `json` documents are text that both can search.
const MIGRATIONS: &[&str] = &[
    // 1
    "
    CREATE TABLE object (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        organization TEXT NOT NULL,
        -- What a person calls it.
        name TEXT NOT NULL,
        -- Unique among the objects of a kind in an organization, when there is one.
        unique_key TEXT,
        -- The object it belongs to: the API of a document, the application of a key.
        parent TEXT NOT NULL DEFAULT '',
        -- A second object it refers to: the API of a subscription.
        target TEXT NOT NULL DEFAULT '',
        owner TEXT NOT NULL DEFAULT '',
        state TEXT NOT NULL DEFAULT '',
        created_ms INTEGER NOT NULL,
        updated_ms INTEGER NOT NULL,
        -- Counts changes; an update names the version it read.
        version INTEGER NOT NULL,
        document TEXT NOT NULL,
        PRIMARY KEY (kind, id)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX object_unique ON object (kind, organization, unique_key) WHERE unique_key IS NOT NULL;
    CREATE INDEX object_name ON object (kind, organization, name COLLATE NOCASE);
    CREATE INDEX object_created ON object (kind, organization, created_ms);
    CREATE INDEX object_parent ON object (parent, kind) WHERE parent <> '';
    CREATE INDEX object_target ON object (target, kind) WHERE target <> '';
    CREATE INDEX object_owner ON object (kind, organization, owner);
    CREATE INDEX object_context ON object (organization, json_extract(document, '$.context')) WHERE kind = 'api';

    CREATE TABLE file (
        organization TEXT NOT NULL,
        owner TEXT NOT NULL,
        path TEXT NOT NULL,
        media_type TEXT NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (owner, path)
    );

    CREATE TABLE refresh_token (
        -- SHA-256 of the token.
        hash TEXT PRIMARY KEY,
        organization TEXT NOT NULL,
        client TEXT NOT NULL,
        user TEXT NOT NULL,
        scope TEXT NOT NULL,
        -- The access token that was issued with it.
        access_id TEXT NOT NULL,
        access_ends INTEGER NOT NULL,
        ends INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX refresh_token_client ON refresh_token (client, user);

    CREATE TABLE revoked_token (
        id TEXT PRIMARY KEY,
        organization TEXT NOT NULL,
        ends INTEGER NOT NULL
    ) WITHOUT ROWID;

    CREATE TABLE audit (
        number INTEGER PRIMARY KEY,
        time_ms INTEGER NOT NULL,
        organization TEXT NOT NULL,
        user TEXT NOT NULL,
        action TEXT NOT NULL,
        kind TEXT NOT NULL,
        object TEXT NOT NULL
    );
    ",
    // 2: authorization codes, device codes, sessions, consents, opaque tokens; families of refresh tokens.
    "
    CREATE TABLE ticket (
        kind TEXT NOT NULL,
        -- SHA-256 of the secret.
        hash TEXT NOT NULL,
        client TEXT NOT NULL,
        user_name TEXT NOT NULL,
        state TEXT NOT NULL,
        document TEXT NOT NULL,
        ends INTEGER NOT NULL,
        PRIMARY KEY (kind, hash)
    ) WITHOUT ROWID;
    CREATE INDEX ticket_client ON ticket (client, kind) WHERE client <> '';
    CREATE INDEX ticket_user ON ticket (user_name) WHERE user_name <> '';
    CREATE INDEX ticket_ends ON ticket (ends);

    ALTER TABLE refresh_token ADD COLUMN family TEXT NOT NULL DEFAULT '';
    ALTER TABLE refresh_token ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
    UPDATE refresh_token SET family = hash;
    CREATE INDEX refresh_token_family ON refresh_token (family);
    CREATE INDEX refresh_token_user ON refresh_token (organization, user);
    CREATE INDEX refresh_token_ends ON refresh_token (ends);
    CREATE INDEX revoked_token_ends ON revoked_token (ends);
    ",
    // 3: lists and searches of APIs, applications and subscriptions read an index only; documents are read for the page.
    "
    -- Members of the documents of APIs that lists are filtered by.
    ALTER TABLE object ADD COLUMN api_context TEXT;
    ALTER TABLE object ADD COLUMN api_version TEXT;
    ALTER TABLE object ADD COLUMN api_type TEXT;
    ALTER TABLE object ADD COLUMN access TEXT;
    ALTER TABLE object ADD COLUMN access_roles TEXT;
    ALTER TABLE object ADD COLUMN visibility TEXT;
    ALTER TABLE object ADD COLUMN visible_roles TEXT;
    -- Whether the developer portal lists a later version of the same API.
    ALTER TABLE object ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;

    DROP INDEX object_context;
    DROP INDEX object_owner;
    CREATE INDEX api_context ON object (organization, api_context) WHERE kind = 'api';
    CREATE INDEX api_type ON object (organization, api_type) WHERE kind = 'api';
    CREATE INDEX api_created ON object (kind, organization, created_ms, id, name, state, owner, superseded, api_context,
        api_version, api_type, access, access_roles, visibility, visible_roles) WHERE kind = 'api';
    CREATE INDEX api_name ON object (kind, organization, name COLLATE NOCASE, created_ms, id, state, owner, superseded,
        api_context, api_version, api_type, access, access_roles, visibility, visible_roles) WHERE kind = 'api';
    CREATE INDEX object_owner_name ON object (kind, organization, owner, name COLLATE NOCASE, created_ms);
    CREATE INDEX object_owner_created ON object (kind, organization, owner, created_ms);

    UPDATE object SET api_context = json_extract(document, '$.context'), api_version = json_extract(document, '$.version'),
        api_type = json_extract(document, '$.type'), access = json_extract(document, '$.accessControl'),
        access_roles = json_extract(document, '$.accessControlRoles'), visibility = json_extract(document, '$.visibility'),
        visible_roles = json_extract(document, '$.visibleRoles') WHERE kind = 'api';
    UPDATE object SET superseded = 1 WHERE kind = 'api' AND EXISTS (
        SELECT 1 FROM object AS later WHERE later.kind = 'api' AND later.organization = object.organization
        AND later.name = object.name COLLATE NOCASE AND later.state IN ('PUBLISHED', 'PROTOTYPED', 'BLOCKED')
        AND (later.created_ms, later.id) > (object.created_ms, object.id));
    ",
];

/// Brings a database up to date. One of a newer version is refused: an older program would damage it.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    let known = check_version(connection)?;
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(known) {
        let transaction = connection.transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", i64::try_from(index + 1).unwrap_or(i64::MAX))?;
        transaction.commit()?;
    }
    Ok(())
}

/// The version of the schema of a database, unless it is newer than this program.
pub(super) fn check_version(connection: &Connection) -> Result<usize, Error> {
    let known: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = usize::try_from(known).unwrap_or_default();
    if known > MIGRATIONS.len() {
        let text = format!("the database has the schema {known}, this version knows {}", MIGRATIONS.len());
        return Err(Error::ToSqlConversionFailure(text.into()));
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_database_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        connection.pragma_update(None, "user_version", MIGRATIONS.len() as i64 + 1).unwrap();
        assert!(migrate(&mut connection).unwrap_err().to_string().contains("this version knows"));
    }
}
