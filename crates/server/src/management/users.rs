//! Users and roles: those of the configuration, and those that the API adds, which are kept in a file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use serde_json::{Map, Value, json};

use crate::config::{Management, ManagementUser};

/// The role of administrators.
pub(super) const ADMIN: &str = "admin";

/// The role that every user has.
pub(super) const EVERYONE: &str = "Internal/everyone";

/// Users and roles that the API adds; more are a script that goes wrong.
const ENTRIES_MAX: usize = 10_000;

/// Names longer than this are refused.
const NAME_BYTES_MAX: usize = 200;

/// The file of passwords is for its owner only.
const FILE_MODE: u32 = 0o600;

/// The users that the API added, and the roles.
#[derive(Default)]
pub(super) struct Users {
    /// `None` keeps nothing over a restart.
    file: Option<PathBuf>,
    added: RwLock<Added>,
}

#[derive(Default, Clone)]
struct Added {
    /// Hashes of passwords by name.
    passwords: BTreeMap<String, String>,
    /// Roles by name of a user, also of those of the configuration.
    roles_of: BTreeMap<String, BTreeSet<String>>,
    roles: BTreeSet<String>,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    /// The password, or its hash.
    pub(super) password: String,
    pub(super) roles: Vec<String>,
    /// Whether the configuration defines the user, so that the API cannot change the password or delete the user.
    pub(super) is_configured: bool,
}

impl User {
    pub(super) fn is_admin(&self) -> bool {
        self.roles.iter().any(|role| role == ADMIN)
    }
}

/// Why a change was refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The name is taken, or not one that can be used; the reason.
    Invalid(String),
    /// There is no such user or role.
    Unknown,
    /// The configuration defines it.
    Configured,
    /// The file cannot be written; the reason.
    NotKept(String),
}

impl Users {
    /// Reads the file of a state folder; without one there are no users yet.
    pub(super) fn open(state: &Path) -> Result<Users, String> {
        let file = state.join("users.json");
        let named = |cause: &dyn std::fmt::Display| format!("`{}`: {cause}", file.display());
        let added = match std::fs::read(&file) {
            Ok(bytes) => parse(&bytes).ok_or_else(|| named(&"it is not the file of users of this server"))?,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Added::default(),
            Err(cause) => return Err(named(&cause)),
        };
        Ok(Users { file: Some(file), added: RwLock::new(added) })
    }

    /// A user by name.
    pub(super) fn find(&self, configured: &Management, name: &str) -> Option<User> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        let ours = configured.users.iter().find(|user| user.name == name);
        let (password, is_admin, is_configured) = match ours {
            Some(ManagementUser { password, is_admin, .. }) => (password.clone(), *is_admin, true),
            None => (added.passwords.get(name)?.clone(), false, false),
        };
        let mut roles: BTreeSet<String> = added.roles_of.get(name).cloned().unwrap_or_default();
        roles.extend(is_admin.then(|| ADMIN.to_owned()));
        roles.insert(EVERYONE.to_owned());
        Some(User { name: name.to_owned(), password, roles: roles.into_iter().collect(), is_configured })
    }

    /// The names of all users, sorted.
    pub(super) fn names(&self, configured: &Management) -> Vec<String> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        let names: BTreeSet<&String> =
            configured.users.iter().map(|user| &user.name).chain(added.passwords.keys()).collect();
        names.into_iter().cloned().collect()
    }

    /// The names of all roles, sorted.
    pub(super) fn roles(&self) -> Vec<String> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        let mut roles = added.roles.clone();
        roles.extend([ADMIN.to_owned(), EVERYONE.to_owned()]);
        roles.into_iter().collect()
    }

    /// Adds a user.
    pub(super) fn add(&self, configured: &Management, name: &str, hash: String, is_admin: bool) -> Result<(), Refused> {
        if self.find(configured, name).is_some() {
            return Err(Refused::Invalid(format!("User: {name} already exists.")));
        }
        check_name(name)?;
        self.change(|added| {
            added.passwords.insert(name.to_owned(), hash);
            if is_admin {
                added.roles_of.entry(name.to_owned()).or_default().insert(ADMIN.to_owned());
            }
            Ok(())
        })
    }

    /// Deletes a user that the API added.
    pub(super) fn delete(&self, configured: &Management, name: &str) -> Result<(), Refused> {
        let user = self.find(configured, name).ok_or(Refused::Unknown)?;
        if user.is_configured {
            return Err(Refused::Configured);
        }
        self.change(|added| {
            added.passwords.remove(name);
            added.roles_of.remove(name);
            Ok(())
        })
    }

    /// Changes the password of a user that the API added.
    pub(super) fn set_password(&self, configured: &Management, name: &str, hash: String) -> Result<(), Refused> {
        let user = self.find(configured, name).ok_or(Refused::Unknown)?;
        if user.is_configured {
            return Err(Refused::Configured);
        }
        self.change(|added| {
            added.passwords.insert(name.to_owned(), hash);
            Ok(())
        })
    }

    /// Adds a role.
    pub(super) fn add_role(&self, role: &str) -> Result<(), Refused> {
        if self.roles().iter().any(|known| known == role) {
            return Err(Refused::Invalid(format!("The role : {role} already exists")));
        }
        check_name(role)?;
        self.change(|added| {
            added.roles.insert(role.to_owned());
            Ok(())
        })
    }

    /// Deletes a role, and takes it from all users.
    pub(super) fn delete_role(&self, role: &str) -> Result<(), Refused> {
        if role == ADMIN || role == EVERYONE {
            return Err(Refused::Configured);
        }
        self.change(|added| {
            if !added.roles.remove(role) {
                return Err(Refused::Unknown);
            }
            added.roles_of.values_mut().for_each(|roles| roles.retain(|known| known != role));
            Ok(())
        })
    }

    /// Gives and takes roles of a user.
    pub(super) fn assign(
        &self,
        configured: &Management,
        name: &str,
        given: &[String],
        taken: &[String],
    ) -> Result<(), Refused> {
        self.find(configured, name).ok_or(Refused::Unknown)?;
        let known = self.roles();
        if let Some(role) = given.iter().chain(taken).find(|role| !known.contains(role)) {
            return Err(Refused::Invalid(format!("The role : {role} does not exist")));
        }
        self.change(|added| {
            let roles = added.roles_of.entry(name.to_owned()).or_default();
            roles.retain(|role| !taken.contains(role));
            roles.extend(given.iter().filter(|role| *role != EVERYONE).cloned());
            Ok(())
        })
    }

    /// Changes the users and keeps them, or does neither.
    fn change(&self, change: impl FnOnce(&mut Added) -> Result<(), Refused>) -> Result<(), Refused> {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = added.clone();
        change(&mut changed)?;
        if changed.passwords.len() + changed.roles.len() > ENTRIES_MAX {
            return Err(Refused::Invalid(format!("there are at most {ENTRIES_MAX} users and roles")));
        }
        if let Some(file) = &self.file {
            let folder = file.parent().unwrap_or(Path::new("."));
            let kept = std::fs::create_dir_all(folder)
                .and_then(|()| crate::serve::registry::replace(file, written(&changed).as_bytes(), FILE_MODE));
            kept.map_err(|cause| Refused::NotKept(format!("`{}`: {cause}", file.display())))?;
        }
        *added = changed;
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), Refused> {
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '/' | ':' | '"' | '\\');
    // A role of another user store has its name before a `/`.
    let is_good = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.trim() == name
        && name.split('/').count() <= 2
        && name.chars().all(|letter| is_plain(letter) || letter == '/');
    if is_good { Ok(()) } else { Err(Refused::Invalid(format!("`{name}` cannot be the name of a user or role"))) }
}

