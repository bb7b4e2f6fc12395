//! Requests for entities: reading with query options, creating, changing and deleting.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_engine::database::{DataSource, Databases, Dialect, SqlValue, Transaction};
use penstock_message::{Method, RESERVED, double_to_text, percent_decoded};
use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde_json::{Map, Value as Json};

use super::catalog::{Column, Table, rows, tables};
use super::expand::{self, Expansion};
use super::filter::{Fragment, filter, order};
use super::path::{KeyPart, Property, Tail, Target};
use super::{Refusal, Response, links, metadata};
use crate::parameter::SqlType;
use crate::temporal;

/// Entities of a page when a request says nothing about it.
const PAGE_DEFAULT: usize = 100;

/// The maximum of entities of a page: the response is made in memory.
const PAGE_MAX: usize = 10_000;

/// A request as it was read.
pub struct Request {
    pub(super) method: Method,
    target: Target,
    options: HashMap<String, String>,
    page: Option<usize>,
    if_match: Option<String>,
    if_none_match: Option<String>,
    pub(super) body: Option<Arc<Json>>,
    pub(super) root: Arc<str>,
}

impl Request {
    /// Reads a request: its target is a path and a query, and `header` finds a header field.
    pub fn new(
        method: Method,
        target: &str,
        header: &dyn Fn(&str) -> Option<String>,
        body: Option<Arc<Json>>,
        root: &Arc<str>,
    ) -> Result<Request, Refusal> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let target = Target::parse(&percent_decoded(path, false))?;
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let decoded = |text: &str| percent_decoded(text, true).into_owned();
        let options = pairs.map(|(name, value)| (decoded(name), decoded(value))).collect();
        let page = header("Prefer").and_then(|preferences| {
            let mut all = preferences.split([',', ';']).map(str::trim);
            all.find_map(|one| one.strip_prefix("odata.maxpagesize=")?.parse::<usize>().ok()).filter(|size| *size > 0)
        });
        let (if_match, if_none_match) = (header("If-Match"), header("If-None-Match"));
        Ok(Request { method, target, options, page, if_match, if_none_match, body, root: root.clone() })
    }

    /// Whether it only reads.
    pub fn is_read(&self) -> bool {
        self.method == Method::Get
    }

    /// Whether it needs the links between tables.
    fn uses_links(&self) -> bool {
        self.option("$expand").is_some() || matches!(self.target, Target::Metadata | Target::Entity(_, _, Some(_)))
    }

    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<usize>, Refusal> {
        let read = |text: &str| text.parse().map_err(|_| Refusal::invalid(format!("`{name}` is not a number")));
        self.option(name).map(read).transpose()
    }
}

/// A request that runs.
pub(super) struct Running<'r> {
    session: &'r Rc<dyn Transaction>,
    source: &'r Arc<DataSource>,
    pub(super) dialect: Dialect,
    pub(super) request: &'r Request,
    pub(super) tables: Vec<Table>,
}

/// Runs a request.
pub async fn answer(
    databases: &Arc<dyn Databases>,
    source: &Arc<DataSource>,
    request: &Request,
) -> Result<Response, Refusal> {
    let dialect = databases.dialect(source)?;
    let session = if request.is_read() { databases.session() } else { databases.begin() };
    let outcome = answer_in(&session, source, dialect, request).await;
    match outcome.is_ok() {
        true => session.commit().await?,
        false => session.rollback().await?,
    }
    outcome
}

/// Runs a request in a session.
pub async fn answer_in(
    session: &Rc<dyn Transaction>,
    source: &Arc<DataSource>,
    dialect: Dialect,
    request: &Request,
) -> Result<Response, Refusal> {
    let mut tables = tables(session, source, dialect).await?;
    if request.uses_links() {
        links::add(&mut tables, session, source, dialect).await?;
    }
    Running { session, source, dialect, request, tables }.answer().await
}

