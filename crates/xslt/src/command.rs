//! The command `penstock xslt STYLESHEET [SOURCE] [-p name=value]… [-o FILE]`, and the resolver it uses.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use penstock_xml::{Document, ParseOptions};
use penstock_xpath::{DynamicContext, NoHost, Sequence, Session, StaticContext, Version, XPath, XPathError};

use crate::{CompileOptions, Resolver, Resource, Stylesheet, TransformOptions};

/// How to call it, for `--help` and for mistakes.
pub const USAGE: &str = "usage: penstock xslt STYLESHEET [SOURCE] [-p name=value]… [-o FILE]";

/// What the command line said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arguments {
    /// The stylesheet's file.
    pub stylesheet: PathBuf,
    /// The source's file; standard input when there is none.
    pub source: Option<PathBuf>,
    /// Parameters: name and value.
    pub params: Vec<(String, String)>,
    /// Parameters whose values are XPath expressions: name and expression.
    pub typed_params: Vec<(String, String)>,
    /// The named template to begin with, as `name` or `{namespace}name`.
    pub initial_template: Option<String>,
    /// The mode to begin in.
    pub initial_mode: Option<String>,
    /// Where the result goes; standard output when nowhere else.
    pub output: Option<PathBuf>,
}

/// The exit statuses of the command line's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Done = 0,
    /// The stylesheet or the source is wrong.
    Input = 1,
    /// The command line is wrong.
    Usage = 2,
    /// A file is missing or cannot be written.
    Environment = 3,
}

/// Reads the arguments after `xslt`.
///
/// # Errors
/// A sentence about the first mistake.
pub fn parse_arguments(arguments: impl IntoIterator<Item = String>) -> Result<Arguments, String> {
    let mut parsed = Arguments::default();
    let mut files = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let mut value = |name: &str| arguments.next().ok_or_else(|| format!("`{name}` needs a value"));
        match &argument[..] {
            "-p" | "--param" | "--param-expr" => {
                let pair = value(&argument)?;
                let (name, text) = pair.split_once('=').ok_or_else(|| format!("`{pair}` is not `name=value`"))?;
                let params = if argument == "--param-expr" { &mut parsed.typed_params } else { &mut parsed.params };
                params.push((name.to_owned(), text.to_owned()));
            }
            "--initial-template" => parsed.initial_template = Some(value(&argument)?),
            "--initial-mode" => parsed.initial_mode = Some(value(&argument)?),
            "-o" | "--output" => parsed.output = Some(value(&argument)?.into()),
            other if other.starts_with('-') && other.len() > 1 => return Err(format!("unknown option `{other}`")),
            _ => files.push(PathBuf::from(argument)),
        }
    }
    let mut files = files.into_iter();
    parsed.stylesheet = files.next().ok_or("the stylesheet is missing")?;
    parsed.source = files.next().filter(|file| file.as_os_str() != "-");
    match files.next() {
        Some(extra) => Err(format!("one source only, `{}` is one too many", extra.display())),
        None => Ok(parsed),
    }
}

/// Carries the command out. Messages and errors go to `errors`, one a line.
pub fn run(arguments: &Arguments, errors: &mut dyn Write) -> Status {
    match transform(arguments, errors) {
        Ok(()) => Status::Done,
        Err((status, message)) => {
            // A closed standard error is ignored.
            let _ = errors.write_all(message.as_bytes());
            status
        }
    }
}

fn transform(arguments: &Arguments, errors: &mut dyn Write) -> Result<(), (Status, String)> {
    let environment =
        |what: &Path, error: std::io::Error| (Status::Environment, format!("error: {}: {error}\n", what.display()));
    let source = std::fs::read(&arguments.stylesheet).map_err(|error| environment(&arguments.stylesheet, error))?;
    let uri = arguments.stylesheet.to_string_lossy().into_owned();
    let options = CompileOptions { base_uri: &uri, resolver: &FileResolver, entities: Some(Arc::new(FileResolver)) };
    let (stylesheet, warnings) = Stylesheet::compile(source, &options).map_err(|list| {
        let mut text = String::new();
        for error in list {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "error: {error}");
        }
        (Status::Input, text)
    })?;
    for warning in warnings {
        let _ = writeln!(errors, "warning: {warning}");
    }
    let (input, name) = match &arguments.source {
        // A named template needs no source.
        None if arguments.initial_template.is_some() => (NO_SOURCE.to_vec(), PathBuf::from("no source")),
        Some(file) => (std::fs::read(file).map_err(|error| environment(file, error))?, file.clone()),
        None => {
            let mut input = Vec::new();
            std::io::stdin().read_to_end(&mut input).map_err(|error| environment(Path::new("-"), error))?;
            (input, PathBuf::from("standard input"))
        }
    };
    let parse = ParseOptions {
        base_uri: Some(name.to_string_lossy().into_owned().into()),
        strip_space: stylesheet.strip_space(),
        resolver: Some(Arc::new(FileResolver)),
        ..ParseOptions::default()
    };
    let document = Document::parse(input, &parse)
        .map_err(|error| (Status::Input, format!("error: {}:{error}\n", name.display())))?;
    let said = std::cell::RefCell::new(String::new());
    let messages = |text: &str| {
        let _ = writeln!(said.borrow_mut(), "{text}");
    };
    // Result documents are written beside the result, or in the current folder.
    let folder = arguments.output.as_deref().and_then(Path::parent).map(Path::to_owned).unwrap_or_default();
    let documents = |href: &str, content: &[u8]| write_document(&folder, href, content);
    let mut options = TransformOptions {
        resolver: &FileResolver,
        messages: &messages,
        documents: Some(&documents),
        ..Default::default()
    };
    for (name, value) in &arguments.params {
        options.string_param(name.clone(), value);
    }
    for (name, expression) in &arguments.typed_params {
        let value = evaluate(expression)
            .map_err(|error| (Status::Usage, format!("error: the parameter `{name}`: {}\n", error.message())))?;
        options.params.push((name.clone(), value));
    }
    options.initial_template = arguments.initial_template.as_deref();
    options.initial_mode = arguments.initial_mode.as_deref();
    let mut out = Vec::new();
    let result = stylesheet.transform(&Arc::new(document), Document::ROOT, &options, &mut out);
    let _ = errors.write_all(said.borrow().as_bytes());
    result.map_err(|error| (Status::Input, format!("error: {error}\n")))?;
    match &arguments.output {
        Some(file) => std::fs::write(file, &out).map_err(|error| environment(file, error)),
        None => std::io::stdout().write_all(&out).map_err(|error| environment(Path::new("standard output"), error)),
    }
}