fn written(added: &Added) -> String {
    let users: Map<String, Value> =
        added.passwords.iter().map(|(name, hash)| (name.clone(), json!({ "password": hash }))).collect();
    json!({ "users": users, "rolesOf": added.roles_of, "roles": added.roles }).to_string()
}

fn parse(bytes: &[u8]) -> Option<Added> {
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let texts = |value: &Value| -> Option<BTreeSet<String>> {
        value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
    };
    let password = |(name, user): (&String, &Value)| Some((name.clone(), user["password"].as_str()?.to_owned()));
    Some(Added {
        passwords: value["users"].as_object()?.iter().map(password).collect::<Option<_>>()?,
        roles_of: value["rolesOf"]
            .as_object()?
            .iter()
            .map(|(name, roles)| Some((name.clone(), texts(roles)?)))
            .collect::<Option<_>>()?,
        roles: texts(&value["roles"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_roles_are_kept() {
        let state = std::env::temp_dir().join(format!("penstock-users-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&state);
        let configured = Management {
            users: vec![ManagementUser { name: "admin".into(), password: "secret".into(), is_admin: true }],
            ..Management::default()
        };
        let users = Users::open(&state).unwrap();
        users.add(&configured, "anna", "hash".to_owned(), false).unwrap();
        assert!(matches!(users.add(&configured, "admin", String::new(), false), Err(Refused::Invalid(_))));
        assert!(matches!(users.add(&configured, "a\nb", String::new(), false), Err(Refused::Invalid(_))));
        users.add_role("tester").unwrap();
        users.assign(&configured, "anna", &["tester".to_owned()], &[]).unwrap();
        assert!(matches!(users.assign(&configured, "anna", &["other".to_owned()], &[]), Err(Refused::Invalid(_))));
        let users = Users::open(&state).unwrap();
        let anna = users.find(&configured, "anna").unwrap();
        assert_eq!((anna.roles.as_slice(), anna.is_admin()), (&[EVERYONE.to_owned(), "tester".to_owned()][..], false));
        assert_eq!(users.names(&configured), ["admin", "anna"]);
        assert_eq!(users.delete(&configured, "admin"), Err(Refused::Configured));
        users.delete_role("tester").unwrap();
        assert_eq!(users.delete_role("tester"), Err(Refused::Unknown));
        users.delete(&configured, "anna").unwrap();
        assert_eq!(users.find(&configured, "anna"), None);
        std::fs::write(state.join("users.json"), "{}").unwrap();
        assert!(Users::open(&state).is_err());
        std::fs::remove_dir_all(&state).unwrap();
    }
}
