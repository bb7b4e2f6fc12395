//! Files of API projects, which are read one project at a time and only when they changed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use penstock_compile::FileSource;

use super::{FILE_BYTES_MAX, sniff};

/// What a file begins with says what it is in nearly all cases.
const HEAD_BYTES: u64 = 64 << 10;

/// Whether files describe APIs, as far as that was looked up.
#[derive(Debug, Clone, Default)]
pub struct KnownFiles(Arc<Mutex<Answers>>);

/// Answers with the stamps of the files they are about.
type Answers = HashMap<(PathBuf, Question), (u64, bool)>;

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// Whether it is a definition or a descriptor.
    Api,
    /// Whether the file of a descriptor's name is one.
    Descriptor,
    /// Whether a definition or descriptor was written for a gateway.
    ForGateway,
}

impl KnownFiles {
    /// The answer for a file; `false` for one that cannot be read or is too large.
    pub(super) fn ask(&self, path: &Path, question: Question) -> bool {
        let Some(stamp) = stamp(path) else { return false };
        let key = (path.to_owned(), question);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, answer)) = known.get(&key)
            && *of == stamp
        {
            return *answer;
        }
        let answer = look(path, question).unwrap_or(false);
        known.insert(key, (stamp, answer));
        answer
    }
}

fn look(path: &Path, question: Question) -> std::io::Result<bool> {
    let answer = |bytes: &[u8]| match question {
        Question::Api => sniff::is_api(bytes),
        Question::Descriptor => sniff::is_api_descriptor(bytes),
        Question::ForGateway => sniff::is_for_gateway(bytes),
    };
    let mut file = std::fs::File::open(path)?;
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD_BYTES).read_to_end(&mut bytes)?;
    if answer(&bytes) || (bytes.len() as u64) < HEAD_BYTES {
        return Ok(answer(&bytes));
    }
    file.read_to_end(&mut bytes)?;
    Ok(answer(&bytes))
}

/// What changes when a file changes.
fn stamp(path: &Path) -> Option<u64> {
    let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.is_file())?;
    let mut hasher = DefaultHasher::new();
    (metadata.mtime(), metadata.mtime_nsec(), metadata.len(), metadata.ino()).hash(&mut hasher);
    Some(hasher.finish())
}

/// The files of a project folder, or a definition and those it may refer to.
pub(super) struct FolderFiles {
    /// The project's folder; that of the definition.
    folder: PathBuf,
    /// Files by their paths inside the project.
    files: Vec<(String, PathBuf)>,
}

impl FolderFiles {
    pub(super) fn of_project(folder: &Path, files: Vec<(String, PathBuf)>) -> FolderFiles {
        FolderFiles { folder: folder.to_owned(), files }
    }

    pub(super) fn of_definition(path: &Path) -> FolderFiles {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        FolderFiles { folder: folder.to_owned(), files: vec![(String::new(), path.to_owned())] }
    }

    /// Where a file is; `None` when it is not below the folder, also by way of links.
    fn path(&self, inside: &str) -> Option<PathBuf> {
        if let Some((_, path)) = self.files.iter().find(|(known, _)| known == inside) {
            return Some(path.clone());
        }
        let path = self.folder.join(inside);
        let (real, folder) = (std::fs::canonicalize(&path).ok()?, std::fs::canonicalize(&self.folder).ok()?);
        (real.starts_with(folder) && real.is_file()).then_some(path)
    }
}

impl FileSource for FolderFiles {
    fn paths(&self) -> Vec<String> {
        self.files.iter().map(|(inside, _)| inside.clone()).collect()
    }

    fn read(&self, path: &str) -> Option<Result<(Arc<str>, Bytes), String>> {
        let path = self.path(path)?;
        let read = std::fs::File::open(&path).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        Some(match read {
            Ok(bytes) if bytes.len() as u64 > FILE_BYTES_MAX => {
                Err(format!("larger than {} MiB, the limit for one file", FILE_BYTES_MAX >> 20))
            }
            Ok(bytes) => Ok((path.display().to_string().into(), bytes.into())),
            Err(cause) => Err(format!("cannot be read: {cause}")),
        })
    }

    fn stamp(&self, path: &str) -> Option<u64> {
        stamp(&self.path(path)?)
    }
}
