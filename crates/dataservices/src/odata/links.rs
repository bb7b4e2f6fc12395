//! Links between tables: foreign keys in both directions. `$expand` returns linked entities, `$ref` their addresses.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::database::{DataSource, DatabaseError, Dialect, SqlValue, Transaction};
use penstock_engine::ports::LocalFuture;
use penstock_message::{Method, percent_decoded};
use percent_encoding::utf8_percent_encode;
use serde_json::{Map, Value as Json, json};

use super::catalog::{Table, quoted, rows};
use super::entity::{OPTION, Running, entity, json_of};
use super::expand::Expansion;
use super::filter::{Fragment, filter, order};
use super::path::{KeyPart, Tail, Target};
use super::{Refusal, Response, batch};

/// Values in one statement that selects linked rows. SQLite allows 999 in old versions.
const VALUES_MAX: usize = 900;

/// Entities of a response with links: it is made in memory.
const ENTITIES_MAX: usize = 100_000;

/// A link to another table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its name: that of the other table.
    pub name: Arc<str>,
    /// The other table.
    pub target: Arc<str>,
    /// Pairs of a column here and a column there.
    pub columns: Vec<(Arc<str>, Arc<str>)>,
    /// Whether it leads to many rows.
    pub is_collection: bool,
}

const SQLITE: &str = "SELECT m.name, f.id, f.\"table\", f.\"from\", COALESCE(f.\"to\", '') FROM sqlite_master m \
                      JOIN pragma_foreign_key_list(m.name) f WHERE m.type = 'table' ORDER BY m.name, f.id, f.seq";

const POSTGRES: &str = "SELECT k.table_name, k.constraint_name, u.table_name, k.column_name, u.column_name \
                        FROM information_schema.referential_constraints r \
                        JOIN information_schema.key_column_usage k ON k.constraint_schema = r.constraint_schema \
                        AND k.constraint_name = r.constraint_name \
                        JOIN information_schema.key_column_usage u ON u.constraint_schema = r.unique_constraint_schema \
                        AND u.constraint_name = r.unique_constraint_name \
                        AND u.ordinal_position = k.position_in_unique_constraint \
                        WHERE r.constraint_schema = current_schema() ORDER BY 1, 2, k.ordinal_position";

const MYSQL: &str = "SELECT table_name, constraint_name, referenced_table_name, column_name, referenced_column_name \
                     FROM information_schema.key_column_usage \
                     WHERE table_schema = database() AND referenced_table_name IS NOT NULL \
                     ORDER BY table_name, constraint_name, ordinal_position";

/// Reads the foreign keys and adds the links to the tables.
pub async fn add(
    tables: &mut [Table],
    session: &Rc<dyn Transaction>,
    source: &Arc<DataSource>,
    dialect: Dialect,
) -> Result<(), DatabaseError> {
    let sql = match dialect {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
        Dialect::Mysql => MYSQL,
    };
    let mut keys: Vec<ForeignKey> = Vec::new();
    for row in rows(session, source, sql.to_owned(), Vec::new()).await? {
        let [from, id, to, column, other] = row.as_slice() else { continue };
        let [from, id, to, column, other] = [from, id, to, column, other].map(text_of);
        match keys.last_mut().filter(|key| key.from == from && key.id == id) {
            Some(key) => key.columns.push((column, other)),
            None => keys.push(ForeignKey { from, id, to, columns: vec![(column, other)] }),
        }
    }
    link(tables, &keys);
    Ok(())
}

struct ForeignKey {
    from: String,
    id: String,
    to: String,
    columns: Vec<(String, String)>,
}

fn link(tables: &mut [Table], keys: &[ForeignKey]) {
    for key in keys {
        let position = |name: &str| tables.iter().position(|table| table.name.eq_ignore_ascii_case(name));
        let (Some(from), Some(to)) = (position(&key.from), position(&key.to)) else { continue };
        let own = |table: &Table, name: &str| {
            table.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)).map(|column| column.name.clone())
        };
        let pair = |(index, (column, other)): (usize, &(String, String))| {
            let other = match other.is_empty() {
                // SQLite names no column when the key refers to the primary key.
                true => tables[to].key().get(index).map(|column| column.name.clone()),
                false => own(&tables[to], other),
            };
            Some((own(&tables[from], column)?, other?))
        };
        let Some(columns) = key.columns.iter().enumerate().map(pair).collect::<Option<Vec<_>>>() else { continue };
        let reversed = columns.iter().map(|(here, there)| (there.clone(), here.clone())).collect();
        let (from_name, to_name) = (tables[from].name.clone(), tables[to].name.clone());
        push(&mut tables[from], &to_name, columns, false);
        push(&mut tables[to], &from_name, reversed, true);
    }
}

