//! The configuration: `penstock.toml`, Micro Integrator's `deployment.toml`, `.env` and `file.properties`.
//!
//! All TOML dialects go through one table of keys (`keys.rs`); a value is parsed into its type where it is read, and
//! every mistake is reported with its place, all at once.
//!
//! Start reading at [`Settings`] and [`read`].

mod api_platform;
mod callers;
mod choreo_connect;
mod connections;
mod databases;
mod environment;
mod gateway;
mod home;
mod keys;
mod management;
pub mod properties;
mod secrets;
mod security;
mod settings;
mod substitute;
mod tables;
mod traffic;
mod value;

use std::path::Path;
use std::sync::Arc;

use penstock_compile::{Diagnostic, Severity, suggestion};
use penstock_engine::Place;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use environment::{Surroundings, surroundings, take_aws};
pub use gateway::{Adapter, Opening};
pub use keys::Dialect;
pub use management::{Dashboard, Management, ManagementUser};
pub use security::{read_message_keys, read_rsa_key, read_signing_key};
pub use settings::{AccessTarget, Keystore, LogFormat, Settings};

use value::Value;

/// Settings as a file gives them, and what there is to say about the file.
#[derive(Debug, Default)]
pub struct Configuration {
    /// The settings.
    pub settings: Settings,
    /// Mistakes (errors) and what does not apply (warnings).
    pub diagnostics: Vec<Diagnostic>,
    /// Keys of Micro Integrator that apply.
    pub used_keys: Vec<String>,
    /// Keys of Micro Integrator that have no meaning here.
    pub ignored_keys: Vec<String>,
}

impl Configuration {
    /// Whether anything is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// The dialect of a file, by what is in it and by its name.
pub fn dialect_of(path: &Path, text: &str) -> Dialect {
    if api_platform::is_one(text) {
        return Dialect::ApiPlatform;
    }
    if choreo_connect::is_one(text) {
        return Dialect::ChoreoConnect;
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    if name.contains("deployment") { Dialect::MicroIntegrator } else { Dialect::Penstock }
}

/// Reads a configuration. `lookup` gives the value of an environment variable.
pub fn read(file: &str, text: &str, dialect: Dialect, lookup: &dyn Fn(&str) -> Option<String>) -> Configuration {
    read_with(file, text, dialect, lookup, Severity::Error)
}

/// Reads the `deployment.toml` of a home that was given to be served. A home may have been moved without its keystores,
/// so a keystore that is not there is a warning: the server has its own certificate, and trusts the common ones.
pub fn read_home(file: &str, text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Configuration {
    read_with(file, text, Dialect::MicroIntegrator, lookup, Severity::Warning)
}

fn read_with(
    file: &str,
    text: &str,
    dialect: Dialect,
    lookup: &dyn Fn(&str) -> Option<String>,
    missing_keystore: Severity,
) -> Configuration {
    let home = home::home_of(Path::new(file)).filter(|_| dialect == Dialect::MicroIntegrator);
    // What the start scripts of Micro Integrator set.
    let lookup = &|name: &str| match (lookup(name), &home) {
        (None, Some(home)) if matches!(name, "carbon.home" | "CARBON_HOME") => Some(home.display().to_string()),
        (found, _) => found,
    };
    let mut reader = Reader {
        file: Arc::from(file),
        text,
        dialect,
        lookup,
        home: home.as_deref(),
        missing_keystore,
        encrypted: Vec::new(),
        configuration: Configuration::default(),
        ignored: Vec::new(),
        switches: Default::default(),
    };
    match DeTable::parse(text) {
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            reader.error(at, format!("not valid TOML: {}", error.message()));
        }
        Ok(table) => {
            match dialect {
                Dialect::ChoreoConnect => choreo_connect::defaults(&mut reader.configuration.settings),
                Dialect::ApiPlatform => api_platform::defaults(&mut reader.configuration.settings),
                _ => {}
            }
            reader.secrets(table.get_ref(), dialect);
            reader.table("", table.get_ref(), dialect);
            if dialect == Dialect::MicroIntegrator {
                reader.users_of_micro_integrator(table.get_ref());
                reader.configuration.settings.management.home = reader.home.map(Path::to_owned);
                reader.drop_missing_keystore();
            }
            if dialect == Dialect::ChoreoConnect {
                reader.surroundings_of_choreo_connect();
            }
            reader.say_what_is_ignored();
            let mistakes = reader.configuration.settings.check();
            for message in mistakes {
                reader.error(0, message);
            }
        }
    }
    let mut configuration = reader.configuration;
    configuration.diagnostics.sort_by_key(|diagnostic| (diagnostic.at.line, diagnostic.at.column));
    configuration
}

/// The key that was probably meant: nearly the same, or the same in another table.
fn meant(path: &str, dialect: Dialect) -> Option<&'static str> {
    let last = |path: &str| path.rsplit('.').next().map(str::to_owned);
    suggestion(path, keys::names(dialect)).or_else(|| keys::names(dialect).find(|name| last(name) == last(path)))
}

struct Reader<'t> {
    file: Arc<str>,
    text: &'t str,
    dialect: Dialect,
    lookup: &'t dyn Fn(&str) -> Option<String>,
    /// The home of the Micro Integrator that the file belongs to.
    home: Option<&'t Path>,
    /// How a keystore that is not there is reported.
    missing_keystore: Severity,
    /// Secrets that only the cipher tool can read.
    encrypted: Vec<String>,
    configuration: Configuration,
    /// Keys of Micro Integrator that mean nothing here, with the offset of the first.
    ignored: Vec<(usize, String)>,
    /// Those of Choreo Connect.
    switches: choreo_connect::Switches,
}

