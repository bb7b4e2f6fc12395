//! HTTP requests.
use super::super::script::{BeforePass, Body, Parameter, Redirects, RequestParts, Sampler};
use super::super::text::Text;
use super::super::tree::Element;
use super::config::Level;
use super::{Reading, config, pairs};
use std::time::Duration;

/// Properties that change nothing here: how JMeter sends, or what it does with pages for people.
const WITHOUT_EFFECT: [&str; 8] = [
    "HTTPSampler.embedded_url_re",
    "HTTPSampler.embedded_url_exclude_re",
    "HTTPSampler.implementation",
    "HTTPSampler.concurrentPool",
    "HTTPSampler.concurrentDwn",
    "HTTPSampler.BROWSER_COMPATIBLE_MULTIPART",
    "HTTPSampler.ipSourceType",
    "TestPlan.comments",
];

const KNOWN: [&str; 15] = [
    "HTTPsampler.Files",
    "HTTPsampler.Arguments",
    "HTTPSampler.domain",
    "HTTPSampler.port",
    "HTTPSampler.protocol",
    "HTTPSampler.path",
    "HTTPSampler.method",
    "HTTPSampler.contentEncoding",
    "HTTPSampler.follow_redirects",
    "HTTPSampler.auto_redirects",
    "HTTPSampler.use_keepalive",
    "HTTPSampler.connect_timeout",
    "HTTPSampler.response_timeout",
    "HTTPSampler.postBodyRaw",
    "HTTPSampler.monitor",
];

pub(super) fn is_sampler(element: &Element) -> bool {
    matches!(element.name.as_str(), "HTTPSamplerProxy" | "HTTPSampler" | "HTTPSampler2")
}