/// Adds a link. The name of the other table is followed by columns when it is taken.
fn push(table: &mut Table, target: &Arc<str>, columns: Vec<(Arc<str>, Arc<str>)>, is_collection: bool) {
    let is_taken = |table: &Table, name: &str| table.column(name).is_some() || table.link(name).is_some();
    let mut name = target.to_string();
    for (here, there) in &columns {
        if is_taken(table, &name) {
            name = format!("{name}_{}", if is_collection { there } else { here });
        }
    }
    if !is_taken(table, &name) {
        table.links.push(Link { name: name.into(), target: target.clone(), columns, is_collection });
    }
}

fn text_of(value: &SqlValue) -> String {
    match json_of(value) {
        Json::String(text) => text,
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

impl Table {
    /// The link of a name.
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| *link.name == *name)
    }

    fn value<'r>(&self, row: &'r [SqlValue], column: &str) -> &'r SqlValue {
        let index = self.columns.iter().position(|known| *known.name == *column);
        index.and_then(|index| row.get(index)).unwrap_or(&SqlValue::Null)
    }
}

/// The values of columns of a row; `None` when one is null, which links to nothing.
fn key_of<'c>(table: &Table, row: &[SqlValue], columns: impl Iterator<Item = &'c Arc<str>>) -> Option<Vec<SqlValue>> {
    columns
        .map(|column| table.value(row, column).clone())
        .map(|value| (value != SqlValue::Null).then_some(value))
        .collect()
}

/// The same values as one text: the types of both columns may differ.
fn key_text(values: &[SqlValue]) -> String {
    values.iter().map(text_of).collect::<Vec<_>>().join("\u{1f}")
}

