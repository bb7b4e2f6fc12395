//! Unmodified JMeter plans of the kind the published tests use: one thread group that sends one HTTP request over and
//! over. [`JmxPlan::read`] turns a plan into a load; what it does not know is an error that names the line.
mod evaluate;
mod sampler;
mod tree;

use crate::error::Error;
use crate::load::expect::{Expect, Field, TextRule};
use crate::load::{LoadSpec, Protocol};
pub use evaluate::Properties;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tree::Element;

/// A plan turned into a load.
#[derive(Debug)]
pub struct JmxPlan {
    /// Name of the sampler, the label in JTL files.
    pub label: String,
    /// Name of the thread group.
    pub group: String,
    /// The load; where its samples are written is left to the caller.
    pub load: LoadSpec,
}

/// What was found on the way down to the sampler.
#[derive(Default)]
struct Scope {
    headers: Vec<(String, String)>,
    expect: Expect,
    csv: Option<CsvDataSet>,
    group: Option<Group>,
    samplers: Vec<sampler::Sampler>,
}

struct CsvDataSet {
    file: PathBuf,
    names: Vec<String>,
    delimiter: char,
    ignore_first_line: bool,
}

struct Group {
    name: String,
    users: usize,
    ramp_up: Duration,
    duration: Duration,
}

/// Everything a plan is read with.
pub(crate) struct Reading<'a> {
    file: &'a str,
    directory: PathBuf,
    properties: &'a Properties,
}

impl Reading<'_> {
    fn wrong(&self, element: &Element, why: &str) -> Error {
        Error::Input(format!("{}:{}: {why}", self.file, element.line))
    }

    /// The evaluated text of a property; empty if it is not there.
    fn text(&self, element: &Element, name: &str) -> Result<String, Error> {
        let Some(property) = element.property(name) else { return Ok(String::new()) };
        self.evaluated(property, &property.text)
    }

    fn evaluated(&self, element: &Element, text: &str) -> Result<String, Error> {
        self.properties.evaluate(text.trim()).map_err(|why| self.wrong(element, &why))
    }

    fn flag(&self, element: &Element, name: &str) -> Result<bool, Error> {
        Ok(self.text(element, name)? == "true")
    }

    fn number(&self, element: &Element, name: &str, default: u64) -> Result<u64, Error> {
        let text = self.text(element, name)?;
        if text.is_empty() {
            return Ok(default);
        }
        let at = element.property(name).unwrap_or(element);
        text.parse().map_err(|_| self.wrong(at, &format!("`{text}` in `{name}` is not a whole number")))
    }

    /// A file as the plan names it: below the working directory, or below the plan's own.
    fn path(&self, name: &str) -> PathBuf {
        let path = PathBuf::from(name);
        if path.is_absolute() || path.exists() { path } else { self.directory.join(path) }
    }
}

impl JmxPlan {
    /// Reads a plan with the values of `-Jname=value`.
    pub fn read(path: &Path, properties: &Properties, threads: usize, stop: Arc<AtomicBool>) -> Result<JmxPlan, Error> {
        let text = std::fs::read_to_string(path).map_err(|error| Error::file(path, &error))?;
        let file = path.display().to_string();
        let root = Element::parse(&file, &text)?;
        let directory = path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
        let reading = Reading { file: &file, directory, properties };
        if root.name != "jmeterTestPlan" {
            return Err(reading.wrong(&root, &format!("`{}` is not a JMeter plan", root.name)));
        }
        let mut scope = Scope::default();
        for tree in &root.children {
            walk(&reading, tree, &mut scope)?;
        }
        finish(&reading, &root, scope, threads, stop)
    }
}

/// JMeter writes an element and, right after it, a `hashTree` with what belongs to it.
fn walk(reading: &Reading<'_>, tree: &Element, scope: &mut Scope) -> Result<(), Error> {
    let mut children = tree.children.iter().peekable();
    while let Some(element) = children.next() {
        let below = children.next_if(|next| next.name == "hashTree");
        if element.attribute("enabled") == Some("false") {
            continue;
        }
        match element.name.as_str() {
            "TestPlan" => check_test_plan(reading, element)?,
            // The work bench of old versions is a scratch pad that never runs.
            "WorkBench" => continue,
            "ThreadGroup" => {
                if scope.group.is_some() {
                    return Err(reading.wrong(element, "a plan with several thread groups is not supported"));
                }
                scope.group = Some(thread_group(reading, element)?);
            }
            "HeaderManager" => scope.headers.extend(headers(reading, element)?),
            "HTTPSamplerProxy" => scope.samplers.push(sampler::read(reading, element)?),
            "ResponseAssertion" => assertion(reading, element, &mut scope.expect)?,
            "CSVDataSet" => scope.csv = Some(csv_data_set(reading, element)?),
            other => {
                let name = element.attribute("testname").unwrap_or(other);
                let known = "thread group, HTTP request, HTTP header manager, CSV data set and response assertion are";
                return Err(reading.wrong(element, &format!("`{other}` (`{name}`) is not supported; {known}")));
            }
        }
        if let Some(below) = below {
            walk(reading, below, scope)?;
        }
    }
    Ok(())
}

