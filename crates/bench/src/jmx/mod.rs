//! Unmodified JMeter plans of the kind the published tests use: one thread group that sends one HTTP request over and
//! over. [`JmxPlan::read`] turns a plan into a load; what it does not know is an error that names the line.
mod assertion;
mod csv_data_set;
mod evaluate;
mod sampler;
mod tree;

use crate::error::Error;
use crate::load::expect::Expect;
use crate::load::{LoadSpec, Protocol};
use csv_data_set::CsvDataSet;
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
            "ResponseAssertion" => assertion::read(reading, element, &mut scope.expect)?,
            "CSVDataSet" => scope.csv = Some(csv_data_set::read(reading, element)?),
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
