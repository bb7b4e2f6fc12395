//! Files of objects: definitions, thumbnails, documents, templates of policies. Their paths are those of an API project.

use bytes::Bytes;
use rusqlite::OptionalExtension;

use super::Transaction;
use crate::problem::Problem;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) media_type: String,
    pub(crate) content: Bytes,
}

impl File {
    pub(crate) fn new(path: impl Into<String>, media_type: &str, content: impl Into<Bytes>) -> File {
        File { path: path.into(), media_type: media_type.to_owned(), content: content.into() }
    }
}

impl Transaction<'_> {
    /// Writes a file of an object.
    pub(crate) fn put_file(&self, organization: &str, owner: &str, file: &File) -> Result<(), Problem> {
        let mut statement = self.inner.prepare_cached(
            "INSERT INTO file (organization, owner, path, media_type, content) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (owner, path) DO UPDATE SET media_type = excluded.media_type, content = excluded.content",
        )?;
        statement.execute((organization, owner, &file.path, &file.media_type, file.content.as_ref()))?;
        self.touched.borrow_mut().note_files(owner);
        Ok(())
    }

    /// A file of an object.
    pub(crate) fn file(&self, owner: &str, path: &str) -> Result<Option<File>, Problem> {
        let mut statement =
            self.inner.prepare_cached("SELECT path, media_type, content FROM file WHERE owner = ?1 AND path = ?2")?;
        Ok(statement.query_row((owner, path), read).optional()?)
    }

    /// All files of an object whose paths begin with a text.
    pub(crate) fn files(&self, owner: &str, prefix: &str) -> Result<Vec<File>, Problem> {
        let mut statement = self.inner.prepare_cached(
            "SELECT path, media_type, content FROM file WHERE owner = ?1 AND substr(path, 1, ?3) = ?2 ORDER BY path",
        )?;
        let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
        let rows = statement.query_map((owner, prefix, length), read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Removes a file of an object.
    pub(crate) fn remove_file(&self, owner: &str, path: &str) -> Result<(), Problem> {
        self.inner.prepare_cached("DELETE FROM file WHERE owner = ?1 AND path = ?2")?.execute((owner, path))?;
        Ok(())
    }

    /// Removes all files of an object.
    pub(crate) fn remove_files(&self, owner: &str) -> Result<(), Problem> {
        self.inner.prepare_cached("DELETE FROM file WHERE owner = ?1")?.execute([owner])?;
        self.touched.borrow_mut().note_files(owner);
        Ok(())
    }

    /// Gives an object the files of another one, in place of its own.
    pub(crate) fn copy_files(&self, from: &str, to: &str) -> Result<(), Problem> {
        self.remove_files(to)?;
        let mut statement = self.inner.prepare_cached(
            "INSERT INTO file (organization, owner, path, media_type, content) \
             SELECT organization, ?2, path, media_type, content FROM file WHERE owner = ?1",
        )?;
        statement.execute((from, to))?;
        Ok(())
    }
}

fn read(row: &rusqlite::Row<'_>) -> Result<File, rusqlite::Error> {
    let content: Vec<u8> = row.get(2)?;
    Ok(File { path: row.get(0)?, media_type: row.get(1)?, content: content.into() })
}