fn check_test_plan(reading: &Reading<'_>, element: &Element) -> Result<(), Error> {
    let variables = element.property("TestPlan.user_defined_variables");
    let arguments = variables.and_then(|variables| variables.property("Arguments.arguments"));
    match arguments.and_then(|arguments| arguments.children.first()) {
        Some(first) => {
            Err(reading.wrong(first, "user defined variables are not supported; use properties, `${__P(name)}`"))
        }
        None => Ok(()),
    }
}

fn thread_group(reading: &Reading<'_>, element: &Element) -> Result<Group, Error> {
    let on_error = reading.text(element, "ThreadGroup.on_sample_error")?;
    if !matches!(on_error.as_str(), "" | "continue" | "startnextloop") {
        return Err(
            reading.wrong(element, &format!("`{on_error}` after an error is not supported, only `continue` is"))
        );
    }
    if !reading.flag(element, "ThreadGroup.scheduler")? {
        return Err(reading.wrong(element, "only a thread group that runs for a duration (scheduler) is supported"));
    }
    if reading.number(element, "ThreadGroup.delay", 0)? > 0 {
        return Err(reading.wrong(element, "a startup delay is not supported"));
    }
    if let Some(controller) = element.property("ThreadGroup.main_controller") {
        let forever = reading.flag(controller, "LoopController.continue_forever")?;
        let loops = reading.text(controller, "LoopController.loops")?;
        if !forever && !matches!(loops.as_str(), "-1" | "") {
            return Err(reading.wrong(controller, &format!("{loops} loops are not supported, only endless loops are")));
        }
    }
    let users = reading.number(element, "ThreadGroup.num_threads", 1)?;
    let duration = reading.number(element, "ThreadGroup.duration", 0)?;
    if users == 0 || duration == 0 {
        return Err(reading.wrong(element, "the thread group needs at least one user and one second"));
    }
    Ok(Group {
        name: element.attribute("testname").unwrap_or("Thread Group").to_owned(),
        users: usize::try_from(users).unwrap_or(usize::MAX),
        ramp_up: Duration::from_secs(reading.number(element, "ThreadGroup.ramp_time", 0)?),
        duration: Duration::from_secs(duration),
    })
}

fn headers(reading: &Reading<'_>, element: &Element) -> Result<Vec<(String, String)>, Error> {
    let list = element.property("HeaderManager.headers");
    let mut headers = Vec::new();
    for header in list.map(|list| list.children.as_slice()).unwrap_or_default() {
        let (name, value) = (reading.text(header, "Header.name")?, reading.text(header, "Header.value")?);
        crate::http::request::check_header(&name, &value).map_err(|error| reading.wrong(header, &error.to_string()))?;
        headers.push((name, value));
    }
    Ok(headers)
}

// The bits of `Assertion.test_type`, as JMeter numbers them.
const MATCH: u64 = 1;
const CONTAINS: u64 = 2;
const NOT: u64 = 4;
const EQUALS: u64 = 8;
const SUBSTRING: u64 = 16;
const OR: u64 = 32;

fn assertion(reading: &Reading<'_>, element: &Element, expect: &mut Expect) -> Result<(), Error> {
    let field = match reading.text(element, "Assertion.test_field")?.as_str() {
        "Assertion.response_data" => Field::Body,
        "Assertion.response_code" => Field::Status,
        other => return Err(reading.wrong(element, &format!("an assertion on `{other}` is not supported"))),
    };
    let kind = reading.number(element, "Assertion.test_type", SUBSTRING)?;
    // JMeter's own files misspell the name of the list.
    let list = element.property("Asserion.test_strings").or_else(|| element.property("Assertion.test_strings"));
    let patterns = list.map(|list| list.children.as_slice()).unwrap_or_default();
    if kind & OR != 0 && patterns.len() > 1 {
        return Err(reading.wrong(element, "an assertion with `Or` is not supported"));
    }
    if reading.flag(element, "Assertion.assume_success")? {
        expect.any_status = true;
    }
    for pattern in patterns {
        let text = reading.evaluated(pattern, &pattern.text)?;
        let expression = kind & (MATCH | CONTAINS) != 0;
        if expression && text.contains(['\\', '^', '$', '.', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}']) {
            return Err(
                reading.wrong(pattern, &format!("the regular expression `{text}` is not supported; use `Substring`"))
            );
        }
        let equals = kind & (EQUALS | MATCH) != 0;
        expect.rules.push(TextRule { field, pattern: text, equals, negated: kind & NOT != 0 });
    }
    Ok(())
}

