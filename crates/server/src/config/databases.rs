//! `[databases."jdbc/OrdersDB"]`: which database a data source is.

use penstock_engine::database::Secret;
use penstock_sql::DatabaseEntry;

use super::settings::Settings;
use super::value::Value;

/// Sets `NAME.key`; `false` when there is no such key. Names hold dots, keys do not.
pub(super) fn set(settings: &mut Settings, path: &str, value: &Value) -> Result<bool, String> {
    let Some((name, key)) = path.rsplit_once('.') else { return Ok(false) };
    let entries = &mut settings.databases.entries;
    let index = entries.iter().position(|entry| entry.name == name).unwrap_or_else(|| {
        entries.push(DatabaseEntry { name: name.to_owned(), ..DatabaseEntry::default() });
        entries.len() - 1
    });
    let entry = &mut entries[index];
    match key {
        "url" => value.text().clone_into(&mut entry.url),
        "user" => entry.user = Some(value.text().to_owned()),
        "password" => entry.password = Some(Secret::new(value.0.as_str())),
        "connections_max" => entry.connections_max = Some(value.positive()?),
        "connect_timeout" => entry.connect_timeout = Some(value.duration("s")?),
        "query_timeout" => entry.query_timeout = Some(value.duration("s")?),
        _ => return Ok(false),
    }
    Ok(true)
}
