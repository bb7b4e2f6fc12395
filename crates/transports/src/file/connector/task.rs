//! What an operation does, with its parameters read for a message.

use bytes::Bytes;
use fancy_regex::Regex;
use penstock_compile::connector::Arguments;
use penstock_engine::{Exchange, Fault};
use penstock_message::{Form, Shape};

use super::outcome::{Code, Failure};
use super::read::{Lines, Read};

/// The parameters of all operations.
pub(super) const PARAMETERS: &[&str] = &[
    "path",
    "filePath",
    "directoryPath",
    "sourcePath",
    "targetPath",
    "sourceDirectoryPath",
    "targetFilePath",
    "filePattern",
    "matchingPattern",
    "sourceFilePattern",
    "readMode",
    "writeMode",
    "startLineNum",
    "endLineNum",
    "lineNum",
    "contentType",
    "encoding",
    "enableLock",
    "contentOrExpression",
    "mimeType",
    "appendNewLine",
    "appendPosition",
    "includeParent",
    "overwrite",
    "renameTo",
    "createParentDirectories",
    "recursive",
    "responseFormat",
    "sortingAttribute",
    "sortingOrder",
    "subDirectoryMaxDepth",
    "includeResultTo",
    "resultPropertyName",
];

/// Parameters without effect, which are reported unless they have their default.
pub(super) const IGNORED: [&str; 16] = [
    "enableStreaming",
    "maxRetries",
    "retryDelay",
    "diskShareAccessMask",
    "updateLastModified",
    "compress",
    "charset",
    "fileFilterType",
    "includeFiles",
    "excludeFiles",
    "maxFileAge",
    "timeBetweenSizeCheck",
    "appendFileAttributes",
    "isSourceMounted",
    "isTargetMounted",
    "name",
];

/// Whether a parameter of [`IGNORED`] has the value that changes nothing. A file streams where it can without being asked to.
pub(super) fn is_default(name: &str, text: &str) -> bool {
    let text = text.trim();
    match name {
        "enableStreaming" | "updateLastModified" | "fileFilterType" | "name" => true,
        "diskShareAccessMask" => text.is_empty() || text == "MAXIMUM_ALLOWED",
        _ => matches!(text, "" | "0" | "false"),
    }
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteMode {
    Overwrite,
    /// Before a line from 1, or at the end.
    Append(Option<usize>),
    CreateNew,
}

/// A copy or a move.
pub(super) struct Transfer {
    pub(super) source: String,
    pub(super) target: String,
    pub(super) pattern: Option<Regex>,
    pub(super) includes_parent: bool,
    pub(super) overwrites: bool,
    pub(super) new_name: Option<String>,
    pub(super) creates_folders: bool,
}

/// How a listing is sorted and laid out.
pub(super) struct Listing {
    pub(super) path: String,
    pub(super) pattern: Option<Regex>,
    /// How many levels of folders are entered.
    pub(super) depth: usize,
    pub(super) is_flat: bool,
    pub(super) order: Order,
    pub(super) descends: bool,
}

/// What a listing is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Name,
    Size,
    Modified,
}

/// What is done.
pub(super) enum Task {
    Read(Read),
    Write { path: String, content: Bytes, mode: WriteMode, locks: bool },
    Copy(Transfer),
    Move(Transfer),
    Rename { path: String, name: String, overwrites: bool },
    Delete { path: String, pattern: Option<Regex> },
    List(Listing),
    Exists { path: String },
    CreateFolder { path: String },
    Merge { source: String, target: String, pattern: Option<Regex>, appends: bool },
}

/// Reads parameters for a message.
struct Reader<'r> {
    arguments: &'r Arguments,
    exchange: &'r mut Exchange,
}

/// A parameter that is wrong, or a fault of an expression.
enum Wrong {
    Failure(Failure),
    Fault(Fault),
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Wrong {
        Wrong::Fault(fault)
    }
}

fn invalid(text: impl Into<String>) -> Wrong {
    Wrong::Failure(Failure::new(Code::InvalidConfiguration, text))
}

