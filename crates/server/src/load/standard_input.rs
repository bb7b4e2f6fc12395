//! Standard input in place of a file: `-`.

use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

use bytes::Bytes;
use penstock_compile::InputKind;

use super::{ARCHIVE_BYTES_MAX, Loader, sniff};

/// What messages call it.
pub const NAME: &str = "<stdin>";

/// What was read. A reload compiles the same bytes again: they can be read once.
static CONTENT: OnceLock<Bytes> = OnceLock::new();

/// Whether a path is standard input.
pub fn is_named(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// All of standard input.
pub fn read() -> io::Result<Bytes> {
    if let Some(content) = CONTENT.get() {
        return Ok(content.clone());
    }
    let mut bytes = Vec::new();
    io::stdin().lock().take(ARCHIVE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > ARCHIVE_BYTES_MAX {
        return Err(io::Error::other(format!("larger than {} MiB", ARCHIVE_BYTES_MAX >> 20)));
    }
    Ok(CONTENT.get_or_init(|| bytes.into()).clone())
}

/// The bytes of a file, or of standard input.
pub fn read_file(path: &Path) -> io::Result<Bytes> {
    if is_named(path) { read() } else { std::fs::read(path).map(Bytes::from) }
}

impl Loader {
    /// An artifact, an API definition or an application, by what it begins with.
    pub(super) fn standard_input(&mut self) -> io::Result<()> {
        let bytes = read()?;
        if bytes.starts_with(b"PK\x03\x04") {
            self.archive(NAME.to_owned(), bytes, 0);
        } else if penstock_xml::root_name(&bytes).is_some() {
            self.artifact(NAME, bytes);
        } else if sniff::is_api(&bytes) {
            self.input(NAME, bytes, InputKind::Api { project: NAME.into(), path: String::new() });
        } else {
            self.error(NAME, "neither an artifact, an API definition nor a Carbon application (.car)");
        }
        Ok(())
    }
}
