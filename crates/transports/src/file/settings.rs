//! The parameters of a poller, `transport.vfs.…`.

use std::sync::Arc;
use std::time::Duration;

use fancy_regex::Regex;
use penstock_compile::{Compiler, Element, Parameters};

use super::location::{Location, SystemAddress};
use super::lock::Locking;

/// What happens to a file after its flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Delete,
    Keep,
    Move(Box<MoveTarget>),
}

/// Where files are moved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MoveTarget {
    pub(super) folder: Location,
    /// `MoveTimestampFormat`: before the name.
    pub(super) timestamp: Option<String>,
    /// `SubFolderTimestampFormat`: a folder below.
    pub(super) sub_folder: Option<String>,
}

/// `FileSortAttribute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortBy {
    Name,
    Size,
    Modified,
}

/// What is polled and how.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) location: Location,
    pub(super) content_type: Option<Arc<str>>,
    pub(super) pattern: Option<Arc<Regex>>,
    /// A proxy service reads a folder only with a pattern, and keeps processed files with `NONE`.
    pub(super) is_proxy: bool,
    pub(super) after_process: Action,
    pub(super) after_failure: Action,
    /// `MoveAfterFailedMove`.
    pub(super) after_failed_move: Option<Location>,
    pub(super) locking: Option<Locking>,
    /// `FileProcessCount`: files of one poll.
    pub(super) files_max: usize,
    /// `FileProcessInterval`: between two files.
    pub(super) file_interval: Duration,
    pub(super) sort_by: SortBy,
    pub(super) ascending: bool,
    /// `FileSizeLimit`.
    pub(super) bytes_max: Option<u64>,
    pub(super) age_min: Duration,
    pub(super) age_max: Option<Duration>,
    /// `CheckSizeInterval`: a file whose size changes in this time waits.
    pub(super) check_size: Option<Duration>,
    /// `CheckSizeIgnoreEmpty`: empty files wait.
    pub(super) ignores_empty: bool,
    /// `waitTimeBeforeRead`.
    pub(super) wait_before_read: Duration,
    /// `ReplyFileURI`.
    pub(super) reply: Option<String>,
    /// `ReplyFileName`.
    pub(super) reply_name: Option<Arc<str>>,
    /// Files at once.
    pub(super) concurrency: usize,
}

/// Files at once of an endpoint with `sequential="false"`.
const CONCURRENCY: usize = 20;

/// Parameters of connections, which may also stand in the query of an address.
const CONNECTION_OPTIONS: [&str; 4] = [
    "transport.vfs.SFTPIdentities",
    "transport.vfs.SFTPIdentityPassPhrase",
    "transport.vfs.SFTPKnownHosts",
    "transport.vfs.SFTPUserDirIsRoot",
];

/// Parameters that have a meaning in Micro Integrator and none here.
pub(super) const IGNORED: &[&str] = &[
    "transport.vfs.ActionAfterErrors",
    "transport.vfs.MoveAfterErrors",
    "transport.vfs.MaxRetryCount",
    "transport.vfs.ReconnectTimeout",
    "transport.vfs.CreateFolder",
    "transport.vfs.Streaming",
    "transport.vfs.Build",
    "transport.vfs.DistributedLock",
    "transport.vfs.DistributedTimeout",
    "transport.vfs.FailedRecordsFileName",
    "transport.vfs.FailedRecordsFileDestination",
    "transport.vfs.FailedRecordNextRetryDuration",
    "transport.vfs.MoveFailedRecordTimestampFormat",
    "transport.vfs.UpdateLastModified",
    "transport.vfs.ClusterAware",
    "transport.vfs.FileNotFoundCheck",
    "transport.vfs.SubFolderTimestampFormat",
    "transport.vfs.SFTPIdentities",
    "transport.vfs.SFTPIdentityPassPhrase",
    "transport.vfs.SFTPKnownHosts",
    "transport.vfs.SFTPUserDirIsRoot",
];

