//! Objects: rows with a JSON document.

use rusqlite::types::Value as Sql;
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
    /// A request that waits for approval, or did; its target is the object it is about.
    Workflow,
    /// A setting of an organization, by its name.
    Setting,
    /// An organization of consumers that an administrator registered.
    ConsumerOrganization,
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
            Kind::Workflow => "workflow",
            Kind::Setting => "setting",
            Kind::ConsumerOrganization => "consumer-organization",
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
            Order::Created { descending: true } => "created_ms DESC, id DESC",
            Order::Name { descending: false } => "name COLLATE NOCASE, created_ms, id",
            Order::Name { descending: true } => "name COLLATE NOCASE DESC, created_ms DESC, id DESC",
        }
    }
}

/// States of APIs that the developer portal lists.
pub(crate) const LISTED_STATES: [&str; 3] = ["PUBLISHED", "PROTOTYPED", "BLOCKED"];

const COLUMNS: &str =
    "id, organization, name, unique_key, parent, target, owner, state, created_ms, updated_ms, version, document";

/// Members of the documents of APIs that have columns of their own, because lists are filtered by them.
const API_COLUMNS: &str = "api_context, api_version, api_type, access, access_roles, visibility, visible_roles";

/// The values of [`API_COLUMNS`].
fn api_values(object: &Object) -> [Option<String>; 7] {
    ["context", "version", "type", "accessControl", "accessControlRoles", "visibility", "visibleRoles"].map(|member| {
        match object.document.get(member).filter(|_| object.kind == Kind::Api)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    })
}

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
        if let Some(limit) = filter.limit {
            return self.page(filter, limit);
        }
        let (condition, values) = filter.sql();
        let sql = format!("SELECT {COLUMNS} FROM object WHERE {condition} ORDER BY {}", filter.order.sql());
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values.iter().map(|value| value as &dyn ToSql)), |row| {
            read(filter.kind, row)
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// A page: its ids are found in an index, and only its objects are read.
    fn page(&self, filter: &Filter, limit: usize) -> Result<Vec<Object>, Problem> {
        let (sql, mut values) = page_sql(filter);
        values.extend([limit, filter.offset].map(|number| Sql::Integer(i64::try_from(number).unwrap_or(i64::MAX))));
        let mut statement = self.inner.prepare_cached(&sql)?;
        let rows = statement.query_map(params_from_iter(values.iter()), |row| row.get::<_, String>(0))?;
        let ids: Vec<String> = rows.collect::<Result<_, _>>()?;
        let read = |id: String| self.get_of_any_organization(filter.kind, &id).transpose();
        ids.into_iter().filter_map(read).collect()
    }

    /// How many objects a filter lets through, without its page.
    pub(crate) fn count(&self, filter: &Filter) -> Result<usize, Problem> {
        let (sql, values) = count_sql(filter);
        let mut statement = self.inner.prepare_cached(&sql)?;
        let values = params_from_iter(values.iter().map(|value| value as &dyn ToSql));
        let count: i64 = statement.query_row(values, |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or_default())
    }

    /// Adds an object; `None` when its unique key is taken.
    pub(crate) fn insert(&self, object: &Object) -> Result<Option<()>, Problem> {
        let sql = format!(
            "INSERT INTO object (kind, {COLUMNS}, {API_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, \
             ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
        );
        let [context, version, api_type, access, access_roles, visibility, visible_roles] = api_values(object);
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
            context,
            version,
            api_type,
            access,
            access_roles,
            visibility,
            visible_roles,
        ]);
        let inserted = unless_taken(inserted)?;
        if inserted.is_some() {
            self.mark_superseded(object)?;
            self.touched.borrow_mut().note(None, Some(object));
        }
        Ok(inserted)
    }

    /// Marks the versions of an API that the developer portal does not list because it lists a later one. The name of an API
    /// does not change.
    fn mark_superseded(&self, api: &Object) -> Result<(), Problem> {
        if api.kind != Kind::Api {
            return Ok(());
        }
        let states = LISTED_STATES.map(|state| format!("'{state}'")).join(", ");
        let mut statement = self.inner.prepare_cached(&format!(
            "UPDATE object SET superseded = EXISTS (SELECT 1 FROM object AS later WHERE later.kind = 'api' AND \
             later.organization = object.organization AND later.name = object.name COLLATE NOCASE AND later.state IN ({states}) \
             AND (later.created_ms, later.id) > (object.created_ms, object.id)) \
             WHERE kind = 'api' AND organization = ?1 AND name = ?2 COLLATE NOCASE"
        ))?;
        statement.execute((&api.organization, &api.name))?;
        Ok(())
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
        let mut statement = self.inner.prepare_cached(&format!(
            "UPDATE object SET (name, unique_key, parent, target, owner, state, updated_ms, document, {API_COLUMNS}) = (?1, ?2, \
             ?3, ?4, ?5, ?6, ?7, ?8, ?12, ?13, ?14, ?15, ?16, ?17, ?18), version = version + 1 \
             WHERE kind = ?9 AND id = ?10 AND version = ?11"
        ))?;
        let [context, version, api_type, access, access_roles, visibility, visible_roles] = api_values(object);
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
            context,
            version,
            api_type,
            access,
            access_roles,
            visibility,
            visible_roles,
        ]);
        if matches!(updated, Ok(0)) {
            return Err(Problem::changed_meanwhile());
        }
        object.version += 1;
        let updated = unless_taken(updated)?;
        if updated.is_some() {
            self.mark_superseded(object)?;
            self.touched.borrow_mut().note(before.as_ref(), Some(object));
        }
        Ok(updated)
    }

    /// Removes an object and its files.
    pub(crate) fn delete(&self, object: &Object) -> Result<(), Problem> {
        self.remove_files(&object.id)?;
        let mut statement = self.inner.prepare_cached("DELETE FROM object WHERE kind = ?1 AND id = ?2")?;
        statement.execute((object.kind.name(), &object.id))?;
        self.mark_superseded(object)?;
        self.touched.borrow_mut().note(Some(object), None);
        Ok(())
    }
}