/// Writes a result document to a file; folders that are missing are made.
fn write_document(folder: &Path, href: &str, content: &[u8]) -> Result<(), String> {
    let path = href.strip_prefix("file://").unwrap_or(href);
    if path.contains("://") {
        return Err(format!("`{href}` is not a file"));
    }
    let file = folder.join(decode(path));
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let made = parent.map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(&file, content)).map_err(|error| format!("{}: {error}", file.display()))
}

/// What stands in for the source where there is none.
const NO_SOURCE: &[u8] = b"<no-source/>";

/// The value of an expression that needs no document, such as `xs:date('2026-01-31')` or `1 to 3`.
fn evaluate(expression: &str) -> Result<Sequence, XPathError> {
    let compiled = XPath::compile(expression, &StaticContext::new().version(Version::Two))?;
    let session = Session::new();
    compiled.evaluate(&DynamicContext::new(&session, &NoHost))
}

/// Resolves references to files, relative to the file that makes them.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileResolver;

impl FileResolver {
    fn path(reference: &str, base: &str) -> PathBuf {
        let plain = |uri: &str| decode(uri.strip_prefix("file://").unwrap_or(uri));
        let reference = plain(reference);
        Path::new(&plain(base)).parent().map_or_else(|| PathBuf::from(&reference), |folder| folder.join(&reference))
    }

    fn read(reference: &str, base: &str) -> Result<Resource, String> {
        let path = FileResolver::path(reference, base);
        // An empty reference is the base itself.
        let path = if reference.is_empty() { PathBuf::from(base) } else { path };
        match std::fs::read(&path) {
            Ok(content) => {
                Ok(Resource { uri: normal(&path).to_string_lossy().into_owned(), content: Bytes::from(content) })
            }
            Err(error) => Err(format!("`{}` cannot be read: {error}", path.display())),
        }
    }
}

/// Percent escapes, which stylesheets use for blanks.
fn decode(uri: &str) -> String {
    let mut bytes = Vec::with_capacity(uri.len());
    let mut rest = uri.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match hex.filter(|_| *first == b'%').and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A path without `.` and without `x/..`, so that one file has one name.
fn normal(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

impl Resolver for FileResolver {
    fn resolve(&self, reference: &str, base: &str) -> Result<Resource, String> {
        FileResolver::read(reference, base)
    }
}

impl penstock_xml::Resolver for FileResolver {
    fn resolve(&self, _public: Option<&str>, system: &str, base: Option<&str>) -> Result<Option<Bytes>, String> {
        // Only what lies beside the document is read, and what cannot be read is left out.
        if system.contains("://") {
            return Ok(None);
        }
        Ok(FileResolver::read(system, base.unwrap_or_default()).ok().map(|resource| resource.content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        parse_arguments(line.split(' ').filter(|word| !word.is_empty()).map(str::to_owned))
    }

    #[test]
    fn arguments() {
        let parsed = parse("a.xsl b.xml -p x=1 -p y=a=b -o out.xml").unwrap();
        assert_eq!(parsed.stylesheet, PathBuf::from("a.xsl"));
        assert_eq!(parsed.source, Some(PathBuf::from("b.xml")));
        assert_eq!(parsed.params, [("x".into(), "1".into()), ("y".into(), "a=b".into())]);
        assert_eq!(parsed.output, Some(PathBuf::from("out.xml")));
        assert!(parse("").is_err());
        assert!(parse("a b c").is_err());
        assert!(parse("a -q").is_err());
        assert!(parse("a -p x").is_err());
    }

    #[test]
    fn names_of_files() {
        assert_eq!(FileResolver::path("b%20c.xsl", "dir/a.xsl"), PathBuf::from("dir/b c.xsl"));
        assert_eq!(normal(Path::new("a/./b/../c")), PathBuf::from("a/c"));
        assert_eq!(normal(Path::new("../a")), PathBuf::from("../a"));
    }
}