impl Running<'_> {
    pub(super) async fn rows(&self, fragment: Fragment) -> Result<Vec<Vec<SqlValue>>, Refusal> {
        Ok(rows(self.session, self.source, fragment.sql, fragment.values).await?)
    }

    async fn answer(&self) -> Result<Response, Refusal> {
        for name in self.request.options.keys() {
            if matches!(name.as_str(), "$search" | "$apply") {
                return Err(Refusal::unsupported(&format!("`{name}`")));
            }
        }
        match (&self.request.method, &self.request.target) {
            (Method::Get, Target::Root) => Ok(self.root(&self.tables)),
            (Method::Get, Target::Metadata) => {
                Ok(Response::text("application/xml; charset=UTF-8", metadata::document(&self.tables)))
            }
            (Method::Get, Target::Count(name)) => {
                Ok(Response::text("text/plain; charset=UTF-8", self.count(self.table(name)?).await?.to_string()))
            }
            (Method::Get, Target::Set(name)) => self.collection(self.table(name)?, name, false).await,
            (Method::Get, Target::References(name)) => self.collection(self.table(name)?, name, true).await,
            (Method::Get, Target::Reference(name, key)) => {
                let table = self.table(name)?;
                let row = self.entity(table, key).await?;
                Ok(Response::json(200, &self.reference(table, &row)))
            }
            (Method::Get, Target::Entity(name, key, property)) => {
                let table = self.table(name)?;
                let row = self.entity(table, key).await?;
                let Some(property) = property else { return self.entity_response(200, table, &row).await };
                if let Some(link) = table.link(&property.name) {
                    return self.linked(table, &row, link, property.tail).await;
                }
                self.property(table, &row, property)
            }
            (Method::Post, Target::Set(name)) => self.create(self.table(name)?).await,
            (Method::Put, Target::Entity(name, key, None)) => self.change(self.table(name)?, key, true).await,
            (Method::Patch, Target::Entity(name, key, None)) => self.change(self.table(name)?, key, false).await,
            (Method::Delete, Target::Entity(name, key, None)) => {
                let table = self.table(name)?;
                self.entity(table, key).await?;
                let condition = self.key_condition(table, key)?;
                let sql = format!("DELETE FROM {} WHERE {}", table.quoted(), condition.sql);
                self.rows(Fragment { sql, values: condition.values }).await?;
                Ok(Response::empty())
            }
            (
                Method::Post | Method::Put | Method::Delete,
                Target::Entity(name, key, Some(Property { name: link, tail: Tail::Reference })),
            ) => {
                let table = self.table(name)?;
                let link =
                    table.link(link).ok_or_else(|| Refusal::status(404, format!("there is no link `{link}`")))?;
                self.change_link(table, key, link).await
            }
            (method, _) => Err(Refusal::status(405, format!("{} is not possible here", method.as_str()))),
        }
    }

    /// The table of a name.
    pub(super) fn table(&self, name: &str) -> Result<&Table, Refusal> {
        let found = self.tables.iter().find(|table| *table.name == *name);
        let found = found.or_else(|| self.tables.iter().find(|table| table.name.eq_ignore_ascii_case(name)));
        found.ok_or_else(|| Refusal::status(404, format!("there is no table `{name}`")))
    }

    fn property(&self, table: &Table, row: &[SqlValue], property: &Property) -> Result<Response, Refusal> {
        let index = table.columns.iter().position(|column| *column.name == *property.name);
        let value = index.and_then(|index| row.get(index));
        let value = value.ok_or_else(|| Refusal::status(404, "there is no such property"))?;
        Ok(match (property.tail, json_of(value)) {
            (Tail::Count | Tail::Reference, _) => return Err(Refusal::status(404, "a property is no link")),
            (_, Json::Null) => Response::empty(),
            (Tail::Value, Json::String(text)) => Response::text("text/plain; charset=UTF-8", text),
            (Tail::Value, other) => Response::text("text/plain; charset=UTF-8", other.to_string()),
            (Tail::None, value) => {
                let context = format!("{}/$metadata#{}", self.request.root, table.name);
                Response::json(200, &serde_json::json!({"@odata.context": context, "value": value}))
            }
        })
    }

    fn root(&self, tables: &[Table]) -> Response {
        let sets = tables
            .iter()
            .map(|table| serde_json::json!({"name": &*table.name, "kind": "EntitySet", "url": &*table.name}));
        let context = format!("{}/$metadata", self.request.root);
        Response::json(200, &serde_json::json!({"@odata.context": context, "value": sets.collect::<Vec<_>>()}))
    }

    fn condition(&self, table: &Table) -> Result<Fragment, Refusal> {
        match self.request.option("$filter") {
            None => Ok(Fragment::default()),
            Some(text) => {
                let found = filter(text, table, self.dialect)?;
                Ok(Fragment { sql: format!(" WHERE {}", found.sql), values: found.values })
            }
        }
    }

    async fn count(&self, table: &Table) -> Result<i64, Refusal> {
        let condition = self.condition(table)?;
        let sql = format!("SELECT COUNT(*) FROM {}{}", table.quoted(), condition.sql);
        let found = self.rows(Fragment { sql, values: condition.values }).await?;
        Ok(match found.first().and_then(|row| row.first()) {
            Some(SqlValue::Integer(count)) => *count,
            _ => 0,
        })
    }

    async fn collection(&self, table: &Table, name: &str, as_references: bool) -> Result<Response, Refusal> {
        let request = self.request;
        let condition = self.condition(table)?;
        let order = match request.option("$orderby") {
            Some(text) => order(text, table, self.dialect)?,
            // Pages need an order.
            None => {
                let key: Vec<String> = table.key().iter().map(|column| column.quoted()).collect();
                Fragment { sql: key.join(", "), values: Vec::new() }
            }
        };
        let page = request.page.unwrap_or(PAGE_DEFAULT).min(PAGE_MAX);
        let token = request.number("$skiptoken")?.unwrap_or(0);
        let (skip, top) = (request.number("$skip")?.unwrap_or(0), request.number("$top")?);
        let offset = skip.saturating_add(token.saturating_mul(page));
        let left = top.map_or(usize::MAX, |top| top.saturating_sub(token.saturating_mul(page)));
        let size = left.min(page);
        let order_by = if order.sql.is_empty() { String::new() } else { format!(" ORDER BY {}", order.sql) };
        let columns: Vec<String> = table.columns.iter().map(|column| column.quoted()).collect();
        // One more shows whether another page follows.
        let sql = format!(
            "SELECT {} FROM {}{}{order_by} LIMIT {} OFFSET {}",
            columns.join(", "),
            table.quoted(),
            condition.sql,
            size.saturating_add(1),
            offset.min(i64::MAX as usize)
        );
        let values = condition.values.into_iter().chain(order.values).collect();
        let found = self.rows(Fragment { sql, values }).await?;
        let page = &found[..found.len().min(size)];
        let entities: Vec<Json> = match as_references {
            true => page.iter().map(|row| serde_json::json!({"@odata.id": self.id(table, row)})).collect(),
            false => {
                let expansions = expand::parse(request.option("$expand").unwrap_or_default())?;
                self.entities(table, page, request.option("$select"), &expansions).await?
            }
        };
        let mut out = Map::new();
        let of_context = if as_references { "Collection($ref)" } else { &table.name };
        out.insert("@odata.context".into(), format!("{}/$metadata#{of_context}", request.root).into());
        if request.option("$count") == Some("true") {
            out.insert("@odata.count".into(), self.count(table).await?.into());
        }
        out.insert("value".into(), entities.into());
        if found.len() > size && left > size {
            let name = if as_references { format!("{name}/$ref") } else { name.to_owned() };
            out.insert("@odata.nextLink".into(), self.next_link(&name, token + 1).into());
        }
        Ok(Response::json(200, &Json::Object(out)))
    }

    /// The address of the next page, with the other options of the request.
    fn next_link(&self, name: &str, token: usize) -> String {
        let mut others: Vec<String> = Vec::new();
        for (option, value) in &self.request.options {
            if option != "$skiptoken" {
                others.push(format!("{option}={}", utf8_percent_encode(value, OPTION)));
            }
        }
        others.sort();
        others.push(format!("$skiptoken={token}"));
        format!("{name}?{}", others.join("&"))
    }

    pub(super) fn selected(&self, table: &Table, select: Option<&str>) -> Result<Option<Vec<String>>, Refusal> {
        let Some(text) = select.filter(|text| *text != "*") else { return Ok(None) };
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        match names.iter().find(|name| table.column(name).is_none() && table.link(name).is_none()) {
            Some(name) => Err(Refusal::invalid(format!("the entity `{}` has no property `{name}`", table.name))),
            None => Ok(Some(names)),
        }
    }

    pub(super) fn key_condition(&self, table: &Table, key: &[KeyPart]) -> Result<Fragment, Refusal> {
        let columns = table.key();
        if columns.is_empty() || columns.len() != key.len() {
            return Err(Refusal::invalid(format!("the key of `{}` has {} parts", table.name, columns.len())));
        }
        let mut parts = Vec::new();
        let mut values = Vec::new();
        for (index, part) in key.iter().enumerate() {
            let column = match &part.name {
                None => columns[index],
                Some(name) => match columns.iter().find(|column| *column.name == **name) {
                    Some(column) => column,
                    None => return Err(Refusal::invalid(format!("`{name}` is not a part of the key"))),
                },
            };
            parts.push(format!("{} = ?", column.quoted()));
            values.push(value_of(column, &Json::String(part.value.clone()))?);
        }
        Ok(Fragment { sql: parts.join(" AND "), values })
    }

    /// A row by its key, when the conditions of the request hold for it.
    pub(super) async fn entity(&self, table: &Table, key: &[KeyPart]) -> Result<Vec<SqlValue>, Refusal> {
        let condition = self.key_condition(table, key)?;
        let columns: Vec<String> = table.columns.iter().map(|column| column.quoted()).collect();
        let sql = format!("SELECT {} FROM {} WHERE {}", columns.join(", "), table.quoted(), condition.sql);
        let found = self.rows(Fragment { sql, values: condition.values }).await?;
        let row = found.into_iter().next().ok_or_else(|| Refusal::status(404, "there is no such entity"))?;
        let tag = entity_tag(&row);
        let lists = |field: &str| field.split(',').any(|one| one.trim() == tag || one.trim() == "*");
        let fails = self.request.if_match.as_deref().is_some_and(|field| !lists(field))
            || self.request.if_none_match.as_deref().is_some_and(lists);
        match fails {
            true => Err(Refusal::status(412, "the entity is another than the request expects")),
            false => Ok(row),
        }
    }

    /// Rows as entities, with the linked entities that are expanded.
    pub(super) async fn entities(
        &self,
        table: &Table,
        rows: &[Vec<SqlValue>],
        select: Option<&str>,
        expansions: &[Expansion],
    ) -> Result<Vec<Json>, Refusal> {
        let selected = self.selected(table, select)?;
        let mut entities: Vec<Map<String, Json>> = rows.iter().map(|row| entity(table, row, &selected)).collect();
        self.expand(table, rows, &mut entities, expansions).await?;
        Ok(entities.into_iter().map(Json::Object).collect())
    }

    pub(super) async fn entity_response(
        &self,
        status: u16,
        table: &Table,
        row: &[SqlValue],
    ) -> Result<Response, Refusal> {
        let expansions = expand::parse(self.request.option("$expand").unwrap_or_default())?;
        let select = self.request.option("$select");
        let entities = self.entities(table, &[row.to_vec()], select, &expansions).await?;
        let mut out = Map::new();
        out.insert("@odata.context".into(), format!("{}/$metadata#{}/$entity", self.request.root, table.name).into());
        if let Some(Json::Object(entity)) = entities.into_iter().next() {
            out.extend(entity);
        }
        let mut response = Response::json(status, &Json::Object(out));
        response.headers.push(("ETag", entity_tag(row)));
        if status == 201 {
            response.headers.push(("Location", self.id(table, row)));
        }
        Ok(response)
    }

    /// The columns of the body with their values.
    fn given<'t>(&self, table: &'t Table) -> Result<Vec<(&'t Column, SqlValue)>, Refusal> {
        let body = self.request.body.as_deref().and_then(Json::as_object);
        let body = body.ok_or_else(|| Refusal::invalid("the body is not an object"))?;
        let mut given = Vec::new();
        if body.keys().any(|name| name.ends_with("@odata.bind")) {
            return Err(Refusal::unsupported("`@odata.bind`"));
        }
        for (name, value) in body.iter().filter(|(name, _)| !name.contains('@')) {
            let Some(column) = table.column(name) else {
                return Err(Refusal::invalid(format!("the entity `{}` has no property `{name}`", table.name)));
            };
            given.push((column, value_of(column, value)?));
        }
        Ok(given)
    }

    async fn create(&self, table: &Table) -> Result<Response, Refusal> {
        let (columns, values): (Vec<&Column>, Vec<SqlValue>) = self.given(table)?.into_iter().unzip();
        if columns.is_empty() {
            return Err(Refusal::invalid("the body has no property"));
        }
        let names: Vec<String> = columns.iter().map(|column| column.quoted()).collect();
        let all: Vec<String> = table.columns.iter().map(|column| column.quoted()).collect();
        let places = vec!["?"; values.len()].join(", ");
        let insert = format!("INSERT INTO {} ({}) VALUES ({places})", table.quoted(), names.join(", "));
        let created = match self.dialect {
            Dialect::Sqlite | Dialect::Postgres => {
                let sql = format!("{insert} RETURNING {}", all.join(", "));
                self.rows(Fragment { sql, values }).await?
            }
            // MySQL returns no rows from INSERT.
            Dialect::Mysql => {
                let (mut conditions, mut key) = (Vec::new(), Vec::new());
                for part in table.key() {
                    let given = columns.iter().position(|column| column.name == part.name);
                    let value = if given.is_some() { "?" } else { "LAST_INSERT_ID()" };
                    conditions.push(format!("{} = {value}", part.quoted()));
                    key.extend(given.map(|index| values[index].clone()));
                }
                self.rows(Fragment { sql: insert, values }).await?;
                let (all, condition) = (all.join(", "), conditions.join(" AND "));
                let sql = format!("SELECT {all} FROM {} WHERE {condition}", table.quoted());
                self.rows(Fragment { sql, values: key }).await?
            }
        };
        let row = created.first().ok_or_else(|| Refusal::status(500, "the database returned no row"))?;
        self.entity_response(201, table, row).await
    }

    async fn change(&self, table: &Table, key: &[KeyPart], replaces: bool) -> Result<Response, Refusal> {
        self.entity(table, key).await?;
        let mut changes: Vec<(&Column, SqlValue)> = self.given(table)?;
        changes.retain(|(column, _)| column.key_position == 0);
        if replaces {
            for column in table.columns.iter().filter(|column| column.key_position == 0 && column.is_nullable) {
                if changes.iter().all(|(changed, _)| changed.name != column.name) {
                    changes.push((column, SqlValue::Null));
                }
            }
        }
        if changes.is_empty() {
            return Ok(Response::empty());
        }
        let condition = self.key_condition(table, key)?;
        let (columns, mut values): (Vec<&Column>, Vec<SqlValue>) = changes.into_iter().unzip();
        let assignments: Vec<String> = columns.iter().map(|column| format!("{} = ?", column.quoted())).collect();
        values.extend(condition.values);
        let sql = format!("UPDATE {} SET {} WHERE {}", table.quoted(), assignments.join(", "), condition.sql);
        self.rows(Fragment { sql, values }).await?;
        Ok(Response::empty())
    }
}

