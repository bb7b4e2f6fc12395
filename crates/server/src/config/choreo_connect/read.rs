//! Reads the keys of a file of Choreo Connect into ours, with what its environment variables say.

use std::path::Path;

use penstock_compile::Severity;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::super::value::Value;
use super::super::{Dialect, Reader};
use super::{SWITCHES, is_whole, mapping, names_a_file, ours, overrides, usual_users, variable};

impl Reader<'_> {
    /// A key of Choreo Connect, under the name it has here.
    pub(in super::super) fn entry_of_choreo_connect(
        &mut self,
        path: &str,
        offset: usize,
        value: &Spanned<DeValue<'_>>,
    ) {
        if let Some(ours) = ours(path) {
            match self.list(value) {
                Some(text) => self.set_of_choreo_connect(&[(ours.to_owned(), text)], value.span().start),
                None => self.error(value.span().start, format!("`{path}` must be a single value or a list")),
            }
            return;
        }
        let whole = |reader: &mut Self, path: &str, at: &str, value: &Spanned<DeValue<'_>>| {
            let DeValue::Table(table) = value.get_ref() else { return reader.ignored.push((offset, path.to_owned())) };
            let entries = reader.entries(at, table);
            let found = super::table(path, &entries).unwrap_or_default();
            reader.set_of_choreo_connect(&found, value.span().start);
        };
        match value.get_ref() {
            DeValue::Table(_) if is_whole(path) => whole(self, path, path, value),
            DeValue::Table(table) => self.table(path, table, Dialect::ChoreoConnect),
            DeValue::Array(tables) if is_whole(path) => {
                for (index, item) in tables.iter().enumerate() {
                    whole(self, path, &format!("{path}.{index}"), item);
                }
            }
            DeValue::Boolean(flag) if self.switches.take(path, &Value(flag.to_string())) => {}
            _ => self.ignored.push((offset, path.to_owned())),
        }
    }

    /// The scalars of a table, or what environment variables say instead of them.
    fn entries(&mut self, path: &str, table: &DeTable<'_>) -> Vec<(String, Value)> {
        let mut entries = Vec::new();
        for (name, value) in table {
            let name = name.get_ref();
            if let DeValue::Array(inner) = value.get_ref()
                && inner.iter().any(|item| matches!(item.get_ref(), DeValue::Table(_)))
            {
                for item in inner.iter() {
                    let DeValue::Table(inner) = item.get_ref() else { continue };
                    let texts = self.entries(&format!("{path}.{name}"), inner);
                    let get =
                        |wanted: &str| texts.iter().find(|(known, _)| known == wanted).map(|(_, value)| value.clone());
                    entries.extend(mapping(name, get));
                }
                continue;
            }
            let instead = (self.lookup)(&variable(&format!("{path}.{name}")));
            if let Some(text) = instead.map(Value).or_else(|| self.list(value)) {
                entries.push((name.to_string(), text));
            }
        }
        entries
    }

    /// Sets keys that Choreo Connect has under other names. Files that are not there are left out: Choreo Connect's own
    /// configuration names those of its containers.
    fn set_of_choreo_connect(&mut self, keys: &[(String, Value)], offset: usize) {
        let mut left_out = false;
        let said = || keys.iter().filter(|(_, text)| !text.text().is_empty());
        for (ours, text) in said() {
            if names_a_file(ours) && !Path::new(text.text()).exists() {
                left_out = true;
                let message = format!("`{}`: no such file; it is ignored", text.text());
                self.note(Severity::Warning, offset, message);
            }
        }
        // An issuer without a key has no valid tokens.
        let is_issuer = keys.iter().any(|(ours, _)| ours.starts_with("gateway.issuers."));
        if left_out && is_issuer && !keys.iter().any(|(ours, _)| ours.ends_with(".jwks_url")) {
            return;
        }
        for (ours, text) in said() {
            if !names_a_file(ours) || Path::new(text.text()).exists() {
                self.set(ours, offset, text);
            }
        }
    }

    /// What the environment says besides the file.
    pub(in super::super) fn surroundings_of_choreo_connect(&mut self) {
        for (ours, value) in overrides(self.lookup) {
            self.set_of_choreo_connect(&[(ours.to_owned(), value)], 0);
        }
        for path in SWITCHES {
            if let Some(value) = (self.lookup)(&variable(path)) {
                self.switches.take(path, &Value(value));
            }
        }
        for (table, name, password) in usual_users(&self.configuration.settings, self.lookup) {
            self.set(&format!("{table}.{name}"), 0, &password);
        }
        let settings = &mut self.configuration.settings;
        self.switches.apply(settings);
        if settings.adapter.enabled && settings.adapter.users.is_empty() {
            settings.adapter.enabled = false;
            let message = "`adapter.server` has no user with a password; APIs cannot be deployed over HTTPS";
            self.note(Severity::Warning, 0, message.to_owned());
        }
    }
}
