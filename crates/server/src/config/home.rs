//! The parts of a `deployment.toml` that belong to the home of a Micro Integrator: its keystores and its users.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Reader;
use super::management::ManagementUser;
use super::value::Value;

/// Keys that name a keystore, relative to the home.
pub(super) const NAMES_A_KEYSTORE: [&str; 3] =
    ["keystore.tls.file_name", "keystore.primary.file_name", "truststore.file_name"];

/// Where a keystore lies that is named without a folder.
const KEYSTORES: &str = "repository/resources/security";

/// Where users are listed, the newer table first. Both write `user.name` and `user.password`.
const USER_LISTS: [&str; 2] = ["internal_apis.file_user_store.users", "internal_apis.users"];

/// The role of administrators.
const ADMIN: &str = "admin";

/// The keys of users, which are read together.
const USER_KEYS: [&str; 3] = ["super_admin.username", "super_admin.password", "internal_apis.file_user_store.enable"];

/// The home that a `conf/deployment.toml` belongs to.
pub(super) fn home_of(file: &Path) -> Option<PathBuf> {
    let conf = file.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "conf"))?;
    let home = conf.parent()?;
    Some(if home.as_os_str().is_empty() { PathBuf::from(".") } else { home.to_owned() })
}

/// Whether a key is read by [`Reader::users_of_micro_integrator`].
pub(super) fn is_read_elsewhere(path: &str) -> bool {
    USER_LISTS.contains(&path) || USER_KEYS.contains(&path)
}

/// The value at a path of names with dots between.
fn at<'t, 'v>(table: &'t DeTable<'v>, path: &str) -> Option<&'t Spanned<DeValue<'v>>> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let value = table.get(first)?;
    match (rest, value.get_ref()) {
        (None, _) => Some(value),
        (Some(rest), DeValue::Table(inner)) => at(inner, rest),
        (Some(_), _) => None,
    }
}

impl Reader<'_> {
    /// The path of a keystore: in the home, among its keystores, or as it is written. `None` when it is not there and
    /// the server starts without it.
    pub(super) fn keystore_file(&mut self, key: &str, offset: usize, text: Value) -> Option<Value> {
        let Some(home) = self.home else { return Some(text) };
        let candidates = [home.join(text.text()), home.join(KEYSTORES).join(text.text()), PathBuf::from(text.text())];
        if let Some(found) = candidates.iter().find(|path| path.is_file()) {
            return Some(Value(found.display().to_string()));
        }
        let message = format!("`{key}`: `{}` does not exist", candidates[0].display());
        self.note(self.missing_keystore, offset, message);
        None
    }

    /// A keystore of which only the password is there is none.
    pub(super) fn drop_missing_keystore(&mut self) {
        let keystore = &mut self.configuration.settings.keystore;
        if keystore.as_ref().is_some_and(|keystore| keystore.file.as_os_str().is_empty()) {
            *keystore = None;
        }
    }

    /// `[super_admin]` and the users of the file user store: they may pass basic authentication and use the management API.
    pub(super) fn users_of_micro_integrator(&mut self, table: &DeTable<'_>) {
        let admin = (at(table, "super_admin.username"), at(table, "super_admin.password"));
        if let (Some(name), Some(password)) = admin {
            self.user(name, password, true);
        }
        let enabled = at(table, "internal_apis.file_user_store.enable").map(Spanned::get_ref);
        if matches!(enabled, Some(DeValue::Boolean(false))) {
            return;
        }
        for list in USER_LISTS {
            let Some(users) = at(table, list) else { continue };
            let DeValue::Array(users) = users.get_ref() else {
                self.error(users.span().start, format!("`{list}` must be a list of tables"));
                continue;
            };
            for user in users.iter() {
                let DeValue::Table(entry) = user.get_ref() else { continue };
                match (at(entry, "user.name"), at(entry, "user.password")) {
                    (Some(name), Some(password)) => {
                        let is_admin = at(entry, "user.is_admin").map(Spanned::get_ref);
                        self.user(name, password, matches!(is_admin, Some(DeValue::Boolean(true))));
                    }
                    _ => self.error(user.span().start, format!("`{list}` needs `user.name` and `user.password`")),
                }
            }
        }
    }

    fn user(&mut self, name: &Spanned<DeValue<'_>>, password: &Spanned<DeValue<'_>>, is_admin: bool) {
        let (Some(name), Some(password)) = (self.value(name), self.value(password)) else {
            return self.error(name.span().start, "the name and the password of a user must be texts".to_owned());
        };
        let operators = &mut self.configuration.settings.management.users;
        if !operators.iter().any(|known| known.name == name.0) {
            operators.push(ManagementUser { name: name.0.clone(), password: password.0.clone(), is_admin });
        }
        if is_admin {
            self.configuration.settings.roles.entry(ADMIN.to_owned()).or_default().push(name.0.clone());
        }
        let users = &mut self.configuration.settings.users;
        if !users.iter().any(|(known, _)| *known == name.0) {
            users.push((name.0, password.0));
        }
    }
}