impl Running<'_> {
    /// Adds the linked entities to entities: one query for each link and 900 values of its columns. The result is how many
    /// entities each one is then, itself included.
    pub(super) fn expand<'a>(
        &'a self,
        table: &'a Table,
        rows: &'a [Vec<SqlValue>],
        entities: &'a mut [Map<String, Json>],
        expansions: &'a [Expansion],
    ) -> LocalFuture<'a, Result<Vec<usize>, Refusal>> {
        Box::pin(async move {
            let mut sizes = vec![1; rows.len()];
            for expansion in expansions {
                let link = table.link(&expansion.name).ok_or_else(|| {
                    Refusal::invalid(format!("the entity `{}` has no link `{}`", table.name, expansion.name))
                })?;
                let target = self.table(&link.target)?;
                let (mut pages, mut all) = (HashMap::new(), Vec::new());
                for (key, found) in self.linked_rows(table, rows, link, target, expansion).await? {
                    let (count, from) = (found.len(), all.len());
                    all.extend(found.into_iter().skip(expansion.skip).take(expansion.top.unwrap_or(usize::MAX)));
                    pages.insert(key, (count, from..all.len()));
                }
                let (values, inner) = self.expanded(target, &all, expansion).await?;
                let page_of = |row: &[SqlValue]| {
                    let key = key_of(table, row, link.columns.iter().map(|(here, _)| here));
                    key.and_then(|key| pages.get(&key_text(&key)).cloned()).unwrap_or_default()
                };
                for (row, size) in rows.iter().zip(&mut sizes) {
                    *size += inner[page_of(row).1].iter().sum::<usize>();
                }
                // Before the copies: an entity that several others link to is in the response several times.
                if sizes.iter().sum::<usize>() > ENTITIES_MAX {
                    return Err(Refusal::invalid(format!("`$expand` leads to more than {ENTITIES_MAX} entities")));
                }
                for (row, out) in rows.iter().zip(entities.iter_mut()) {
                    let (count, page) = page_of(row);
                    if expansion.has_count && link.is_collection {
                        out.insert(format!("{}@odata.count", link.name), count.into());
                    }
                    let value = match link.is_collection {
                        true => values[page].to_vec().into(),
                        false => values[page].first().cloned().unwrap_or_default(),
                    };
                    out.insert(link.name.to_string(), value);
                }
            }
            Ok(sizes)
        })
    }

    /// Linked entities with what they link to in turn, and how many entities each one is.
    async fn expanded(
        &self,
        target: &Table,
        rows: &[Vec<SqlValue>],
        expansion: &Expansion,
    ) -> Result<(Vec<Json>, Vec<usize>), Refusal> {
        if expansion.is_reference {
            let references = rows.iter().map(|row| json!({"@odata.id": self.id(target, row)})).collect();
            return Ok((references, vec![1; rows.len()]));
        }
        let selected = self.selected(target, expansion.select.as_deref())?;
        let mut entities: Vec<Map<String, Json>> = rows.iter().map(|row| entity(target, row, &selected)).collect();
        let sizes = self.expand(target, rows, &mut entities, &expansion.expansions).await?;
        Ok((entities.into_iter().map(Json::Object).collect(), sizes))
    }

    /// The rows that a link leads to, by the values of its columns.
    async fn linked_rows(
        &self,
        table: &Table,
        rows: &[Vec<SqlValue>],
        link: &Link,
        target: &Table,
        expansion: &Expansion,
    ) -> Result<HashMap<String, Vec<Vec<SqlValue>>>, Refusal> {
        let mut keys: HashMap<String, Vec<SqlValue>> = HashMap::new();
        for key in rows.iter().filter_map(|row| key_of(table, row, link.columns.iter().map(|(here, _)| here))) {
            keys.insert(key_text(&key), key);
        }
        let keys: Vec<Vec<SqlValue>> = keys.into_values().collect();
        let condition = match &expansion.filter {
            Some(text) => filter(text, target, self.dialect)?,
            None => Fragment::default(),
        };
        let order = match &expansion.order {
            Some(text) => order(text, target, self.dialect)?,
            None => Fragment {
                sql: target.key().iter().map(|column| column.quoted()).collect::<Vec<_>>().join(", "),
                values: Vec::new(),
            },
        };
        let columns: Vec<String> = target.columns.iter().map(|column| column.quoted()).collect();
        let equal: Vec<String> =
            link.columns.iter().map(|(_, there)| format!("{} = ?", quoted(there, self.dialect))).collect();
        let equal = format!("({})", equal.join(" AND "));
        let mut found: HashMap<String, Vec<Vec<SqlValue>>> = HashMap::new();
        let mut count = 0;
        for chunk in keys.chunks((VALUES_MAX / link.columns.len().max(1)).max(1)) {
            let any = vec![equal.as_str(); chunk.len()].join(" OR ");
            let filtered = if condition.sql.is_empty() { String::new() } else { format!(" AND {}", condition.sql) };
            let ordered = if order.sql.is_empty() { String::new() } else { format!(" ORDER BY {}", order.sql) };
            let sql = format!(
                "SELECT {} FROM {} WHERE ({any}){filtered}{ordered} LIMIT {}",
                columns.join(", "),
                target.quoted(),
                ENTITIES_MAX + 1 - count
            );
            let values = chunk.iter().flatten().cloned().chain(condition.values.clone()).chain(order.values.clone());
            for row in self.rows(Fragment { sql, values: values.collect() }).await? {
                let key = key_of(target, &row, link.columns.iter().map(|(_, there)| there)).unwrap_or_default();
                found.entry(key_text(&key)).or_default().push(row);
                count += 1;
            }
            if count > ENTITIES_MAX {
                let message = format!("`{}` leads to more than {ENTITIES_MAX} entities", link.name);
                return Err(Refusal::invalid(message));
            }
        }
        Ok(found)
    }

    /// What a link of a row leads to: `T(1)/Orders`, `T(1)/Orders/$count`, `T(1)/Orders/$ref`.
    pub(super) async fn linked(
        &self,
        table: &Table,
        row: &[SqlValue],
        link: &Link,
        tail: Tail,
    ) -> Result<Response, Refusal> {
        let request = self.request;
        let target = self.table(&link.target)?;
        let expansion = Expansion {
            name: link.name.to_string(),
            is_reference: tail == Tail::Reference,
            select: request.option("$select").map(str::to_owned),
            filter: request.option("$filter").map(str::to_owned),
            order: request.option("$orderby").map(str::to_owned),
            skip: request.number("$skip")?.unwrap_or(0),
            top: request.number("$top")?,
            has_count: request.option("$count") == Some("true"),
            expansions: super::expand::parse(request.option("$expand").unwrap_or_default())?,
        };
        let linked = self.linked_rows(table, &[row.to_vec()], link, target, &expansion).await?;
        let all: Vec<Vec<SqlValue>> = linked.into_values().flatten().collect();
        if !link.is_collection {
            return match (all.first(), tail) {
                (_, Tail::Count | Tail::Value) => Err(Refusal::status(404, "the link leads to one entity")),
                (None, _) => Ok(Response::empty()),
                (Some(row), Tail::Reference) => Ok(Response::json(200, &self.reference(target, row))),
                (Some(row), Tail::None) => self.entity_response(200, target, row).await,
            };
        }
        let count = all.len();
        let page = all.into_iter().skip(expansion.skip).take(expansion.top.unwrap_or(usize::MAX));
        let page: Vec<Vec<SqlValue>> = page.collect();
        let of_context = match tail {
            Tail::Value => return Err(Refusal::status(404, "a link has no value")),
            Tail::Count => return Ok(Response::text("text/plain; charset=UTF-8", count.to_string())),
            Tail::Reference => "Collection($ref)",
            Tail::None => &target.name,
        };
        let mut out = Map::new();
        out.insert("@odata.context".into(), format!("{}/$metadata#{of_context}", request.root).into());
        if expansion.has_count {
            out.insert("@odata.count".into(), count.into());
        }
        out.insert("value".into(), self.expanded(target, &page, &expansion).await?.0.into());
        Ok(Response::json(200, &Json::Object(out)))
    }

    /// The address of an entity.
    pub(super) fn id(&self, table: &Table, row: &[SqlValue]) -> String {
        let literal = |value: &SqlValue| match json_of(value) {
            Json::String(text) => format!("'{}'", utf8_percent_encode(&text.replace('\'', "''"), OPTION)),
            other => other.to_string(),
        };
        let key = table.key();
        let parts: Vec<String> = match key.as_slice() {
            [column] => vec![literal(table.value(row, &column.name))],
            columns => {
                let part = |name: &str| format!("{name}={}", literal(table.value(row, name)));
                columns.iter().map(|column| part(&column.name)).collect()
            }
        };
        format!("{}/{}({})", self.request.root, table.name, parts.join(","))
    }

    /// The body that refers to one entity.
    pub(super) fn reference(&self, table: &Table, row: &[SqlValue]) -> Json {
        let context = format!("{}/$metadata#$ref", self.request.root);
        json!({"@odata.context": context, "@odata.id": self.id(table, row)})
    }

    /// Adds (POST), replaces (PUT) or removes (DELETE) a link of a row.
    pub(super) async fn change_link(&self, table: &Table, key: &[KeyPart], link: &Link) -> Result<Response, Refusal> {
        let row = self.entity(table, key).await?;
        let target = self.table(&link.target)?;
        let method = &self.request.method;
        let body_id = || {
            let body = self.request.body.as_deref();
            body.and_then(|body| body.get("@odata.id")).and_then(Json::as_str).map(str::to_owned)
        };
        let id = match method {
            Method::Delete => self.request.option("$id").map(str::to_owned),
            _ => Some(body_id().ok_or_else(|| Refusal::invalid("the body has no `@odata.id`"))?),
        };
        let other_key = id.map(|id| self.key_of_id(target, &id)).transpose()?;
        match (link.is_collection, method, other_key) {
            (true, Method::Post, Some(other)) => {
                let values = link.columns.iter().map(|(here, there)| (there, table.value(&row, here).clone()));
                self.set(target, &other, values.collect(), &[]).await
            }
            (true, Method::Delete, Some(other)) => {
                let own = link.columns.iter().map(|(here, there)| (there, table.value(&row, here).clone()));
                let nothing = link.columns.iter().map(|(_, there)| (there, SqlValue::Null));
                self.set(target, &other, nothing.collect(), &own.collect::<Vec<_>>()).await
            }
            (false, Method::Put, Some(other)) => {
                let linked = self.entity(target, &other).await?;
                let values = link.columns.iter().map(|(here, there)| (here, target.value(&linked, there).clone()));
                self.set(table, key, values.collect(), &[]).await
            }
            (false, Method::Delete, _) => {
                let nothing = link.columns.iter().map(|(here, _)| (here, SqlValue::Null));
                self.set(table, key, nothing.collect(), &[]).await
            }
            (true, Method::Delete, None) => Err(Refusal::invalid("`$id` names the entity whose link is removed")),
            (true, ..) => Err(Refusal::status(405, "a link to many entities is added with POST")),
            (false, ..) => Err(Refusal::status(405, "a link to one entity is set with PUT")),
        }
    }

    fn key_of_id(&self, target: &Table, id: &str) -> Result<Vec<KeyPart>, Refusal> {
        let path = batch::relative(id, &self.request.root);
        match Target::parse(&percent_decoded(path, false))? {
            Target::Entity(name, key, None) if name.eq_ignore_ascii_case(&target.name) => Ok(key),
            _ => Err(Refusal::invalid(format!("`{id}` is not an entity of `{}`", target.name))),
        }
    }

    /// Sets columns of a row where other columns have these values.
    async fn set(
        &self,
        table: &Table,
        key: &[KeyPart],
        values: Vec<(&Arc<str>, SqlValue)>,
        expected: &[(&Arc<str>, SqlValue)],
    ) -> Result<Response, Refusal> {
        let condition = self.key_condition(table, key)?;
        let columns: Vec<String> = table.columns.iter().map(|column| column.quoted()).collect();
        let select = format!("SELECT {} FROM {} WHERE {}", columns.join(", "), table.quoted(), condition.sql);
        let found = self.rows(Fragment { sql: select, values: condition.values.clone() }).await?;
        let holds = |row: &Vec<SqlValue>| {
            expected.iter().all(|(column, value)| text_of(table.value(row, column)) == text_of(value))
        };
        if !found.first().is_some_and(holds) {
            return Err(Refusal::status(404, "there is no such link or entity"));
        }
        let assignments: Vec<String> =
            values.iter().map(|(column, _)| format!("{} = ?", quoted(column, self.dialect))).collect();
        let sql = format!("UPDATE {} SET {} WHERE {}", table.quoted(), assignments.join(", "), condition.sql);
        let values = values.into_iter().map(|(_, value)| value).chain(condition.values).collect();
        self.rows(Fragment { sql, values }).await?;
        Ok(Response::empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalog::Column;
    use super::*;

    fn table(name: &str, columns: &[&str]) -> Table {
        let column = |(index, name): (usize, &&str)| Column {
            name: (*name).into(),
            kind: "INTEGER".into(),
            is_nullable: true,
            key_position: i64::from(index == 0),
            dialect: Dialect::Sqlite,
        };
        let columns = columns.iter().enumerate().map(column).collect();
        Table { name: name.into(), columns, dialect: Dialect::Sqlite, links: Vec::new() }
    }

    fn foreign(from: &str, id: &str, to: &str, pair: (&str, &str)) -> ForeignKey {
        let columns = vec![(pair.0.to_owned(), pair.1.to_owned())];
        ForeignKey { from: from.to_owned(), id: id.to_owned(), to: to.to_owned(), columns }
    }

    #[test]
    fn foreign_keys_are_links_in_both_directions() {
        let mut tables = [table("ORDERS", &["ID", "OWNER", "PAYER"]), table("PEOPLE", &["ID", "BOSS"])];
        link(
            &mut tables,
            &[
                foreign("ORDERS", "0", "people", ("OWNER", "")),
                foreign("ORDERS", "1", "PEOPLE", ("PAYER", "ID")),
                foreign("PEOPLE", "0", "PEOPLE", ("BOSS", "ID")),
                foreign("PEOPLE", "1", "NOTHING", ("BOSS", "ID")),
            ],
        );
        let described = |table: &Table| {
            let one = |link: &Link| {
                let (here, there) = &link.columns[0];
                format!("{} {here}={there} {}", link.name, if link.is_collection { "many" } else { "one" })
            };
            table.links.iter().map(one).collect::<Vec<_>>()
        };
        assert_eq!(described(&tables[0]), ["PEOPLE OWNER=ID one", "PEOPLE_PAYER PAYER=ID one"]);
        let of_people =
            ["ORDERS ID=OWNER many", "ORDERS_PAYER ID=PAYER many", "PEOPLE BOSS=ID one", "PEOPLE_BOSS ID=BOSS many"];
        assert_eq!(described(&tables[1]), of_people);
    }
}
