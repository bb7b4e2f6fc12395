//! `/logs`: the files that the server logs to.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde_json::json;

use super::super::call::{self, Call, Outcome, list, refuse};
use crate::config::AccessTarget;

/// The folder of log files of a home.
const OF_HOME: &str = "repository/logs";

/// A file is returned up to this size: its end, when it is larger.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// Files that are listed.
const FILES_MAX: usize = 1_000;

pub(crate) async fn read(call: &Call<'_>) -> Outcome {
    let files = files(call);
    if let Some(name) = call.parameter("file") {
        let Some(file) = files.into_iter().find(|file| file_name(file) == name) else {
            return refuse(404, format!("Could not find the requested file : {name}"));
        };
        let content = tokio::task::spawn_blocking(move || end_of(&file)).await;
        return match content {
            Ok(Ok(content)) => call::bytes("application/octet-stream", content),
            Ok(Err(cause)) => refuse(500, format!("the file cannot be read: {cause}")),
            Err(_) => refuse(500, "the file cannot be read"),
        };
    }
    let found = files.iter().filter(|file| call.finds(&file_name(file)));
    let items = found.map(|file| {
        let bytes = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        json!({ "FileName": file_name(file), "Size": size(bytes) })
    });
    list(call, items)
}

fn file_name(file: &Path) -> String {
    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The log, the access log, and the files in the folder of a home. No other file can be named.
fn files(call: &Call<'_>) -> Vec<PathBuf> {
    let settings = call.api.deployer.settings();
    let access = settings.access_log.as_ref().and_then(|target| match target {
        AccessTarget::File(file) => Some(file.clone()),
        AccessTarget::Stderr => None,
    });
    let mut files: Vec<PathBuf> = settings.log_file.iter().cloned().chain(access).collect();
    let folder = settings.management.home.as_ref().and_then(|home| std::fs::read_dir(home.join(OF_HOME)).ok());
    let in_home = folder.into_iter().flatten().flatten().take(FILES_MAX).map(|entry| entry.path());
    files.extend(in_home.filter(|file| file.is_file() && file.extension().is_none_or(|ending| ending != "lck")));
    files.sort();
    files.dedup();
    files
}

fn end_of(file: &Path) -> std::io::Result<Bytes> {
    let mut opened = std::fs::File::open(file)?;
    let bytes = opened.metadata()?.len();
    if bytes > FILE_BYTES_MAX {
        opened.seek(SeekFrom::Start(bytes - FILE_BYTES_MAX))?;
    }
    let mut content = Vec::new();
    opened.take(FILE_BYTES_MAX).read_to_end(&mut content)?;
    Ok(content.into())
}

/// A size as people read it: `12.5 KB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut amount, mut unit) = (bytes as f64 / 1024.0, 0);
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_written_for_people() {
        for (bytes, expected) in [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (1_572_864, "1.5 MB")] {
            assert_eq!(super::size(bytes), expected);
        }
    }
}
