//! Objects: rows with a JSON document.

use rusqlite::{OptionalExtension, Params, Row, ToSql, params_from_iter};
use serde_json::{Map, Value};

use super::{Filter, Transaction, touched};
use crate::clock::now_ms;
use crate::problem::Problem;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An API, an API product or an MCP server.
    Api,
    /// A copy of an API at one time; its parent is the API.
    Revision,
    /// A document of an API.
    Document,
    /// A comment on an API.
    Comment,
    /// A rating of an API.
    Rating,
    /// An application.
    Application,
    /// The client of an application for one key type; its parent is the application.
    KeyMapping,
    /// An API key; its parent is the application.
    ApiKey,
    /// A subscription; its parent is the application, its target the API.
    Subscription,
    /// An OAuth2 client.
    Client,
    /// A user.
    User,
    /// A role.
    Role,
    /// An organization.
    Organization,
    /// A throttling policy.
    Throttling,
    /// A deny policy.
    Deny,
    /// A gateway environment.
    Environment,
    /// A category of APIs.
    Category,
    /// A shared scope.
    Scope,
    /// A certificate of clients; its parent is the API.
    ClientCertificate,
    /// A certificate of backends.
    EndpointCertificate,
    /// A label of APIs.
    Label,
    /// A service of the service catalog.
    Service,
    /// An operation policy; its parent is the API when it is of one API only.
    OperationPolicy,
    /// A key manager of another product.
    KeyManager,
}

impl Kind {
    /// Its name in the database.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Api => "api",
            Kind::Revision => "revision",
            Kind::Document => "document",
            Kind::Comment => "comment",
            Kind::Rating => "rating",
            Kind::Application => "application",
            Kind::KeyMapping => "key-mapping",
            Kind::ApiKey => "api-key",
            Kind::Subscription => "subscription",
            Kind::Client => "client",
            Kind::User => "user",
            Kind::Role => "role",
            Kind::Organization => "organization",
            Kind::Throttling => "throttling",
            Kind::Deny => "deny",
            Kind::Environment => "environment",
            Kind::Category => "category",
            Kind::Scope => "scope",
            Kind::ClientCertificate => "client-certificate",
            Kind::EndpointCertificate => "endpoint-certificate",
            Kind::Label => "label",
            Kind::Service => "service",
            Kind::OperationPolicy => "operation-policy",
            Kind::KeyManager => "key-manager",
        }
    }
}

/// A row.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) kind: Kind,
    pub(crate) id: String,
    pub(crate) organization: String,
    pub(crate) name: String,
    pub(crate) unique_key: Option<String>,
    pub(crate) parent: String,
    pub(crate) target: String,
    pub(crate) owner: String,
    pub(crate) state: String,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    pub(crate) version: i64,
    pub(crate) document: Map<String, Value>,
}

impl Object {
    /// A new object, with a fresh id.
    pub(crate) fn new(kind: Kind, organization: &str, name: &str, document: Map<String, Value>) -> Object {
        let now = now_ms();
        Object {
            kind,
            id: crate::random::uuid(),
            organization: organization.to_owned(),
            name: name.to_owned(),
            unique_key: None,
            parent: String::new(),
            target: String::new(),
            owner: String::new(),
            state: String::new(),
            created_ms: now,
            updated_ms: now,
            version: 0,
            document,
        }
    }

    /// With a key that no other object of the kind has.
    pub(crate) fn keyed(mut self, key: impl Into<String>) -> Object {
        self.unique_key = Some(key.into());
        self
    }

    /// Of an object.
    pub(crate) fn of(mut self, parent: &str) -> Object {
        self.parent = parent.to_owned();
        self
    }

    /// Of a user.
    pub(crate) fn owned(mut self, owner: &str) -> Object {
        self.owner = owner.to_owned();
        self
    }

    /// A text of the document; empty when there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.document.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A list of texts of the document.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        self.document.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Whether a flag of the document is set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.document.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Sets a member of the document.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.document.insert(name.to_owned(), value.into());
    }
}

/// How a list is sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By time of creation.
    Created { descending: bool },
    /// By name, whatever the case.
    Name { descending: bool },
}

