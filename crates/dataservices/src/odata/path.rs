//! The path of a request: `/T`, `/T('a')`, `/T(a='1',b=2)/Column/$value`, `/T/$count`.

use super::Refusal;
use super::filter::quotation;

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// The list of tables.
    Root,
    /// `$metadata`.
    Metadata,
    /// `$batch`.
    Batch,
    /// A table.
    Set(String),
    /// `T/$count`.
    Count(String),
    /// `T/$ref`.
    References(String),
    /// `T(1)/$ref`.
    Reference(String, Vec<KeyPart>),
    /// A row, and a column of it.
    Entity(String, Vec<KeyPart>, Option<Property>),
}

/// What follows a column or a link in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Nothing.
    None,
    /// `/$value`.
    Value,
    /// `/$count`.
    Count,
    /// `/$ref`.
    Reference,
}

/// A part of a key; without a name when the key has one part.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// The column.
    pub name: Option<String>,
    /// The value.
    pub value: String,
}

/// A column of a row, or a link to other rows.
#[derive(Debug, PartialEq, Eq)]
pub struct Property {
    /// Its name.
    pub name: String,
    /// What follows it.
    pub tail: Tail,
}

/// Parts of a key. Keys of more columns do not occur.
const KEY_PARTS_MAX: usize = 64;

impl Target {
    /// Reads a path that is percent-decoded.
    pub fn parse(path: &str) -> Result<Target, Refusal> {
        let path = path.trim_start_matches('/');
        let name_end = path.find(['(', '/']).unwrap_or(path.len());
        let (name, rest) = path.split_at(name_end);
        match name {
            "" => return Ok(Target::Root),
            "$metadata" => return Ok(Target::Metadata),
            "$batch" => return Ok(Target::Batch),
            name if name.starts_with('$') => return Err(Refusal::unsupported(&format!("`{name}`"))),
            _ => {}
        }
        let name = name.to_owned();
        let Some(key) = rest.strip_prefix('(') else {
            return match rest.trim_end_matches('/') {
                "" => Ok(Target::Set(name)),
                "/$count" => Ok(Target::Count(name)),
                "/$ref" => Ok(Target::References(name)),
                other => Err(Refusal::unsupported(&format!("`{other}` after a table"))),
            };
        };
        let (key, rest) = key_of(key)?;
        let mut segments = rest.split('/').filter(|segment| !segment.is_empty());
        let property = match (segments.next(), segments.next(), segments.next()) {
            (None, ..) => None,
            (Some("$ref"), None, _) => return Ok(Target::Reference(name, key)),
            (Some(column), tail, None) if !column.starts_with('$') && !column.contains('(') => {
                let tail = match tail {
                    None => Tail::None,
                    Some("$value") => Tail::Value,
                    Some("$count") => Tail::Count,
                    Some("$ref") => Tail::Reference,
                    Some(_) => return Err(Refusal::unsupported(&format!("`{rest}` after a key"))),
                };
                Some(Property { name: column.to_owned(), tail })
            }
            _ => return Err(Refusal::unsupported(&format!("`{rest}` after a key"))),
        };
        Ok(Target::Entity(name, key, property))
    }
}

/// The parts of a key, and what follows the parenthesis.
fn key_of(text: &str) -> Result<(Vec<KeyPart>, &str), Refusal> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let name_end = rest.find(['=', '\'', ',', ')']).unwrap_or(rest.len());
        let name = match rest[name_end..].starts_with('=') {
            true => {
                let name = rest[..name_end].trim().to_owned();
                rest = &rest[name_end + 1..];
                Some(name)
            }
            false => None,
        };
        let (value, length) = match rest.starts_with('\'') {
            true => quotation(rest)?,
            false => {
                let length = rest.find([',', ')']).ok_or_else(|| Refusal::invalid("the key is not closed"))?;
                (rest[..length].trim().to_owned(), length)
            }
        };
        parts.push(KeyPart { name, value });
        rest = &rest[length..];
        if parts.len() > KEY_PARTS_MAX {
            return Err(Refusal::invalid(format!("a key has more than {KEY_PARTS_MAX} parts")));
        }
        match rest.chars().next() {
            Some(',') => rest = &rest[1..],
            Some(')') => return Ok((parts, &rest[1..])),
            _ => return Err(Refusal::invalid("the key is not closed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read() {
        let part = |name: Option<&str>, value: &str| KeyPart { name: name.map(str::to_owned), value: value.into() };
        for (path, expected) in [
            ("/", Target::Root),
            ("/$metadata", Target::Metadata),
            ("/T", Target::Set("T".into())),
            ("/T/$count", Target::Count("T".into())),
            ("/T(1)/$ref", Target::Reference("T".into(), vec![part(None, "1")])),
            ("/T('a''b')", Target::Entity("T".into(), vec![part(None, "a'b")], None)),
            ("/T(a='1',b=2)", Target::Entity("T".into(), vec![part(Some("a"), "1"), part(Some("b"), "2")], None)),
            (
                "/T(7)/N/$value",
                Target::Entity(
                    "T".into(),
                    vec![part(None, "7")],
                    Some(Property { name: "N".into(), tail: Tail::Value }),
                ),
            ),
        ] {
            assert_eq!(Target::parse(path).unwrap(), expected, "{path}");
        }
        for path in ["/$all", "/T(1", "/T('a", "/T(1)/N(2)", "/T/x", "/T(1)x/y/z", "/T(1)/N/$links"] {
            assert!(Target::parse(path).is_err(), "{path}");
        }
    }
}
