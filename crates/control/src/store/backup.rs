//! Backup and restore of a state folder: the database and the keys. Without the keys the secrets of clients would be lost.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::{DATABASE_FILE, connect, schema};
use crate::identity::keys::is_key_file;

/// Writes a copy of a state folder, as it is at one moment, to a folder that is made. A server may run meanwhile.
pub fn backup(state: &Path, target: &Path) -> Result<(), String> {
    let database = state.join(DATABASE_FILE);
    if !database.exists() {
        return Err(format!("`{}` is not a state folder: it has no `{DATABASE_FILE}`", state.display()));
    }
    make_folder(target)?;
    let copy = target.join(DATABASE_FILE);
    let path = copy.to_str().ok_or("the path of a backup must be UTF-8")?;
    // Made before it is written, so that it is never readable for others.
    create(&copy, &[])?;
    let connection = connect(&database).map_err(|error| failed(&database, error))?;
    connection.execute("VACUUM INTO ?1", [path]).map_err(|error| failed(&copy, error))?;
    copy_keys(state, target)
}

/// Makes a state folder of a backup. The folder must not have a database.
pub fn restore(backup: &Path, state: &Path) -> Result<(), String> {
    let source = backup.join(DATABASE_FILE);
    if !source.exists() {
        return Err(format!("`{}` is not a backup: it has no `{DATABASE_FILE}`", backup.display()));
    }
    if state.join(DATABASE_FILE).exists() {
        return Err(format!("`{}` has a database; restore to another folder, or move it away", state.display()));
    }
    check(&source)?;
    if !state.exists() {
        make_folder(state)?;
    }
    copy_keys(backup, state)?;
    // Last: a folder with a database is complete.
    copy(&source, &state.join(DATABASE_FILE))
}

/// Whether a database is whole, and of a version that is known.
fn check(database: &Path) -> Result<(), String> {
    let connection = connect(database).map_err(|error| failed(database, error))?;
    let report: String = connection
        .query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))
        .map_err(|error| failed(database, error))?;
    if report != "ok" {
        return Err(format!("`{}` is damaged: {report}", database.display()));
    }
    schema::check_version(&connection).map(|_| ()).map_err(|error| failed(database, error))
}

fn copy_keys(from: &Path, to: &Path) -> Result<(), String> {
    for entry in std::fs::read_dir(from).map_err(|error| failed(from, error))? {
        let path = entry.map_err(|error| failed(from, error))?.path();
        if let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| is_key_file(name)) {
            copy(&path, &to.join(name))?;
        }
    }
    Ok(())
}

/// Copies a file: whole or not at all, and for its owner only.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let content = std::fs::read(from).map_err(|error| failed(from, error))?;
    let draft = PathBuf::from(format!("{}.unfinished", to.display()));
    create(&draft, &content)?;
    std::fs::rename(&draft, to).map_err(|error| failed(to, error))
}

fn create(file: &Path, content: &[u8]) -> Result<(), String> {
    let out = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file);
    out.and_then(|mut out| out.write_all(content).and_then(|()| out.sync_all())).map_err(|error| failed(file, error))
}

fn make_folder(folder: &Path) -> Result<(), String> {
    std::fs::DirBuilder::new().mode(0o700).create(folder).map_err(|error| failed(folder, error))
}

fn failed(path: &Path, error: impl std::fmt::Display) -> String {
    format!("`{}`: {error}", path.display())
}