impl Order {
    fn sql(self) -> &'static str {
        match self {
            Order::Created { descending: false } => "created_ms, id",
            Order::Created { descending: true } => "created_ms DESC, id",
            Order::Name { descending: false } => "name COLLATE NOCASE, created_ms, id",
            Order::Name { descending: true } => "name COLLATE NOCASE DESC, created_ms, id",
        }
    }
}

const COLUMNS: &str =
    "id, organization, name, unique_key, parent, target, owner, state, created_ms, updated_ms, version, document";

fn read(kind: Kind, row: &Row<'_>) -> Result<Object, rusqlite::Error> {
    let text: String = row.get(11)?;
    let document = serde_json::from_str(&text)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(11, rusqlite::types::Type::Text, Box::new(error)))?;
    Ok(Object {
        kind,
        id: row.get(0)?,
        organization: row.get(1)?,
        name: row.get(2)?,
        unique_key: row.get(3)?,
        parent: row.get(4)?,
        target: row.get(5)?,
        owner: row.get(6)?,
        state: row.get(7)?,
        created_ms: row.get(8)?,
        updated_ms: row.get(9)?,
        version: row.get(10)?,
        document,
    })
}

impl Transaction<'_> {
    /// An object by its id, when it is of the organization.
    pub(crate) fn get(&self, kind: Kind, organization: &str, id: &str) -> Result<Option<Object>, Problem> {
        self.one(kind, "id = ?2 AND organization = ?3", (kind.name(), id, organization))
    }

    /// An object by its id, whatever its organization.
    pub(crate) fn get_of_any_organization(&self, kind: Kind, id: &str) -> Result<Option<Object>, Problem> {
        self.one(kind, "id = ?2", (kind.name(), id))
    }

    /// An object by its unique key.
    pub(crate) fn find(&self, kind: Kind, organization: &str, key: &str) -> Result<Option<Object>, Problem> {
        self.one(kind, "organization = ?2 AND unique_key = ?3", (kind.name(), organization, key))
    }

    /// The object of a kind, which is the first parameter, that fulfils a condition.
    fn one(&self, kind: Kind, condition: &str, parameters: impl Params) -> Result<Option<Object>, Problem> {
        let sql = format!("SELECT {COLUMNS} FROM object WHERE kind = ?1 AND {condition}");
        let mut statement = self.inner.prepare_cached(&sql)?;
        Ok(statement.query_row(parameters, |row| read(kind, row)).optional()?)
    }

    /// The objects that a filter lets through.
    pub(crate) fn list(&self, filter: &Filter) -> Result<Vec<Object>, Problem> {
        let (condition, values) = filter.sql();
        let order = filter.order.sql();
        let sql = format!(
            "SELECT {COLUMNS} FROM object WHERE {condition} ORDER BY {order} LIMIT {} OFFSET {}",
            filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX)),
            filter.offset
        );
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values.iter().map(|value| value as &dyn ToSql)), |row| {
            read(filter.kind, row)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// How many objects a filter lets through, without its page.
    pub(crate) fn count(&self, filter: &Filter) -> Result<usize, Problem> {
        let (condition, values) = filter.sql();
        let sql = format!("SELECT count(*) FROM object WHERE {condition}");
        let mut statement = self.inner.prepare_cached(&sql)?;
        let values = params_from_iter(values.iter().map(|value| value as &dyn ToSql));
        let count: i64 = statement.query_row(values, |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// Adds an object; `None` when its unique key is taken.
    pub(crate) fn insert(&self, object: &Object) -> Result<Option<()>, Problem> {
        let sql = format!(
            "INSERT INTO object (kind, {COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        );
        let mut statement = self.inner.prepare_cached(&sql)?;
        let document = Value::Object(object.document.clone()).to_string();
        let inserted = statement.execute(rusqlite::params![
            object.kind.name(),
            object.id,
            object.organization,
            object.name,
            object.unique_key,
            object.parent,
            object.target,
            object.owner,
            object.state,
            object.created_ms,
            object.updated_ms,
            object.version,
            document,
        ]);
        let inserted = unless_taken(inserted)?;
        if inserted.is_some() {
            self.touched.borrow_mut().note(None, Some(object));
        }
        Ok(inserted)
    }

    /// An object as it is stored, when the list of what a change touched needs it.
    fn before(&self, object: &Object) -> Result<Option<Object>, Problem> {
        match touched::needs_before(object.kind) {
            true => self.get_of_any_organization(object.kind, &object.id),
            false => Ok(None),
        }
    }

    /// Replaces an object that was read in this transaction or before. It fails when another request changed it since;
    /// `None` when its unique key is taken.
    pub(crate) fn update(&self, object: &mut Object) -> Result<Option<()>, Problem> {
        object.updated_ms = now_ms();
        let before = self.before(object)?;
        let mut statement = self.inner.prepare_cached(
            "UPDATE object SET name = ?1, unique_key = ?2, parent = ?3, target = ?4, owner = ?5, state = ?6, updated_ms = ?7, \
             document = ?8, version = version + 1 WHERE kind = ?9 AND id = ?10 AND version = ?11",
        )?;
        let document = Value::Object(object.document.clone()).to_string();
        let updated = statement.execute(rusqlite::params![
            object.name,
            object.unique_key,
            object.parent,
            object.target,
            object.owner,
            object.state,
            object.updated_ms,
            document,
            object.kind.name(),
            object.id,
            object.version,
        ]);
        if matches!(updated, Ok(0)) {
            return Err(Problem::changed_meanwhile());
        }
        object.version += 1;
        let updated = unless_taken(updated)?;
        if updated.is_some() {
            self.touched.borrow_mut().note(before.as_ref(), Some(object));
        }
        Ok(updated)
    }

    /// Removes an object and its files.
    pub(crate) fn delete(&self, object: &Object) -> Result<(), Problem> {
        self.remove_files(&object.id)?;
        let mut statement = self.inner.prepare_cached("DELETE FROM object WHERE kind = ?1 AND id = ?2")?;
        statement.execute((object.kind.name(), &object.id))?;
        self.touched.borrow_mut().note(Some(object), None);
        Ok(())
    }
}

fn unless_taken(result: Result<usize, rusqlite::Error>) -> Result<Option<()>, Problem> {
    match result {
        Ok(_) => Ok(Some(())),
        Err(rusqlite::Error::SqliteFailure(error, _))
            if error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, scratch};

    #[test]
    fn an_update_of_an_old_version_is_refused() {
        let folder = scratch("object");
        let store = Store::open(&folder.0).unwrap();
        let object = Object::new(Kind::Role, "carbon.super", "one", Map::new()).keyed("one");
        store.change(|tx| tx.insert(&object)).unwrap().unwrap();
        let other = Object::new(Kind::Role, "carbon.super", "two", Map::new()).keyed("one");
        assert_eq!(store.change(|tx| tx.insert(&other)).unwrap(), None);
        let elsewhere = Object::new(Kind::Role, "other.com", "two", Map::new()).keyed("one");
        assert_eq!(store.change(|tx| tx.insert(&elsewhere)).unwrap(), Some(()));
        let (mut first, mut second) = (object.clone(), object.clone());
        first.set("a", 1);
        store.change(|tx| tx.update(&mut first)).unwrap().unwrap();
        assert_eq!(store.change(|tx| tx.update(&mut second)).unwrap_err().status, 409);
        let found = store.read(|tx| tx.get(Kind::Role, "carbon.super", &object.id)).unwrap().unwrap();
        assert_eq!((found.document["a"].as_i64(), found.version), (Some(1), 1));
        assert!(store.read(|tx| tx.get(Kind::Role, "other.com", &object.id)).unwrap().is_none());
    }

    #[test]
    fn a_failed_change_leaves_nothing_behind() {
        let folder = scratch("change");
        let store = Store::open(&folder.0).unwrap();
        let object = Object::new(Kind::Role, "carbon.super", "one", Map::new());
        let failed: Result<(), Problem> = store.change(|tx| {
            tx.insert(&object)?;
            Err(Problem::internal())
        });
        assert!(failed.is_err());
        assert_eq!(store.read(|tx| tx.count(&Filter::new(Kind::Role, "carbon.super"))).unwrap(), 0);
    }
}
