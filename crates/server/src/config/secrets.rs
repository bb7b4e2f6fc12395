//! `[secrets]`: aliases, and where their values come from.

use std::io::Read;
use std::path::Path;

use super::Dialect;

/// A secret is a password or a key; a larger file is the wrong one.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// The value that an entry stands for: `env:NAME`, `file:PATH` relative to `folder`, or the text itself. Micro Integrator
/// writes a text itself in brackets, and what its cipher tool made without them.
pub(super) fn resolve(
    text: &str,
    dialect: Dialect,
    folder: &Path,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    if let Some(name) = text.strip_prefix("env:") {
        return lookup(name).ok_or_else(|| format!("the environment variable `{name}` is not set"));
    }
    if let Some(path) = text.strip_prefix("file:") {
        return read(&folder.join(path)).map_err(|why| format!("`{path}`: {why}"));
    }
    match dialect {
        Dialect::Penstock | Dialect::ChoreoConnect | Dialect::ApiPlatform => Ok(text.to_owned()),
        Dialect::MicroIntegrator => match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
            Some(plain) => Ok(plain.to_owned()),
            None => Err("is encrypted by Micro Integrator's cipher tool, which is not supported; write `[value]`, \
                         `env:NAME` or `file:PATH`"
                .to_owned()),
        },
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|cause| cause.to_string())?;
    file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|cause| cause.to_string())?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("larger than {} KiB, which no secret is", FILE_BYTES_MAX >> 10));
    }
    // Editors end a file with a line break; passwords do not end with one.
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_from_where_the_entry_says() {
        let folder = std::env::temp_dir().join(format!("penstock-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("word"), "from a file\n").unwrap();
        let lookup = |name: &str| (name == "WORD").then(|| "from the environment".to_owned());
        for (text, dialect, expected) in [
            ("plain", Dialect::Penstock, Some("plain")),
            ("env:WORD", Dialect::Penstock, Some("from the environment")),
            ("env:NONE", Dialect::Penstock, None),
            ("file:word", Dialect::MicroIntegrator, Some("from a file")),
            ("file:none", Dialect::Penstock, None),
            ("[plain]", Dialect::MicroIntegrator, Some("plain")),
            ("s3AtR1b==", Dialect::MicroIntegrator, None),
        ] {
            assert_eq!(resolve(text, dialect, &folder, &lookup).ok().as_deref(), expected, "{text}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
