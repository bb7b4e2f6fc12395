//! Configuration elements: what holds for all requests at and below a level of the plan, and what sets variables.
use super::super::assertion::Assertion;
use super::super::cookies::{CookieSettings, InitialCookie};
use super::super::data::{CsvData, Sharing, split_line};
use super::super::extract::Extractor;
use super::super::script::{Authorization, BeforePass, CounterConfig, Parameter, Timer, UserParameters};
use super::super::text::Text;
use super::super::tree::Element;
use super::{Reading, pairs};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

/// What the elements of one level give to the requests at and below it.
#[derive(Debug, Clone, Default)]
pub(super) struct Level {
    pub headers: Vec<(Text, Text)>,
    pub defaults: Vec<Defaults>,
    pub cookies: Option<Arc<CookieSettings>>,
    pub authorizations: Option<Vec<Authorization>>,
    pub timers: Vec<Timer>,
    pub extractors: Vec<Extractor>,
    pub assertions: Vec<Assertion>,
    pub before: Vec<UserParameters>,
}

/// HTTP request defaults.
#[derive(Debug, Clone)]
pub(super) struct Defaults {
    pub texts: HashMap<&'static str, Text>,
    pub settings: HashMap<&'static str, String>,
    pub parameters: Vec<Parameter>,
}

/// What a request takes from the defaults where it has none of its own.
const DEFAULT_TEXTS: [&str; 4] = ["HTTPSampler.protocol", "HTTPSampler.domain", "HTTPSampler.port", "HTTPSampler.path"];
const DEFAULT_SETTINGS: [&str; 3] =
    ["HTTPSampler.connect_timeout", "HTTPSampler.response_timeout", "HTTPSampler.contentEncoding"];

/// A CSV file that several elements may share.
#[derive(Debug)]
pub(super) struct CsvFile {
    text: String,
    next: Arc<AtomicUsize>,
}

/// A larger file of values is a mistake; its records are kept in memory.
const CSV_BYTES_MAX: usize = 256 << 20;

/// Elements that belong to a level.
const LEVEL_ELEMENTS: [&str; 18] = [
    "HeaderManager",
    "ConfigTestElement",
    "CookieManager",
    "AuthManager",
    "ConstantTimer",
    "UniformRandomTimer",
    "GaussianRandomTimer",
    "PoissonRandomTimer",
    "ConstantThroughputTimer",
    "RegexExtractor",
    "BoundaryExtractor",
    "JSONPostProcessor",
    "ResponseAssertion",
    "DurationAssertion",
    "SizeAssertion",
    "JSONPathAssertion",
    "UserParameters",
    "ResultAction",
];

/// Whether an element belongs to a level.
pub(super) fn is_level_element(element: &Element) -> bool {
    LEVEL_ELEMENTS.contains(&element.name.as_str())
}

/// Whether an element acts before each pass of its controller.
pub(super) fn acts_before_pass(element: &Element) -> bool {
    matches!(element.name.as_str(), "CSVDataSet" | "CounterConfig" | "RandomVariableConfig" | "UserParameters")
}

