//! Extractors and assertions.
use super::super::assertion::{Assertion, Comparison, Field, Match, ResponseAssertion, SizeOf};
use super::super::extract::{ExtractSource, Extractor, JsonExtraction, parse_path};
use super::super::patterns;
use super::super::text::Text;
use super::super::tree::Element;
use super::Reading;

// The bits of `Assertion.test_type`, as JMeter numbers them.
const MATCH: i64 = 1;
const CONTAINS: i64 = 2;
const NOT: i64 = 4;
const EQUALS: i64 = 8;
const SUBSTRING: i64 = 16;
const OR: i64 = 32;

impl Reading<'_> {
    pub(super) fn extractor(&self, element: &Element) -> Option<Extractor> {
        let extractor = match element.name.as_str() {
            "RegexExtractor" => {
                let pattern = self.text(element, "RegexExtractor.regex");
                self.check_pattern(element, &pattern);
                Extractor::Regex {
                    source: self.source(element, "RegexExtractor.useHeaders"),
                    name: self.text(element, "RegexExtractor.refname"),
                    pattern,
                    template: self.text(element, "RegexExtractor.template"),
                    matches: self.text(element, "RegexExtractor.match_number"),
                    default: self.default_value(element, "RegexExtractor"),
                }
            }
            "BoundaryExtractor" => Extractor::Boundary {
                source: self.source(element, "BoundaryExtractor.useHeaders"),
                name: self.text(element, "BoundaryExtractor.refname"),
                left: self.text(element, "BoundaryExtractor.lboundary"),
                right: self.text(element, "BoundaryExtractor.rboundary"),
                matches: self.text(element, "BoundaryExtractor.match_number"),
                default: self.default_value(element, "BoundaryExtractor"),
            },
            "JSONPostProcessor" => self.json_extractor(element),
            _ => return None,
        };
        let scope = self.setting(element, "Sample.scope");
        if !matches!(scope.as_str(), "" | "parent" | "all") {
            self.refuse(element, &format!("the scope `{scope}` is not supported"));
        }
        extractor.names().into_iter().for_each(|name| self.define(name));
        Some(extractor)
    }

    fn default_value(&self, element: &Element, prefix: &str) -> Option<Text> {
        let default = self.text(element, &format!("{prefix}.default"));
        let empty = self.flag(element, &format!("{prefix}.default_empty_value"));
        (empty || !default.is_empty()).then_some(default)
    }

    fn source(&self, element: &Element, property: &str) -> ExtractSource {
        match self.setting(element, property).as_str() {
            "" | "false" => ExtractSource::Body,
            "true" => ExtractSource::ResponseHeaders,
            "request_headers" => ExtractSource::RequestHeaders,
            "URL" => ExtractSource::Url,
            "code" => ExtractSource::Code,
            "message" => ExtractSource::Message,
            other => {
                self.refuse(element, &format!("extracting from `{other}` is not supported"));
                ExtractSource::Body
            }
        }
    }

    /// Compiles a pattern that holds no variable, to find mistakes before the run.
    fn check_pattern(&self, element: &Element, pattern: &Text) {
        if let Some(Err(why)) = pattern.constant().map(patterns::compile) {
            self.refuse(element, &why);
        }
    }

    fn check_path(&self, element: &Element, path: &Text) {
        if let Some(Err(why)) = path.constant().map(parse_path) {
            self.refuse(element, &why);
        }
    }

    fn json_extractor(&self, element: &Element) -> Extractor {
        let list = |name: &str| -> Vec<Text> {
            let text = element.property(name).map(|property| property.text.as_str()).unwrap_or_default();
            text.split(';').map(|part| self.compile(element, part.trim())).collect()
        };
        let names = list("JSONPostProcessor.referenceNames");
        let paths = list("JSONPostProcessor.jsonPathExprs");
        let (matches, defaults) = (list("JSONPostProcessor.match_numbers"), list("JSONPostProcessor.defaultValues"));
        if names.len() != paths.len() {
            self.refuse(element, "there must be as many JSONPath expressions as names");
        }
        paths.iter().for_each(|path| self.check_path(element, path));
        let concatenate = self.flag(element, "JSONPostProcessor.compute_concat");
        let extractions = names.into_iter().zip(paths).enumerate().map(|(index, (name, path))| JsonExtraction {
            name,
            path,
            matches: matches.get(index).cloned().unwrap_or_default(),
            default: defaults.get(index).cloned().unwrap_or_default(),
            concatenate,
        });
        Extractor::Json(extractions.collect())
    }

    pub(super) fn assertion(&self, element: &Element) -> Option<Assertion> {
        Some(match element.name.as_str() {
            "ResponseAssertion" => Assertion::Response(self.response_assertion(element)),
            "DurationAssertion" => Assertion::Duration(self.text(element, "DurationAssertion.duration")),
            "SizeAssertion" => self.size_assertion(element),
            "JSONPathAssertion" => {
                let path = self.text(element, "JSON_PATH");
                self.check_path(element, &path);
                let expected = self.text(element, "EXPECTED_VALUE");
                let regex = element.property("ISREGEX").is_none() || self.flag(element, "ISREGEX");
                if regex {
                    self.check_pattern(element, &expected);
                }
                Assertion::JsonPath {
                    path,
                    expected: self.flag(element, "JSONVALIDATION").then_some(expected),
                    regex,
                    expect_null: self.flag(element, "EXPECT_NULL"),
                    inverted: self.flag(element, "INVERT"),
                }
            }
            _ => return None,
        })
    }

    fn response_assertion(&self, element: &Element) -> ResponseAssertion {
        let field = match self.setting(element, "Assertion.test_field").as_str() {
            "" | "Assertion.response_data" => Field::Response(ExtractSource::Body),
            "Assertion.response_code" => Field::Response(ExtractSource::Code),
            "Assertion.response_message" => Field::Response(ExtractSource::Message),
            "Assertion.response_headers" => Field::Response(ExtractSource::ResponseHeaders),
            "Assertion.request_headers" => Field::Response(ExtractSource::RequestHeaders),
            "Assertion.request_data" => Field::RequestBody,
            // JMeter calls the address so.
            "Assertion.sample_label" => Field::Response(ExtractSource::Url),
            other => {
                self.refuse(element, &format!("an assertion on `{other}` is not supported"));
                Field::Response(ExtractSource::Body)
            }
        };
        let field = match self.setting(element, "Assertion.scope").as_str() {
            "" | "parent" | "all" => field,
            "variable" => Field::Variable(self.setting(element, "Scope.variable")),
            other => {
                self.refuse(element, &format!("the scope `{other}` is not supported"));
                field
            }
        };
        let kind = self.number(element, "Assertion.test_type", SUBSTRING);
        // JMeter's own files misspell the name of the list.
        let list = element.property("Asserion.test_strings").or_else(|| element.property("Assertion.test_strings"));
        let patterns = list.map(|list| list.children.as_slice()).unwrap_or_default();
        let patterns: Vec<Text> = patterns.iter().map(|pattern| self.compile(element, &pattern.text)).collect();
        let comparison = match kind {
            _ if kind & EQUALS != 0 => Match::Equal,
            _ if kind & SUBSTRING != 0 => Match::Substring,
            _ if kind & MATCH != 0 => Match::Whole,
            _ if kind & CONTAINS != 0 => Match::Found,
            other => {
                self.refuse(element, &format!("the assertion type {other} is not supported"));
                Match::Substring
            }
        };
        if matches!(comparison, Match::Whole | Match::Found) {
            patterns.iter().for_each(|pattern| self.check_pattern(element, pattern));
        }
        ResponseAssertion {
            field,
            patterns,
            kind: comparison,
            negated: kind & NOT != 0,
            any: kind & OR != 0,
            ignore_status: self.flag(element, "Assertion.assume_success"),
        }
    }

    fn size_assertion(&self, element: &Element) -> Assertion {
        let of = match self.setting(element, "Assertion.test_field").as_str() {
            "" | "SizeAssertion.response_network_size" => SizeOf::Response,
            "SizeAssertion.response_data" => SizeOf::Body,
            "SizeAssertion.response_headers" => SizeOf::Head,
            other => {
                self.refuse(element, &format!("the size of `{other}` is not supported"));
                SizeOf::Response
            }
        };
        let comparison = match self.number(element, "SizeAssertion.operator", 1) {
            1 => Comparison::Equal,
            2 => Comparison::NotEqual,
            3 => Comparison::Greater,
            4 => Comparison::Less,
            5 => Comparison::GreaterOrEqual,
            6 => Comparison::LessOrEqual,
            other => {
                self.refuse(element, &format!("the comparison {other} is not supported"));
                Comparison::Equal
            }
        };
        Assertion::Size { of, bytes: self.text(element, "SizeAssertion.size"), comparison }
    }
}
