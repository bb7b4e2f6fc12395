//! The folder that deployed APIs are kept in: an archive each.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// An archive of the folder.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Where it is.
    pub file: PathBuf,
    /// What is in it.
    pub bytes: Bytes,
}

/// The folder of archives inside the state folder.
pub fn folder(state: &Path) -> PathBuf {
    state.join("apis")
}

/// All archives, sorted. A folder that is not there has none.
pub fn read(state: &Path) -> io::Result<Vec<Kept>> {
    let entries = match fs::read_dir(folder(state)) {
        Ok(entries) => entries,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(cause),
    };
    let mut kept = Vec::new();
    for entry in entries {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "zip") {
            kept.push(Kept { bytes: fs::read(&file)?.into(), file });
        }
    }
    kept.sort_by(|left, right| left.file.cmp(&right.file));
    Ok(kept)
}

/// Keeps an archive: whole or not at all, also when the machine stops in between.
pub(super) fn keep(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let unfinished = file.with_extension("unfinished");
    let mut written = File::create(&unfinished)?;
    written.write_all(bytes)?;
    written.sync_all()?;
    fs::rename(&unfinished, file)?;
    File::open(folder)?.sync_all()
}

/// Removes an archive.
pub(super) fn remove(file: &Path) -> io::Result<()> {
    fs::remove_file(file)?;
    File::open(file.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// The name of an API's archive: nothing a user chose is a path.
pub(super) fn file_name(name: &str, version: &str, hosts: &[std::sync::Arc<str>]) -> String {
    let plain = |text: &str| -> String {
        let escape = |letter: char| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => letter.to_string(),
            '.' => ".".to_owned(),
            other => format!("%{:x}", u32::from(other)),
        };
        text.chars().map(escape).collect()
    };
    let hosts: String = hosts.iter().map(|host| format!("@{}", plain(host))).collect();
    format!("{}-{}{hosts}.zip", plain(name), plain(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_paths() {
        assert_eq!(file_name("Pet Store", "1.0.0", &[]), "Pet%20Store-1.0.0.zip");
        assert_eq!(file_name("../x/y", "1", &["us.example.com".into()]), "..%2fx%2fy-1@us.example.com.zip");
    }

    #[test]
    fn archives_are_kept_and_removed() {
        let state = std::env::temp_dir().join(format!("penstock-store-{}", std::process::id()));
        let _ = fs::remove_dir_all(&state);
        assert!(read(&state).unwrap().is_empty());
        let file = folder(&state).join("b.zip");
        keep(&file, b"one").unwrap();
        keep(&file, b"two").unwrap();
        keep(&folder(&state).join("a.zip"), b"").unwrap();
        let names: Vec<_> = read(&state).unwrap().into_iter().map(|kept| (kept.file, kept.bytes)).collect();
        assert_eq!(names[1], (file.clone(), Bytes::from("two")));
        remove(&file).unwrap();
        assert_eq!(read(&state).unwrap().len(), 1);
        fs::remove_dir_all(&state).unwrap();
    }
}