impl Reader<'_> {
    fn note(&mut self, severity: Severity, offset: usize, message: String) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() as u32 + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
        let at = Place { file: self.file.clone(), line, column };
        self.configuration.diagnostics.push(Diagnostic { severity, at, message });
    }

    fn error(&mut self, offset: usize, message: String) {
        self.note(Severity::Error, offset, message);
    }

    fn table(&mut self, path: &str, table: &DeTable<'_>, dialect: Dialect) {
        for (name, value) in table {
            let offset = name.span().start;
            let path = if path.is_empty() { name.get_ref().to_string() } else { format!("{path}.{}", name.get_ref()) };
            self.entry(&path, offset, value, dialect);
        }
    }

    /// Secrets are read before everything else: other values refer to them.
    fn secrets(&mut self, table: &DeTable<'_>, dialect: Dialect) {
        let Some(DeValue::Table(secrets)) = table.get("secrets").map(Spanned::get_ref) else { return };
        let folder = Path::new(&*self.file).parent().unwrap_or(Path::new("")).to_owned();
        for (alias, value) in secrets {
            let Some(text) = self.value(value) else {
                self.error(value.span().start, format!("`secrets.{}` must be a text", alias.get_ref()));
                continue;
            };
            match secrets::resolve(text.text(), dialect, &folder, self.lookup) {
                Ok(secret) => self.configuration.settings.secrets.set(alias.get_ref().as_ref(), secret),
                // An artifact may never ask for it, so Micro Integrator starts too.
                Err(why) if dialect == Dialect::MicroIntegrator => {
                    self.encrypted.push(alias.get_ref().to_string());
                    self.note(Severity::Warning, value.span().start, format!("`secrets.{}` {why}", alias.get_ref()));
                }
                Err(why) => self.error(value.span().start, format!("`secrets.{}`: {why}", alias.get_ref())),
            }
        }
    }

    fn entry(&mut self, path: &str, offset: usize, value: &Spanned<DeValue<'_>>, dialect: Dialect) {
        match dialect {
            Dialect::ChoreoConnect => return self.entry_of_choreo_connect(path, offset, value),
            Dialect::ApiPlatform => return self.entry_of_platform(path, offset, value),
            Dialect::Penstock | Dialect::MicroIntegrator => {}
        }
        if path == "secrets" || dialect == Dialect::MicroIntegrator && home::is_read_elsewhere(path) {
            self.configuration.used_keys.push(path.to_owned());
            return;
        }
        if let Some(key) = keys::find(path, dialect) {
            self.configuration.used_keys.push(path.to_owned());
            let found = if key.kind == keys::LIST { self.list(value) } else { self.value(value) };
            match found {
                Some(text) => {
                    let text = match home::NAMES_A_KEYSTORE.contains(&path) && dialect == Dialect::MicroIntegrator {
                        true => self.keystore_file(path, value.span().start, text),
                        false => Some(text),
                    };
                    let Some(text) = text else { return };
                    if let Err(message) = (key.set)(&mut self.configuration.settings, &text) {
                        self.error(value.span().start, format!("`{path}` {message}"));
                    }
                }
                None => self.error(value.span().start, format!("`{path}` must be {}", key.kind)),
            }
            return;
        }
        if let Some(rest) = tables::map_entry(path, dialect) {
            self.map_entry(path, rest, value);
            return;
        }
        match (value.get_ref(), dialect) {
            (DeValue::Array(tables), Dialect::MicroIntegrator) if path == "datasource" => {
                self.configuration.used_keys.push(path.to_owned());
                tables.iter().for_each(|table| self.data_source(table));
            }
            (DeValue::Array(tables), Dialect::MicroIntegrator) if connections::transport_of_table(path).is_some() => {
                self.configuration.used_keys.push(path.to_owned());
                tables.iter().for_each(|table| self.connection(path, table));
            }
            (DeValue::Table(table), _) => self.table(path, table, dialect),
            (_, Dialect::MicroIntegrator) => self.ignored.push((offset, path.to_owned())),
            (_, Dialect::Penstock | Dialect::ChoreoConnect | Dialect::ApiPlatform) => {
                let hint = meant(path, dialect).map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
                self.error(offset, format!("unknown key `{path}`{hint}"));
            }
        }
    }

    /// A key of the API Platform, under the name it has here.
    fn entry_of_platform(&mut self, path: &str, offset: usize, value: &Spanned<DeValue<'_>>) {
        if let Some((ours, unit)) = api_platform::ours(path) {
            match self.list(value) {
                Some(text) if text.text().is_empty() => {}
                Some(text) if unit.is_empty() => self.set(ours, value.span().start, &text),
                Some(text) => self.set(ours, value.span().start, &Value(format!("{}{unit}", text.text()))),
                None => self.error(value.span().start, format!("`{path}` must be a single value or a list")),
            }
            return;
        }
        match value.get_ref() {
            DeValue::Table(table) => self.table(path, table, self.dialect),
            DeValue::Array(tables) => {
                for item in tables.iter() {
                    let DeValue::Table(table) = item.get_ref() else {
                        self.ignored.push((offset, path.to_owned()));
                        break;
                    };
                    let mut entries = Vec::new();
                    self.leaves("", table, &mut entries);
                    match api_platform::table(path, &mut entries) {
                        Some(found) => {
                            found.iter().for_each(|(ours, text)| self.set(ours, item.span().start, text));
                            let left = entries.into_iter().map(|(name, _)| (offset, format!("{path}.{name}")));
                            self.ignored.extend(left);
                        }
                        None => self.ignored.push((offset, path.to_owned())),
                    }
                }
            }
            _ => self.ignored.push((offset, path.to_owned())),
        }
    }

    /// What a table holds, that of its own tables with their names before it.
    fn leaves(&mut self, prefix: &str, table: &DeTable<'_>, leaves: &mut Vec<(String, Value)>) {
        for (name, value) in table {
            let name = format!("{prefix}{}", name.get_ref());
            match value.get_ref() {
                DeValue::Table(inner) => self.leaves(&format!("{name}."), inner, leaves),
                _ => leaves.extend(self.list(value).map(|text| (name, text))),
            }
        }
    }

    /// Sets a key of ours that another dialect has under another name.
    fn set(&mut self, ours: &str, offset: usize, text: &Value) {
        let settings = &mut self.configuration.settings;
        let outcome = match keys::find(ours, Dialect::Penstock) {
            Some(key) => (key.set)(settings, text),
            None => match tables::map_entry(ours, Dialect::Penstock) {
                Some(map) => map.set(settings, text).map(drop),
                None => Err("is not known".to_owned()),
            },
        };
        if let Err(message) = outcome {
            self.error(offset, format!("`{ours}` {message}"));
        }
    }

    /// Tables whose names the user makes up: users, flags of the mediation.
    fn map_entry(&mut self, path: &str, map: tables::Map, value: &Spanned<DeValue<'_>>) {
        if let DeValue::Table(table) = value.get_ref() {
            for (name, inner) in table {
                let path = format!("{path}.{}", name.get_ref());
                let name = format!("{}.{}", map.name, name.get_ref());
                self.map_entry(&path, tables::Map { table: map.table, name }, inner);
            }
            return;
        }
        let found = if let DeValue::Array(_) = value.get_ref() { self.list(value) } else { self.value(value) };
        let Some(text) = found else {
            return self.error(value.span().start, format!("`{path}` must be a text, a number or true or false"));
        };
        match map.set(&mut self.configuration.settings, &text) {
            Ok(true) => self.configuration.used_keys.push(path.to_owned()),
            Ok(false) if map.table == tables::MapTable::OriginalFlags => {
                self.ignored.push((value.span().start, path.to_owned()))
            }
            Ok(false) => self.error(value.span().start, format!("unknown key `{path}`")),
            Err(message) => self.error(value.span().start, format!("`{path}`: {message}")),
        }
    }

    /// A `[[datasource]]` of Micro Integrator. Its pool is one of Java: what tunes that is not listed as ignored.
    fn data_source(&mut self, source: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = source.get_ref() else { return };
        let Some(id) = table.get("id").and_then(|id| self.value(id)) else {
            return self.error(source.span().start, "a `[[datasource]]` needs an `id`".to_owned());
        };
        for (original, ours) in [
            ("url", "url"),
            ("username", "user"),
            ("password", "password"),
            ("pool_options.maxActive", "connections_max"),
        ] {
            let found = original.split('.').try_fold(None, |at: Option<&Spanned<DeValue<'_>>>, name| {
                let table = match at.map(Spanned::get_ref) {
                    None => table,
                    Some(DeValue::Table(table)) => table,
                    Some(_) => return None,
                };
                table.get(name).map(Some)
            });
            let Some(Some(value)) = found else { continue };
            let Some(text) = self.value(value) else { continue };
            let key = format!("jdbc/{}.{ours}", id.text());
            if let Err(message) = databases::set(&mut self.configuration.settings, &key, &text) {
                self.error(value.span().start, format!("`datasource.{original}`: {message}"));
            }
        }
    }

    /// A `[[transport.rabbitmq.listener]]`: a connection with a name.
    fn connection(&mut self, path: &str, connection: &Spanned<DeValue<'_>>) {
        let (DeValue::Table(table), Some(transport)) = (connection.get_ref(), connections::transport_of_table(path))
        else {
            return;
        };
        let Some(name) = table.get("name").and_then(|name| self.value(name)) else {
            return self.error(connection.span().start, format!("a `[[{path}]]` needs a `name`"));
        };
        let mut entries = Vec::new();
        self.leaves("", table, &mut entries);
        for (key, value) in entries.iter().filter(|(key, _)| key != "name") {
            connections::set_of_table(&mut self.configuration.settings, transport, name.text(), key, value);
        }
    }

    /// A list of scalars, one a line.
    fn list(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let DeValue::Array(items) = value.get_ref() else { return self.value(value) };
        let mut texts = Vec::new();
        for item in items.iter() {
            texts.push(self.value(item)?.0);
        }
        Some(Value(texts.join("\n")))
    }

    /// A value with its placeholders replaced; `None` for tables and lists.
    fn value(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Value> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.as_str().replace('_', ""),
            DeValue::Float(number) => number.as_str().replace('_', ""),
            DeValue::Boolean(flag) => flag.to_string(),
            _ => return None,
        };
        let text = match self.dialect {
            Dialect::ApiPlatform => match penstock_gateway::fill_template(&text, self.lookup) {
                Ok(text) => text,
                Err(message) => {
                    self.error(value.span().start, message);
                    return Some(Value(text));
                }
            },
            _ => text,
        };
        match substitute::replace(&text, self.lookup, &self.configuration.settings.secrets) {
            Ok(text) => Some(Value(text)),
            // A missing password removes its user; a placeholder would be a known password.
            Err(message) if self.dialect == Dialect::ChoreoConnect => {
                self.note(Severity::Warning, value.span().start, format!("{message}; the key is ignored"));
                Some(Value(String::new()))
            }
            Err(message) => {
                let alias = self.encrypted.iter().find(|alias| text.contains(&format!("$secret{{{alias}}}")));
                let message = match alias {
                    Some(alias) => {
                        format!("the secret `{alias}` is encrypted by the cipher tool, see `secrets.{alias}`")
                    }
                    None => message,
                };
                self.error(value.span().start, message);
                Some(Value(text))
            }
        }
    }

    fn say_what_is_ignored(&mut self) {
        let mut ignored = std::mem::take(&mut self.ignored);
        ignored.sort();
        let Some((first, _)) = ignored.first() else { return };
        let mut names: Vec<&str> = ignored.iter().map(|(_, name)| name.as_str()).collect();
        names.dedup();
        self.configuration.ignored_keys = names.iter().map(|name| (*name).to_owned()).collect();
        let message = format!("keys that have no meaning here are ignored: {}", names.join(", "));
        self.note(Severity::Warning, *first, message);
    }
}

#[cfg(test)]
mod tests;