impl Reading<'_> {
    /// A request, and what the elements below it do before each pass of its controller.
    pub(super) fn sampler(&self, element: &Element, below: &Element, above: &[Level]) -> (Sampler, Vec<BeforePass>) {
        self.check_properties(element);
        let mut own = Level::default();
        let mut before_pass = Vec::new();
        for (child, below) in pairs(below) {
            if !self.level_element(child, &mut own) && !config::acts_before_pass(child) && !self.ignored(child) {
                self.refuse(child, &format!("`{}` is not supported", child.name));
            }
            before_pass.extend(self.before_pass(child));
            below.into_iter().for_each(|below| self.refuse_children(below));
        }
        let levels: Vec<&Level> = above.iter().chain([&own]).collect();
        let name = self.compile(element, element.title());
        let label = self.label(element.title());
        let sampler = Sampler {
            name,
            label,
            request: self.request(element, &levels),
            before: levels.iter().flat_map(|level| level.before.clone()).collect(),
            timers: levels.iter().flat_map(|level| level.timers.clone()).collect(),
            extractors: levels.iter().flat_map(|level| level.extractors.clone()).collect(),
            assertions: levels.iter().flat_map(|level| level.assertions.clone()).collect(),
        };
        (sampler, before_pass)
    }

    /// Refuses properties that are not known.
    pub(super) fn check_properties(&self, element: &Element) {
        for property in &element.children {
            let name = property.attribute("name").unwrap_or_default();
            let idle = matches!(property.text.trim(), "" | "false") && property.children.is_empty();
            if !idle && !KNOWN.contains(&name) && !WITHOUT_EFFECT.contains(&name) {
                self.refuse(element, &format!("`{name}` is not supported"));
            }
        }
    }

    fn request(&self, element: &Element, levels: &[&Level]) -> RequestParts {
        // What stands closer to the request wins.
        let inner_first = || levels.iter().rev();
        let text = |name: &str| {
            let own = self.text(element, name);
            let inherited = || {
                let mut defaults = inner_first().flat_map(|level| &level.defaults);
                defaults.find_map(|defaults| defaults.texts.get(name).filter(|text| !text.is_empty()).cloned())
            };
            if own.is_empty() { inherited().unwrap_or_default() } else { own }
        };
        let setting = |name: &str| {
            let own = self.setting(element, name);
            let inherited = || {
                let mut defaults = inner_first().flat_map(|level| &level.defaults);
                defaults.find_map(|defaults| defaults.settings.get(name).filter(|text| !text.is_empty()).cloned())
            };
            if own.is_empty() { inherited().unwrap_or_default() } else { own }
        };
        let timeout = |name: &str| {
            let text = setting(name);
            let milliseconds = if text.is_empty() { Ok(0) } else { text.parse::<u64>() };
            let milliseconds = milliseconds.unwrap_or_else(|_| {
                self.refuse(element, &format!("`{text}` in `{name}` is not a whole number"));
                0
            });
            (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
        };
        let mut headers: Vec<(Text, Text)> = Vec::new();
        for (name, value) in inner_first().flat_map(|level| &level.headers) {
            let same = |other: &(Text, Text)| match (other.0.constant(), name.constant()) {
                (Some(other), Some(name)) => other.trim().eq_ignore_ascii_case(name.trim()),
                _ => false,
            };
            if !headers.iter().any(same) {
                headers.push((name.clone(), value.clone()));
            }
        }
        let (domain, path) = (text("HTTPSampler.domain"), text("HTTPSampler.path"));
        let absolute = path.constant().is_none_or(|path| path.trim_start().starts_with("http"));
        if domain.is_empty() && !absolute {
            self.refuse(element, "the request has no server name");
        }
        RequestParts {
            protocol: text("HTTPSampler.protocol"),
            domain,
            port: text("HTTPSampler.port"),
            path,
            method: self.text(element, "HTTPSampler.method"),
            headers,
            body: self.body(element, levels, &setting("HTTPSampler.contentEncoding")),
            keep_alive: self.flag(element, "HTTPSampler.use_keepalive"),
            redirects: if self.flag(element, "HTTPSampler.follow_redirects") {
                Redirects::All
            } else if self.flag(element, "HTTPSampler.auto_redirects") {
                Redirects::Reads
            } else {
                Redirects::None
            },
            connect_timeout: timeout("HTTPSampler.connect_timeout"),
            response_timeout: timeout("HTTPSampler.response_timeout"),
            cookies: levels.iter().find_map(|level| level.cookies.clone()),
            authorizations: levels.iter().find_map(|level| level.authorizations.clone()).unwrap_or_default(),
        }
    }

    fn body(&self, element: &Element, levels: &[&Level], encoding: &str) -> Body {
        let latin1 = match encoding.to_ascii_uppercase().as_str() {
            "" | "UTF-8" | "UTF8" | "US-ASCII" => false,
            "ISO-8859-1" => true,
            other => {
                self.refuse(element, &format!("the content encoding `{other}` is not supported"));
                false
            }
        };
        let files = element.property("HTTPsampler.Files");
        let files = files.map_or(&[][..], |files| files.items("HTTPFileArgs.files"));
        let arguments = element.property("HTTPsampler.Arguments");
        let arguments = arguments.map_or(&[][..], |arguments| arguments.items("Arguments.arguments"));
        match files {
            [] => {}
            [file] if self.text(file, "File.paramname").is_empty() && arguments.is_empty() => {
                let path = self.setting(file, "File.path");
                let media_type = self.text(file, "File.mimetype");
                return Body::File {
                    bytes: self.file(element, &path).unwrap_or_default().into(),
                    media_type: (!media_type.is_empty()).then_some(media_type),
                };
            }
            _ => {
                self.refuse(element, "files in a form are not supported, only a single file as the whole body is");
                return Body::None;
            }
        }
        let mut parameters: Vec<Parameter> = arguments.iter().map(|argument| self.parameter(argument)).collect();
        let nameless = !parameters.is_empty() && parameters.iter().all(|parameter| parameter.name.is_empty());
        let reads = matches!(self.setting(element, "HTTPSampler.method").as_str(), "" | "GET" | "HEAD" | "OPTIONS");
        if self.flag(element, "HTTPSampler.postBodyRaw") || (nameless && !reads) {
            return Body::Raw { texts: parameters.into_iter().map(|parameter| parameter.value).collect(), latin1 };
        }
        parameters.extend(levels.iter().rev().flat_map(|level| &level.defaults).flat_map(|one| one.parameters.clone()));
        if latin1 && !parameters.is_empty() {
            self.refuse(element, "parameters in the encoding `ISO-8859-1` are not supported");
        }
        if parameters.is_empty() { Body::None } else { Body::Parameters(parameters) }
    }

    pub(super) fn parameter(&self, argument: &Element) -> Parameter {
        Parameter {
            name: self.text(argument, "Argument.name"),
            value: self.text(argument, "Argument.value"),
            encode: self.flag(argument, "HTTPArgument.always_encode"),
            equals_sign: argument.property("HTTPArgument.use_equals").is_none()
                || self.flag(argument, "HTTPArgument.use_equals")
                || !self.text(argument, "Argument.value").is_empty(),
        }
    }
}