fn page_sql(filter: &Filter) -> (String, Vec<Sql>) {
    let (condition, values) = filter.sql();
    (format!("SELECT id FROM object WHERE {condition} ORDER BY {} LIMIT ? OFFSET ?", filter.order.sql()), values)
}

fn count_sql(filter: &Filter) -> (String, Vec<Sql>) {
    let (condition, values) = filter.sql();
    (format!("SELECT count(*) FROM object WHERE {condition}"), values)
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

    #[test]
    fn members_of_documents_are_found_in_objects_of_every_kind() {
        let folder = scratch("members");
        let store = Store::open(&folder.0).unwrap();
        let document = Map::from_iter(["context", "type", "version"].map(|name| (name.to_owned(), Value::from("v1"))));
        for kind in [Kind::Api, Kind::OperationPolicy] {
            store.change(|tx| tx.insert(&Object::new(kind, "carbon.super", "one", document.clone()))).unwrap();
            let all = || Filter::new(kind, "carbon.super");
            let found = |filter: Filter| store.read(|tx| tx.list(&filter)).unwrap().len();
            let terms = crate::store::Term::parse("name:one version:\"v1\" context:v1");
            assert_eq!(found(all().query(&terms)), 1, "{}", kind.name());
            assert_eq!(found(all().member("type", &["v1"]).member("version", &["v1"])), 1, "{}", kind.name());
            assert_eq!(found(all().without_member("context", &["v1"])), 0, "{}", kind.name());
        }
    }

    /// How SQLite finds the rows of a statement.
    fn plan(tx: &Transaction<'_>, (sql, values): (String, Vec<Sql>)) -> String {
        let mut statement = tx.inner.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let missing = statement.parameter_count() - values.len();
        let values = values.into_iter().chain(vec![Sql::Integer(25); missing]);
        let rows = statement.query_map(params_from_iter(values), |row| row.get::<_, String>(3)).unwrap();
        rows.collect::<Result<Vec<_>, _>>().unwrap().join("; ")
    }

    #[test]
    fn lists_and_searches_read_an_index_only() {
        let folder = scratch("plans");
        let store = Store::open(&folder.0).unwrap();
        let created = Order::Created { descending: true };
        let name = Order::Name { descending: false };
        let apis = || Filter::new(Kind::Api, "carbon.super");
        let roles = ["Internal/publisher".to_owned()];
        let search = |text: &str| apis().query(&crate::store::Term::parse(text));
        let listed = |filter: Filter| filter.without_member("type", &["MCP"]).editable_by("anna", &roles);
        let portal = apis().states(&LISTED_STATES).visible_to(&roles).latest();
        let applications = Filter::new(Kind::Application, "carbon.super").owner("anna");
        store
            .read(|tx| {
                for (filter, order) in [
                    (listed(apis()), created),
                    (listed(search("name:orders context:/orders version:1")), created),
                    (listed(search("orders")), name),
                    (listed(search("status:published provider:anna type:API")), name),
                    (portal.clone().query(&crate::store::Term::parse("orders")), name),
                    (portal, created),
                    (applications.clone(), created),
                    (applications.name_contains("shop"), name),
                    (
                        Filter::new(Kind::Subscription, "carbon.super").owner("anna"),
                        Order::Created { descending: false },
                    ),
                ] {
                    let filter = filter.sorted(order).page(0, 25);
                    let found = plan(tx, page_sql(&filter));
                    assert!(found.contains("COVERING INDEX") && !found.contains("TEMP B-TREE"), "{filter:?}: {found}");
                    let found = plan(tx, count_sql(&filter));
                    assert!(found.contains("COVERING INDEX"), "{filter:?}: {found}");
                }
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn the_portal_lists_the_latest_version_that_it_lists_at_all() {
        let folder = scratch("latest");
        let store = Store::open(&folder.0).unwrap();
        let version = |number: i64, state: &str| {
            let mut api =
                Object::new(Kind::Api, "carbon.super", if number == 1 { "orders" } else { "Orders" }, Map::new());
            (api.created_ms, api.state) = (number, state.to_owned());
            api
        };
        let (first, mut second) = (version(1, "PUBLISHED"), version(2, "CREATED"));
        let latest = || {
            let filter = Filter::new(Kind::Api, "carbon.super").states(&LISTED_STATES).latest();
            store.read(|tx| tx.list(&filter)).unwrap().iter().map(|api| api.created_ms).collect::<Vec<_>>()
        };
        store.change(|tx| tx.insert(&first).and(tx.insert(&second))).unwrap();
        assert_eq!(latest(), [1]);
        second.state = "PUBLISHED".to_owned();
        store.change(|tx| tx.update(&mut second)).unwrap();
        assert_eq!(latest(), [2]);
        store.change(|tx| tx.delete(&second)).unwrap();
        assert_eq!(latest(), [1]);
    }
}