/// What is escaped in the value of a query option, and in a key.
pub(super) const OPTION: &AsciiSet = &RESERVED.remove(b'(').remove(b')').remove(b',').remove(b'\'');

pub(super) fn entity(table: &Table, row: &[SqlValue], selected: &Option<Vec<String>>) -> Map<String, Json> {
    let mut out = Map::new();
    out.insert("@odata.etag".into(), entity_tag(row).into());
    for (column, value) in table.columns.iter().zip(row) {
        if selected.as_ref().is_none_or(|names| names.iter().any(|name| *name == *column.name)) {
            out.insert(column.name.to_string(), json_of(value));
        }
    }
    out
}

/// The tag of a row: the same values give the same tag, in all processes of one build.
fn entity_tag(row: &[SqlValue]) -> String {
    let mut hasher = DefaultHasher::new();
    for value in row {
        json_of(value).to_string().hash(&mut hasher);
    }
    format!("W/\"{:016x}\"", hasher.finish())
}

pub(super) fn json_of(value: &SqlValue) -> Json {
    let number = |text: &str| serde_json::from_str::<serde_json::Number>(text).map_or(Json::Null, Json::Number);
    match value {
        SqlValue::Null => Json::Null,
        SqlValue::Text(text) => Json::String(text.to_string()),
        SqlValue::Integer(integer) => (*integer).into(),
        SqlValue::Double(double) => number(&double_to_text(*double)),
        SqlValue::Decimal(text) => number(text),
        SqlValue::Boolean(flag) => (*flag).into(),
        SqlValue::Bytes(bytes) => STANDARD.encode(bytes).into(),
        SqlValue::Temporal(text) if text.len() > 10 => temporal::to_schema(text).replace("+00:00", "Z").into(),
        SqlValue::Temporal(text) => Json::String(text.to_string()),
    }
}

/// A value of a request for a column.
pub(super) fn value_of(column: &Column, value: &Json) -> Result<SqlValue, Refusal> {
    let text = match value {
        Json::Null => return Ok(SqlValue::Null),
        Json::String(text) => text.clone(),
        Json::Bool(_) | Json::Number(_) => value.to_string(),
        Json::Array(_) | Json::Object(_) => {
            return Err(Refusal::invalid(format!("the property `{}` is not a value", column.name)));
        }
    };
    let kind = match column.edm_type() {
        "Edm.Int64" | "Edm.Int32" | "Edm.Int16" => SqlType::Integer(i64::MIN, i64::MAX),
        "Edm.Double" => SqlType::Double,
        "Edm.Decimal" => SqlType::Decimal,
        "Edm.Boolean" => SqlType::Boolean,
        "Edm.DateTimeOffset" => SqlType::Timestamp,
        "Edm.Date" => SqlType::Date,
        "Edm.TimeOfDay" => SqlType::Time,
        "Edm.Binary" => SqlType::Binary,
        _ => SqlType::Text,
    };
    kind.convert(&text).map_err(|why| Refusal::invalid(format!("the property `{}`: {why}", column.name)))
}
