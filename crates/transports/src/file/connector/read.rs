//! Reading a file: all of it, some lines, or only what is known about it.

use std::time::UNIX_EPOCH;

use fancy_regex::Regex;
use penstock_engine::clock;
use penstock_message::{Body, Form};
use serde_json::{Map, Value as Json};

use super::files::Files;
use super::outcome::{Code, Done, Failure};
use crate::file::system::{Entry, join};

/// The parameters of `read`.
pub(super) struct Read {
    pub(super) path: String,
    /// Which file of a folder.
    pub(super) pattern: Option<Regex>,
    pub(super) lines: Lines,
    pub(super) content_type: Option<String>,
    pub(super) encoding: Option<String>,
    pub(super) locks: bool,
}

/// Which lines are read, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    All,
    None,
    Between(usize, usize),
}

impl Files {
    pub(super) async fn read(&self, read: Read, keeps_stream: bool, limit_bytes: usize) -> Result<Done, Failure> {
        let path = self.path(&read.path)?;
        let mut entry = self.existing(&path).await?;
        // The path that the flow sees begins in the folder of the connection.
        let mut shown = read.path.clone();
        if entry.is_folder {
            entry = self.first_of(&entry.path, read.pattern.as_ref()).await?;
            shown = join(&shown, &entry.name);
        }
        let lock = if read.locks { Some(self.lock(&entry.path).await?) } else { None };
        let outcome = self.content(&read, &entry, &shown, keeps_stream, limit_bytes).await;
        if let Some(lock) = lock {
            lock.release(self.system().await?).await?;
        }
        outcome
    }

    async fn content(
        &self,
        read: &Read,
        entry: &Entry,
        shown: &str,
        keeps_stream: bool,
        limit_bytes: usize,
    ) -> Result<Done, Failure> {
        let attributes = self.attributes(entry, shown);
        if read.lines == Lines::None {
            let attributes = attributes.into_iter();
            let Done::Report(report) = Done::report([]) else { return Ok(Done::report([])) };
            return Ok(Done::Report(report.into_iter().chain(attributes).collect()));
        }
        let content_type = content_type(read, &entry.name);
        let gone = || Failure::new(Code::IllegalPath, format!("File or folder not found: {}", entry.path));
        let mut body = self.system().await?.read(&entry.path).await?.ok_or_else(gone)?;
        // What is locked is read before the lock is released.
        if !keeps_stream || read.locks || read.lines != Lines::All {
            whole(&mut body, limit_bytes).await?;
        }
        if let Lines::Between(first, last) = read.lines {
            body = lines_of(&body, first, last);
        }
        Ok(Done::Content { body, content_type, attributes })
    }

    /// The first file of a folder whose name matches.
    async fn first_of(&self, folder: &str, pattern: Option<&Regex>) -> Result<Entry, Failure> {
        let mut entries = self.entries(folder).await?;
        entries.retain(|entry| !entry.is_folder && super::files::matches(pattern, &entry.name));
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries.into_iter().next().ok_or_else(|| {
            let which = if pattern.is_some() { "that matches the pattern " } else { "" };
            Failure::new(Code::Operation, format!("There is no file {which}in the folder {folder}"))
        })
    }

    fn attributes(&self, entry: &Entry, shown: &str) -> Map<String, Json> {
        let modified = entry.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        let texts = [
            ("FILE_LAST_MODIFIED_TIME", clock::formatted(modified, "MM/dd/yyyy HH:mm:ss")),
            ("FILE_IS_DIR", entry.is_folder.to_string()),
            ("FILE_PATH", shown.to_owned()),
            ("FILE_URL", format!("{}{}", self.address(), entry.path)),
            ("FILE_NAME", entry.name.clone()),
            ("FILE_NAME_WITHOUT_EXTENSION", entry.name.split('.').next().unwrap_or_default().to_owned()),
            ("FILE_SIZE", entry.size.to_string()),
        ];
        texts.into_iter().map(|(name, text)| (name.to_owned(), Json::String(text))).collect()
    }
}

/// Reads the whole body.
pub(super) async fn whole(body: &mut Body, limit_bytes: usize) -> Result<(), Failure> {
    let pulled = std::future::poll_fn(|cx| body.poll_pull(cx, usize::MAX, limit_bytes)).await;
    pulled.map_err(|error| Failure::new(Code::Operation, format!("the file cannot be read: {error}")))
}

/// The lines from one to another, without the end of the last.
fn lines_of(body: &Body, first: usize, last: usize) -> Body {
    let Form::Bytes(bytes) = body.form() else { return Body::empty() };
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut lines: Vec<&[u8]> = lines.skip(first - 1).take(last.saturating_sub(first).saturating_add(1)).collect();
    // What follows the end of the last line is no line.
    if bytes.ends_with(b"\n") && lines.last().is_some_and(|line| line.is_empty()) {
        let total = bytes.iter().filter(|byte| **byte == b'\n').count();
        if first - 1 + lines.len() > total {
            lines.pop();
        }
    }
    Body::bytes(lines.join(&b'\n'))
}

/// The type that a file is read as: what the parameter says, then what the ending says.
fn content_type(read: &Read, name: &str) -> String {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    let kind = read.content_type.clone().unwrap_or_else(|| {
        match ending.as_str() {
            "xml" => "application/xml",
            "json" => "application/json",
            "csv" => "text/csv",
            "txt" => "text/plain",
            "html" | "htm" => "text/html",
            _ => "application/octet-stream",
        }
        .to_owned()
    });
    let is_text = penstock_message::MediaType::parse(&kind).has_charset() && !kind.contains("charset");
    match read.encoding.as_deref().filter(|encoding| is_text && !encoding.eq_ignore_ascii_case("UTF-8")) {
        Some(encoding) => format!("{kind}; charset={encoding}"),
        None => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        for (text, first, last, expected) in [
            ("a\nb\nc\n", 1, 2, "a\nb"),
            ("a\r\nb\r\nc", 2, usize::MAX, "b\nc"),
            ("a\nb\n", 2, usize::MAX, "b"),
            ("a\n\n", 1, usize::MAX, "a\n"),
            ("a\nb", 2, 2, "b"),
            ("a\nb", 3, 9, ""),
            ("", 1, 1, ""),
        ] {
            let body = lines_of(&Body::bytes(text), first, last);
            let found = match body.form() {
                Form::Bytes(bytes) => bytes.to_vec(),
                _ => Vec::new(),
            };
            assert_eq!(found, expected.as_bytes(), "{text:?} {first} {last}");
        }
    }
}