fn csv_data_set(reading: &Reading<'_>, element: &Element) -> Result<CsvDataSet, Error> {
    if !reading.flag(element, "recycle")? || reading.flag(element, "stopThread")? {
        return Err(reading.wrong(element, "a CSV data set must start again at its end (recycle, not stop thread)"));
    }
    let share = reading.text(element, "shareMode")?;
    if !matches!(share.as_str(), "" | "shareMode.all" | "shareMode.group") {
        return Err(
            reading.wrong(element, &format!("the sharing mode `{share}` is not supported, only all threads is"))
        );
    }
    let delimiter = reading.text(element, "delimiter")?;
    let delimiter = match delimiter.as_str() {
        "\\t" => '\t',
        "" => ',',
        other => other.chars().next().unwrap_or(','),
    };
    let names = reading.text(element, "variableNames")?;
    Ok(CsvDataSet {
        file: reading.path(&reading.text(element, "filename")?),
        names: names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
        delimiter,
        ignore_first_line: reading.flag(element, "ignoreFirstLine")?,
    })
}

impl CsvDataSet {
    /// The values of one column.
    fn column(&self, variable: &str) -> Result<Vec<String>, Error> {
        let text = std::fs::read_to_string(&self.file).map_err(|error| Error::file(&self.file, &error))?;
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let names = if self.names.is_empty() {
            let header = lines.next().unwrap_or_default();
            header.split(self.delimiter).map(|name| name.trim().to_owned()).collect()
        } else {
            if self.ignore_first_line {
                lines.next();
            }
            self.names.clone()
        };
        let unknown =
            || Error::Input(format!("no variable `{variable}`; {} has {}", self.file.display(), names.join(", ")));
        let index = names.iter().position(|name| name == variable).ok_or_else(unknown)?;
        let value = |line: &str| line.split(self.delimiter).nth(index).unwrap_or_default().trim_matches('"').to_owned();
        let values: Vec<String> = lines.map(value).collect();
        if values.is_empty() {
            Err(Error::Input(format!("{}: the file is empty", self.file.display())))
        } else {
            Ok(values)
        }
    }
}

fn finish(
    reading: &Reading<'_>,
    root: &Element,
    scope: Scope,
    threads: usize,
    stop: Arc<AtomicBool>,
) -> Result<JmxPlan, Error> {
    let group = scope.group.ok_or_else(|| reading.wrong(root, "the plan has no thread group"))?;
    let mut samplers = scope.samplers.into_iter();
    let sampler = samplers.next().ok_or_else(|| reading.wrong(root, "the plan has no HTTP request"))?;
    if samplers.next().is_some() {
        return Err(reading.wrong(root, "a plan with several HTTP requests is not supported"));
    }
    let mut request = sampler.request;
    request.headers = scope.headers;
    if let Some(kind) = sampler.content_type
        && !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        request.headers.push(("Content-Type".to_owned(), kind));
    }
    let mut used = Vec::new();
    let texts = request.headers.iter_mut().map(|(_, value)| value).chain([&mut request.url.path]);
    for text in texts {
        *text = evaluate::variables_to_token(text, &mut used);
    }
    let tokens = match (used.as_slice(), &scope.csv) {
        ([], _) => Vec::new(),
        ([variable], Some(csv)) => csv.column(variable)?,
        ([variable], None) => {
            return Err(reading.wrong(root, &format!("no CSV data set gives the variable `{variable}` a value")));
        }
        (several, _) => {
            let why = format!("only one variable per request is supported, not {}", several.join(", "));
            return Err(reading.wrong(root, &why));
        }
    };
    let load = LoadSpec {
        request,
        expect: scope.expect,
        tokens: tokens.into(),
        users: group.users,
        ramp_up: group.ramp_up,
        duration: group.duration,
        warm_up: Duration::ZERO,
        requests_per_user_max: None,
        rate: None,
        protocol: Protocol::Http1,
        threads,
        connect_timeout: sampler.connect_timeout,
        response_timeout: sampler.response_timeout,
        jtl: None,
        stop,
    };
    Ok(JmxPlan { label: sampler.name, group: group.name, load })
}

#[cfg(test)]
mod tests;