impl Reading<'_> {
    /// User-defined variables, wherever they stand: JMeter reads all of them before the test begins.
    pub(super) fn define_variables(&self, tree: &Element) {
        for (element, below) in pairs(tree) {
            let arguments = match element.name.as_str() {
                "TestPlan" => {
                    let variables = element.property("TestPlan.user_defined_variables");
                    variables.map_or(&[][..], |variables| variables.items("Arguments.arguments"))
                }
                "Arguments" => element.items("Arguments.arguments"),
                _ => &[],
            };
            let value = |argument: &Element| {
                let text = self.text(argument, "Argument.value");
                let value = text.evaluate(&mut self.context.borrow_mut());
                (self.setting(argument, "Argument.name"), value)
            };
            // Variables of one element do not see each other.
            let values: Vec<(String, String)> = arguments.iter().map(value).collect();
            self.context.borrow_mut().variables.extend(values);
            below.into_iter().for_each(|below| self.define_variables(below));
        }
    }

    /// Adds an element to its level; `false` if it is of another kind.
    pub(super) fn level_element(&self, element: &Element, level: &mut Level) -> bool {
        match element.name.as_str() {
            "HeaderManager" => level.headers.extend(self.headers(element)),
            "ConfigTestElement" => level.defaults.extend(self.defaults(element)),
            "CookieManager" => level.cookies = Some(Arc::new(self.cookies(element))),
            "AuthManager" => level.authorizations = Some(self.authorizations(element)),
            "ResultAction" if self.number(element, "OnError.action", 0) != 0 => {
                self.refuse(element, "an action after an error is not supported, only to continue");
            }
            "UserParameters" if !self.flag(element, "UserParameters.per_iteration") => {
                level.before.push(self.user_parameters(element));
            }
            _ if !is_level_element(element) => return false,
            _ => {
                level.timers.extend(self.timer(element));
                level.extractors.extend(self.extractor(element));
                level.assertions.extend(self.assertion(element));
            }
        }
        true
    }

    /// What an element does before each pass of its controller.
    pub(super) fn before_pass(&self, element: &Element) -> Option<BeforePass> {
        Some(match element.name.as_str() {
            "CSVDataSet" => BeforePass::Csv(Arc::new(self.csv_data_set(element)?)),
            "CounterConfig" => BeforePass::Counter(self.counter(element)),
            "RandomVariableConfig" => self.random_variable(element),
            "UserParameters" if self.flag(element, "UserParameters.per_iteration") => {
                BeforePass::UserParameters(self.user_parameters(element))
            }
            _ => return None,
        })
    }

    fn headers(&self, element: &Element) -> Vec<(Text, Text)> {
        let pair = |header| (self.text(header, "Header.name"), self.text(header, "Header.value"));
        let headers = element.items("HeaderManager.headers").iter().map(pair);
        headers.filter(|(name, _)| name.constant().is_none_or(|name| !name.trim().is_empty())).collect()
    }

    fn defaults(&self, element: &Element) -> Option<Defaults> {
        let class = element.attribute("guiclass").unwrap_or_default();
        if class != "HttpDefaultsGui" {
            self.refuse(element, &format!("`{class}` is not supported, only HTTP request defaults are"));
            return None;
        }
        self.check_properties(element);
        if self.flag(element, "HTTPSampler.postBodyRaw") {
            self.refuse(element, "a body among the defaults is not supported");
        }
        let arguments = element.property("HTTPsampler.Arguments");
        let arguments = arguments.map_or(&[][..], |arguments| arguments.items("Arguments.arguments"));
        Some(Defaults {
            texts: DEFAULT_TEXTS.map(|name| (name, self.text(element, name))).into(),
            settings: DEFAULT_SETTINGS.map(|name| (name, self.setting(element, name))).into(),
            parameters: arguments.iter().map(|argument| self.parameter(argument)).collect(),
        })
    }

    fn cookies(&self, element: &Element) -> CookieSettings {
        let initial = |cookie: &Element| InitialCookie {
            name: self.compile(cookie, cookie.attribute("name").unwrap_or_default()),
            value: self.text(cookie, "Cookie.value"),
            domain: self.text(cookie, "Cookie.domain"),
            path: self.text(cookie, "Cookie.path"),
            secure: self.flag(cookie, "Cookie.secure"),
        };
        CookieSettings {
            clear_each_iteration: self.flag(element, "CookieManager.clearEachIteration"),
            clear_with_user: self.flag(element, "CookieManager.controlledByThreadGroup"),
            initial: element.items("CookieManager.cookies").iter().map(initial).collect(),
        }
    }

    fn authorizations(&self, element: &Element) -> Vec<Authorization> {
        let read = |one: &Element| {
            let mechanism = self.setting(one, "Authorization.mechanism");
            if !matches!(mechanism.as_str(), "" | "BASIC" | "BASIC_DIGEST") {
                self.refuse(element, &format!("the mechanism `{mechanism}` is not supported, only `BASIC` is"));
            }
            if mechanism != "BASIC" {
                self.note(element, "credentials are sent with every request, without waiting for a challenge");
            }
            Authorization {
                prefix: self.text(one, "Authorization.url"),
                user: self.text(one, "Authorization.username"),
                password: self.text(one, "Authorization.password"),
            }
        };
        element.items("AuthManager.auth_list").iter().map(read).collect()
    }

    fn csv_data_set(&self, element: &Element) -> Option<CsvData> {
        let sharing = match self.setting(element, "shareMode").as_str() {
            "" | "shareMode.all" => Sharing::All,
            "shareMode.group" => Sharing::Group,
            "shareMode.thread" => Sharing::User,
            other => {
                self.refuse(element, &format!("the sharing mode `{other}` is not supported"));
                Sharing::All
            }
        };
        let name = self.setting(element, "filename");
        let file = self.csv_file(element, &name)?;
        let delimiter = match element.property("delimiter").map(|property| property.text.as_str()) {
            None | Some("") => ",".to_owned(),
            Some("\\t") => "\t".to_owned(),
            Some(other) => other.to_owned(),
        };
        let quoted = self.flag(element, "quotedData");
        let mut lines = file.text.lines();
        let names = self.setting(element, "variableNames");
        let names: Vec<String> = if names.is_empty() {
            let header = lines.next().unwrap_or_default();
            split_line(header, &delimiter, quoted).iter().map(|name| name.trim().to_owned()).collect()
        } else {
            if self.flag(element, "ignoreFirstLine") {
                lines.next();
            }
            names.split(',').map(|name| name.trim().to_owned()).collect()
        };
        names.iter().for_each(|name| self.define(name));
        let records: Vec<Vec<String>> = lines.map(|line| split_line(line, &delimiter, quoted)).collect();
        if records.is_empty() {
            self.refuse(element, &format!("`{name}` has no records"));
        }
        let recycle = element.property("recycle").is_none() || self.flag(element, "recycle");
        Some(CsvData {
            names,
            records,
            recycle,
            stop_at_end: self.flag(element, "stopThread"),
            sharing,
            next: file.next.clone(),
            next_of_group: Mutex::default(),
            state: self.state(),
        })
    }

    fn csv_file(&self, element: &Element, name: &str) -> Option<Rc<CsvFile>> {
        if let Some(file) = self.csv_files.borrow().get(name) {
            return Some(file.clone());
        }
        let bytes = self.file(element, name)?;
        if bytes.len() > CSV_BYTES_MAX {
            self.refuse(element, &format!("`{name}` has more than {} MiB", CSV_BYTES_MAX >> 20));
            return None;
        }
        let text = match self.setting(element, "fileEncoding").to_ascii_uppercase().as_str() {
            "" | "UTF-8" | "US-ASCII" => String::from_utf8(bytes).ok(),
            "ISO-8859-1" => Some(bytes.into_iter().map(char::from).collect()),
            other => {
                self.refuse(element, &format!("the encoding `{other}` is not supported"));
                return None;
            }
        };
        let Some(text) = text else {
            self.refuse(element, &format!("`{name}` is not UTF-8"));
            return None;
        };
        let file = Rc::new(CsvFile { text: text.trim_start_matches('\u{feff}').to_owned(), next: Arc::default() });
        self.csv_files.borrow_mut().insert(name.to_owned(), file.clone());
        Some(file)
    }

    fn counter(&self, element: &Element) -> CounterConfig {
        let name = self.setting(element, "CounterConfig.name");
        self.define(&name);
        if self.flag(element, "CounterConfig.reset_on_tg_iteration") {
            self.refuse(element, "a counter that starts again with each iteration is not supported");
        }
        let number = |name, default: i64| self.number(element, name, default);
        let start = number("CounterConfig.start", 0);
        let (end, step) = (number("CounterConfig.end", i64::MAX), number("CounterConfig.incr", 1));
        if step <= 0 || end < start {
            self.refuse(
                element,
                "a counter must have an increment of at least 1 and an end that is not before its start",
            );
        }
        let per_user = self.flag(element, "CounterConfig.per_user");
        CounterConfig {
            name,
            start,
            end: end.max(start),
            step: step.max(1),
            digits: self.digits(element, &self.setting(element, "CounterConfig.format")),
            state: self.state(),
            shared: (!per_user).then(Arc::default),
        }
    }

    /// Digits of a number format; only zeros are supported.
    fn digits(&self, element: &Element, format: &str) -> usize {
        /// No number has more digits.
        const DIGITS_MAX: usize = 20;
        if format.bytes().any(|byte| byte != b'0') || format.len() > DIGITS_MAX {
            self.refuse(element, &format!("the number format `{format}` is not supported, only zeros are"));
        }
        format.len().min(DIGITS_MAX)
    }

    fn random_variable(&self, element: &Element) -> BeforePass {
        let name = self.setting(element, "variableName");
        self.define(&name);
        if !self.setting(element, "randomSeed").is_empty() {
            self.note(element, "the seed is ignored; the numbers differ from run to run");
        }
        BeforePass::RandomVariable {
            name,
            least: self.text(element, "minimumValue"),
            greatest: self.text(element, "maximumValue"),
            digits: self.digits(element, &self.setting(element, "outputFormat")),
        }
    }

    fn user_parameters(&self, element: &Element) -> UserParameters {
        let texts = |list: &Element| list.children.iter().map(|item| self.compile(element, &item.text)).collect();
        let names = element.items("UserParameters.names").iter().map(|name| name.text.trim().to_owned());
        let names: Vec<String> = names.collect();
        names.iter().for_each(|name| self.define(name));
        UserParameters { names, values: element.items("UserParameters.thread_values").iter().map(texts).collect() }
    }
}