impl Reader<'_> {
    fn text(&mut self, name: &str) -> Result<Option<String>, Wrong> {
        Ok(self.arguments.text(name, self.exchange)?)
    }

    fn required(&mut self, name: &str) -> Result<String, Wrong> {
        self.text(name)?.ok_or_else(|| invalid(format!("Parameter '{name}' is not provided")))
    }

    fn flag(&mut self, name: &str) -> Result<bool, Wrong> {
        Ok(self.arguments.flag(name, false, self.exchange)?)
    }

    fn number(&mut self, name: &str) -> Result<Option<usize>, Wrong> {
        let number = self.arguments.number(name, self.exchange)?;
        number.map_err(|text| invalid(format!("`{name}`: `{text}` is not a whole number")))
    }

    /// A pattern that a whole name must match.
    fn pattern(&mut self, name: &str) -> Result<Option<Regex>, Wrong> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let pattern = Regex::new(&format!("^(?:{text})$"));
        pattern.map(Some).map_err(|error| invalid(format!("`{name}`: {error}")))
    }

    fn one_of<T: Copy>(&mut self, name: &str, words: &[(&str, T)], default: T) -> Result<T, Wrong> {
        let Some(text) = self.text(name)? else { return Ok(default) };
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            invalid(format!("the `{name}` `{text}` is not one of {}", words.join(", ")))
        })
    }

    fn transfer(&mut self, pattern: &str) -> Result<Transfer, Wrong> {
        Ok(Transfer {
            source: self.required("sourcePath")?,
            target: self.required("targetPath")?,
            pattern: self.pattern(pattern)?,
            includes_parent: self.flag("includeParent")?,
            overwrites: self.flag("overwrite")?,
            new_name: self.text("renameTo")?,
            creates_folders: self.flag("createParentDirectories")?,
        })
    }

    fn listing(&mut self) -> Result<Listing, Wrong> {
        let depth = self.number("subDirectoryMaxDepth")?.unwrap_or(usize::MAX);
        let orders = [("Name", Order::Name), ("Size", Order::Size), ("LastModifiedTime", Order::Modified)];
        Ok(Listing {
            path: self.required("directoryPath")?,
            pattern: self.pattern("matchingPattern")?,
            depth: if self.flag("recursive")? { depth } else { 0 },
            is_flat: self.one_of("responseFormat", &[("Hierarchical", false), ("Flat", true)], false)?,
            order: self.one_of("sortingAttribute", &orders, Order::Name)?,
            descends: self.one_of("sortingOrder", &[("Ascending", false), ("Descending", true)], false)?,
        })
    }

    fn read_file(&mut self) -> Result<Read, Wrong> {
        let path = self.required("path")?;
        let pattern = self.pattern("filePattern")?;
        let mode = self.text("readMode")?.unwrap_or_else(|| "Complete File".to_owned());
        let first = self.number("startLineNum")?.filter(|line| *line > 0);
        let last = self.number("endLineNum")?.filter(|line| *line > 0);
        let one = self.number("lineNum")?.filter(|line| *line > 0);
        let needs = |name: &str| invalid(format!("Parameter '{name}' is required for the read mode `{mode}`"));
        let lines = match mode.trim().to_ascii_lowercase().as_str() {
            "complete file" => Lines::All,
            "metadata only" => Lines::None,
            "starting from line" => Lines::Between(first.ok_or_else(|| needs("startLineNum"))?, usize::MAX),
            "up to line" => Lines::Between(1, last.ok_or_else(|| needs("endLineNum"))?),
            "specific line" => one.map(|line| Lines::Between(line, line)).ok_or_else(|| needs("lineNum"))?,
            "between lines" => {
                let (first, last) =
                    (first.ok_or_else(|| needs("startLineNum"))?, last.ok_or_else(|| needs("endLineNum"))?);
                if last < first {
                    return Err(invalid("Parameter 'endLineNum' should be greater than 'startLineNum'"));
                }
                Lines::Between(first, last)
            }
            _ => return Err(invalid(format!("Unknown file read mode `{mode}`"))),
        };
        let content_type = self.text("contentType")?;
        let encoding = self.text("encoding")?;
        Ok(Read { path, pattern, lines, content_type, encoding, locks: self.flag("enableLock")? })
    }

    fn write(&mut self) -> Result<Task, Wrong> {
        let path = self.required("filePath")?;
        let position = self.number("appendPosition")?;
        let append = WriteMode::Append(position.filter(|line| *line > 0));
        let modes = [("Overwrite", WriteMode::Overwrite), ("Append", append), ("Create New", WriteMode::CreateNew)];
        let mode = self.one_of("writeMode", &modes, WriteMode::Overwrite)?;
        let mut content = match self.text("contentOrExpression")? {
            Some(text) => text.into_bytes(),
            None => self.body()?.to_vec(),
        };
        if self.flag("appendNewLine")? {
            content.push(b'\n');
        }
        Ok(Task::Write { path, content: content.into(), mode, locks: self.flag("enableLock")? })
    }

    /// The body as it would be sent, as `mimeType` when that is given.
    fn body(&mut self) -> Result<Bytes, Wrong> {
        if let Some(kind) = self.text("mimeType")?.filter(|kind| kind != "Automatic") {
            penstock_engine::payload::set_media_type(self.exchange, &kind);
        }
        let program = self.exchange.program().clone();
        let output = self.exchange.message.output(&program.conversion, Shape::Same).map_err(Fault::from)?;
        Ok(match output.form {
            Form::Bytes(bytes) => bytes,
            _ => Bytes::new(),
        })
    }
}

impl Task {
    /// The task of an operation.
    pub(super) fn read(
        operation: &str,
        arguments: &Arguments,
        exchange: &mut Exchange,
    ) -> Result<Result<Task, Failure>, Fault> {
        let mut reader = Reader { arguments, exchange };
        match Task::with(operation, &mut reader) {
            Ok(task) => Ok(Ok(task)),
            Err(Wrong::Failure(failure)) => Ok(Err(failure)),
            Err(Wrong::Fault(fault)) => Err(fault),
        }
    }

    fn with(operation: &str, reader: &mut Reader<'_>) -> Result<Task, Wrong> {
        Ok(match operation {
            "read" => Task::Read(reader.read_file()?),
            "write" => reader.write()?,
            "copy" => Task::Copy(reader.transfer("sourceFilePattern")?),
            "move" => Task::Move(reader.transfer("filePattern")?),
            "rename" => Task::Rename {
                path: reader.required("path")?,
                name: reader.required("renameTo")?,
                overwrites: reader.flag("overwrite")?,
            },
            "delete" => Task::Delete { path: reader.required("path")?, pattern: reader.pattern("matchingPattern")? },
            "listFiles" => Task::List(reader.listing()?),
            "checkExist" => Task::Exists { path: reader.required("path")? },
            "createDirectory" => Task::CreateFolder { path: reader.required("directoryPath")? },
            _ => Task::Merge {
                source: reader.required("sourceDirectoryPath")?,
                target: reader.required("targetFilePath")?,
                pattern: reader.pattern("filePattern")?,
                appends: reader.one_of("writeMode", &[("Overwrite", false), ("Append", true)], false)?,
            },
        })
    }
}