impl Settings {
    /// Reads them; `None` after an error.
    pub(super) fn compile(
        parameters: &Parameters,
        el: &Element<'_>,
        is_proxy: bool,
        sequential: bool,
        cx: &mut Compiler<'_>,
    ) -> Option<Settings> {
        let name = |short: &str| format!("transport.vfs.{short}");
        let get = |short: &str| parameters.get(&name(short)).map(str::to_owned);
        let location = location("FileURI", parameters, el, cx)?;
        let location = match location {
            Some(location) => location,
            None => {
                cx.error(el.place(), format!("<{}> needs the parameter `transport.vfs.FileURI`", el.name()));
                return None;
            }
        };
        let pattern = match get("FileNamePattern") {
            None => None,
            Some(text) => match Regex::new(&format!("^(?:{text})$")) {
                Ok(regex) => Some(Arc::new(regex)),
                Err(error) => {
                    let at = parameters.place(&name("FileNamePattern"), el);
                    cx.error(at, format!("`{text}` is not a regular expression: {error}"));
                    return None;
                }
            },
        };
        let errors = cx.errors_so_far();
        let after_process = action("Process", is_proxy, parameters, el, cx)?;
        let after_failure = action("Failure", true, parameters, el, cx)?;
        let seconds = |short: &str, cx: &mut Compiler<'_>| parameters.number::<u64>(&name(short), el, cx);
        let millis = |short: &str, cx: &mut Compiler<'_>| {
            parameters.number::<u64>(&name(short), el, cx).map(Duration::from_millis)
        };
        let files_max = parameters.number::<i64>(&name("FileProcessCount"), el, cx);
        let bytes_max = parameters.number::<i64>(&name("FileSizeLimit"), el, cx);
        let sort_by = match get("FileSortAttribute").unwrap_or_default().to_ascii_lowercase().as_str() {
            "" | "none" | "name" => SortBy::Name,
            "size" => SortBy::Size,
            "lastmodifiedtimestamp" => SortBy::Modified,
            other => {
                let at = parameters.place(&name("FileSortAttribute"), el);
                cx.warn(
                    at,
                    format!("`{other}` is not `Name`, `Size` or `Lastmodifiedtimestamp`; files are sorted by name"),
                );
                SortBy::Name
            }
        };
        let settings = Settings {
            location,
            content_type: parameters.text(&name("ContentType")),
            pattern,
            is_proxy,
            after_process,
            after_failure,
            after_failed_move: self::location("MoveAfterFailedMove", parameters, el, cx)?,
            locking: locking(parameters, el, cx),
            files_max: files_max
                .and_then(|count| usize::try_from(count).ok())
                .filter(|count| *count > 0)
                .unwrap_or(usize::MAX),
            file_interval: millis("FileProcessInterval", cx).unwrap_or_default(),
            sort_by,
            ascending: parameters.flag(&name("FileSortAscending"), true),
            bytes_max: bytes_max.and_then(|bytes| u64::try_from(bytes).ok()),
            age_min: Duration::from_secs(seconds("MinimumAge", cx).unwrap_or_default()),
            age_max: seconds("MaximumAge", cx).map(Duration::from_secs),
            check_size: millis("CheckSizeInterval", cx).filter(|interval| !interval.is_zero()),
            ignores_empty: parameters.flag(&name("CheckSizeIgnoreEmpty"), false),
            wait_before_read: millis("waitTimeBeforeRead", cx).unwrap_or_default(),
            reply: get("ReplyFileURI"),
            reply_name: parameters.text(&name("ReplyFileName")),
            concurrency: if sequential { 1 } else { CONCURRENCY },
        };
        (cx.errors_so_far() == errors).then_some(settings)
    }
}

/// The address in a parameter; `None` after an error.
fn location(short: &str, parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Option<Location>> {
    let name = format!("transport.vfs.{short}");
    let Some(text) = parameters.get(&name) else { return Some(None) };
    match Location::parse(text) {
        Ok(mut location) => {
            if let SystemAddress::Remote(remote) = &mut location.system {
                let given =
                    CONNECTION_OPTIONS.iter().filter_map(|name| Some(((*name).to_owned(), parameters.get(name)?)));
                // The query of the address comes first.
                let given = given.map(|(name, value)| (name, value.to_owned()));
                remote.options = given.chain(std::mem::take(&mut remote.options)).collect();
            }
            Some(Some(location))
        }
        Err(why) => {
            cx.error(parameters.place(&name, el), format!("`{name}`: {why}"));
            None
        }
    }
}

/// `ActionAfter…`: `MOVE`, `NONE` where it may be kept; every other word deletes, as in Micro Integrator.
fn action(
    stage: &str,
    may_keep: bool,
    parameters: &Parameters,
    el: &Element<'_>,
    cx: &mut Compiler<'_>,
) -> Option<Action> {
    let name = format!("transport.vfs.ActionAfter{stage}");
    let word = parameters.get(&name).unwrap_or("DELETE").to_ascii_uppercase();
    let folder = location(&format!("MoveAfter{stage}"), parameters, el, cx)?;
    let at = parameters.place(&name, el);
    let timestamp = parameters.get("transport.vfs.MoveTimestampFormat").map(str::to_owned);
    let sub_folder = parameters.get("transport.vfs.SubFolderTimestampFormat").map(str::to_owned);
    Some(match (word.as_str(), folder) {
        ("MOVE", Some(folder)) => Action::Move(Box::new(MoveTarget { folder, timestamp, sub_folder })),
        ("MOVE", None) => {
            cx.error(at, format!("`{name}` is `MOVE` and `transport.vfs.MoveAfter{stage}` is missing"));
            return None;
        }
        ("NONE", _) if may_keep => Action::Keep,
        ("DELETE", _) => Action::Delete,
        _ => {
            cx.warn(at, format!("`{name}` is `{word}`; files are deleted, as in Micro Integrator"));
            Action::Delete
        }
    })
}

fn locking(parameters: &Parameters, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Locking> {
    let releases = parameters.flag("transport.vfs.AutoLockRelease", false);
    let after = parameters.number("transport.vfs.AutoLockReleaseInterval", el, cx).map(Duration::from_millis);
    let locking = Locking {
        release_after: after.filter(|_| releases),
        same_host_only: parameters.flag("transport.vfs.LockReleaseSameNode", false),
    };
    let is_off = parameters.get("transport.vfs.Locking").is_some_and(|word| word.eq_ignore_ascii_case("disable"));
    (!is_off).then_some(locking)
}
