//! The standard functions, by table: name, number of arguments, implementation.
//!
//! An implementation has the type of its result, so that a caller who wants a string, a number or a truth gets it
//! without a sequence in between.

mod aggregate;
mod dates;
pub mod format_date;
pub mod format_number;
mod general;
mod maths;
mod nodes;
mod qnames;
mod regexes;
mod sequences;
pub(crate) mod signature;
pub mod strings;
mod uris;

use std::borrow::Cow;
use std::fmt;

use crate::error::Result;
use crate::eval::Args;
use crate::value::Sequence;

/// The namespace of the `math:` functions.
pub(crate) const MATH_NAMESPACE: &str = "http://www.w3.org/2005/xpath-functions/math";

type Of<T> = for<'e, 'a> fn(&Args<'e, 'a>) -> Result<T>;
type Text = for<'e, 'a> fn(&Args<'e, 'a>) -> Result<Cow<'a, str>>;

/// An implementation, by what it returns.
pub(crate) enum Run {
    Boolean(Of<bool>),
    Integer(Of<i64>),
    Number(Of<f64>),
    Text(Text),
    /// On doubles for XPath 1.0, on typed numbers for 2.0.
    Numeric(Of<f64>, Of<Sequence>),
    /// Nodes in document order, each once.
    Nodes(Of<Sequence>),
    Any(Of<Sequence>),
}

/// A standard function.
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    min: u8,
    max: u8,
    flags: u8,
    pub(crate) run: Run,
}

/// Depends on nothing but its arguments.
const PURE: u8 = 1;
/// Looks at the context item when called with fewer than its most arguments.
const CONTEXT: u8 = 2;
/// Looks at the context item always.
const CONTEXT_ALWAYS: u8 = 4;
/// Returns dates, times or durations.
const TEMPORAL: u8 = 8;
/// Any number of arguments.
const MANY: u8 = u8::MAX;

impl Builtin {
    pub(crate) fn accepts(&self, arguments: usize) -> bool {
        arguments >= usize::from(self.min) && (self.max == MANY || arguments <= usize::from(self.max))
    }

    pub(crate) fn describe_arguments(&self) -> String {
        let plural = |count: u8| if count == 1 { "argument" } else { "arguments" };
        match (self.min, self.max) {
            (0, 0) => "no arguments".to_string(),
            (min, MANY) => format!("at least {min} {}", plural(min)),
            (min, max) if min == max => format!("{min} {}", plural(min)),
            (min, max) => format!("{min} to {max} arguments"),
        }
    }

    pub(crate) fn is_pure(&self) -> bool {
        self.flags & PURE != 0
    }

    pub(crate) fn is_temporal(&self) -> bool {
        self.flags & TEMPORAL != 0
    }

    pub(crate) fn reads_context(&self, arguments: usize) -> bool {
        self.flags & CONTEXT_ALWAYS != 0 || (self.flags & CONTEXT != 0 && arguments < usize::from(self.max))
    }
}

impl fmt::Debug for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}()", self.name)
    }
}

/// The function with this name in the standard namespace.
pub(crate) fn find(name: &str) -> Option<&'static Builtin> {
    TABLE.iter().find(|builtin| builtin.name == name)
}

/// The function with this name in the `math` namespace.
pub(crate) fn find_math(name: &str) -> Option<&'static Builtin> {
    MATH.iter().find(|builtin| builtin.name == name)
}

/// The names of the standard functions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|builtin| builtin.name)
}

/// Whether a standard function takes that many arguments; any number when `arity` is `None`.
pub fn is_standard_function(local: &str, arity: Option<usize>) -> bool {
    find(local).is_some_and(|builtin| arity.is_none_or(|arity| builtin.accepts(arity)))
}

const fn f(name: &'static str, min: u8, max: u8, flags: u8, run: Run) -> Builtin {
    Builtin { name, min, max, flags, run }
}

static TABLE: &[Builtin] = &[
    // XPath 1.0 §4.1, in the order of that section.
    f("last", 0, 0, 0, Run::Integer(general::last)),
    f("position", 0, 0, 0, Run::Integer(general::position)),
    f("count", 1, 1, 0, Run::Integer(aggregate::count)),
    f("id", 1, 2, CONTEXT_ALWAYS, Run::Nodes(nodes::id)),
    f("local-name", 0, 1, CONTEXT, Run::Text(nodes::local_name)),
    f("namespace-uri", 0, 1, CONTEXT, Run::Text(nodes::namespace_uri)),
    f("name", 0, 1, CONTEXT, Run::Text(nodes::name)),
    // §4.2
    f("string", 0, 1, CONTEXT | PURE, Run::Text(strings::string)),
    f("concat", 2, MANY, PURE, Run::Text(strings::concat)),
    f("starts-with", 2, 3, PURE, Run::Boolean(strings::starts_with)),
    f("contains", 2, 3, PURE, Run::Boolean(strings::contains)),
    f("substring-before", 2, 3, PURE, Run::Text(strings::substring_before)),
    f("substring-after", 2, 3, PURE, Run::Text(strings::substring_after)),
    f("substring", 2, 3, PURE, Run::Text(strings::substring)),
    f("string-length", 0, 1, CONTEXT | PURE, Run::Integer(strings::string_length)),
    f("normalize-space", 0, 1, CONTEXT | PURE, Run::Text(strings::normalize_space)),
    f("translate", 3, 3, PURE, Run::Text(strings::translate)),
    // §4.3
    f("boolean", 1, 1, PURE, Run::Boolean(general::boolean)),
    f("not", 1, 1, PURE, Run::Boolean(general::not)),
    f("true", 0, 0, PURE, Run::Boolean(general::yes)),
    f("false", 0, 0, PURE, Run::Boolean(general::no)),
    f("lang", 1, 2, CONTEXT_ALWAYS, Run::Boolean(nodes::lang)),
    // §4.4
    f("number", 0, 1, CONTEXT | PURE, Run::Number(maths::number)),
    f("sum", 1, 2, 0, Run::Numeric(aggregate::sum_of_numbers, aggregate::sum)),
    f("floor", 1, 1, PURE, Run::Numeric(maths::floor_of_number, maths::floor)),
    f("ceiling", 1, 1, PURE, Run::Numeric(maths::ceiling_of_number, maths::ceiling)),
    f("round", 1, 2, PURE, Run::Numeric(maths::round_of_number, maths::round)),
    // XSLT 1.0 §12, as far as it needs nothing from a stylesheet.
    f("current", 0, 0, CONTEXT_ALWAYS, Run::Any(general::current)),
    f("generate-id", 0, 1, CONTEXT, Run::Text(nodes::generate_id)),
    f("format-number", 2, 3, 0, Run::Text(format_number::format_number)),
    // XPath 2.0 and 3.0: strings.
    f("string-join", 1, 2, 0, Run::Text(strings::string_join)),
    f("upper-case", 1, 1, PURE, Run::Text(strings::upper_case)),
    f("lower-case", 1, 1, PURE, Run::Text(strings::lower_case)),
    f("ends-with", 2, 3, PURE, Run::Boolean(strings::ends_with)),
    f("compare", 2, 3, PURE, Run::Any(strings::compare)),
    f("codepoint-equal", 2, 2, PURE, Run::Any(strings::codepoint_equal)),
    f("codepoints-to-string", 1, 1, 0, Run::Text(strings::codepoints_to_string)),
    f("string-to-codepoints", 1, 1, 0, Run::Any(strings::string_to_codepoints)),
    f("normalize-unicode", 1, 2, PURE, Run::Text(strings::normalize_unicode)),
    f("encode-for-uri", 1, 1, PURE, Run::Text(uris::encode_for_uri)),
    f("iri-to-uri", 1, 1, PURE, Run::Text(uris::iri_to_uri)),
    f("escape-html-uri", 1, 1, PURE, Run::Text(uris::escape_html_uri)),
    f("resolve-uri", 1, 2, 0, Run::Any(uris::resolve_uri)),
    f("matches", 2, 3, 0, Run::Boolean(regexes::matches)),
    f("replace", 3, 4, 0, Run::Text(regexes::replace)),
    f("tokenize", 1, 3, 0, Run::Any(regexes::tokenize)),
    // Sequences.
    f("empty", 1, 1, 0, Run::Boolean(sequences::empty)),
    f("exists", 1, 1, 0, Run::Boolean(sequences::exists)),
    f("head", 1, 1, 0, Run::Any(sequences::head)),
    f("tail", 1, 1, 0, Run::Any(sequences::tail)),
    f("index-of", 2, 3, 0, Run::Any(sequences::index_of)),
    f("subsequence", 2, 3, 0, Run::Any(sequences::subsequence)),
    f("reverse", 1, 1, 0, Run::Any(sequences::reverse)),
    f("insert-before", 3, 3, 0, Run::Any(sequences::insert_before)),
    f("remove", 2, 2, 0, Run::Any(sequences::remove)),
    f("unordered", 1, 1, 0, Run::Any(sequences::unordered)),
    f("distinct-values", 1, 2, 0, Run::Any(sequences::distinct_values)),
    f("deep-equal", 2, 3, 0, Run::Boolean(sequences::deep_equal)),
    f("zero-or-one", 1, 1, 0, Run::Any(sequences::zero_or_one)),
    f("one-or-more", 1, 1, 0, Run::Any(sequences::one_or_more)),
    f("exactly-one", 1, 1, 0, Run::Any(sequences::exactly_one)),
    f("data", 0, 1, CONTEXT, Run::Any(sequences::data)),
    // Numbers.
    f("avg", 1, 1, 0, Run::Any(aggregate::avg)),
    f("min", 1, 2, 0, Run::Any(aggregate::min)),
    f("max", 1, 2, 0, Run::Any(aggregate::max)),
    f("abs", 1, 1, PURE, Run::Numeric(maths::abs_of_number, maths::abs)),
    f("round-half-to-even", 1, 2, PURE, Run::Numeric(maths::round_half_of_number, maths::round_half_to_even)),
    // Nodes and names.
    f("node-name", 0, 1, CONTEXT, Run::Any(nodes::node_name)),
    f("root", 0, 1, CONTEXT, Run::Nodes(nodes::root)),
    f("base-uri", 0, 1, CONTEXT, Run::Any(nodes::base_uri)),
    f("document-uri", 0, 1, CONTEXT, Run::Any(nodes::document_uri)),
    f("has-children", 0, 1, CONTEXT, Run::Boolean(nodes::has_children)),
    f("nilled", 0, 1, CONTEXT, Run::Any(nodes::nilled)),
    f("doc", 1, 1, 0, Run::Nodes(general::doc)),
    f("doc-available", 1, 1, 0, Run::Boolean(general::doc_available)),
    f("collection", 0, 1, 0, Run::Nodes(general::collection)),
    f("idref", 1, 2, CONTEXT_ALWAYS, Run::Nodes(nodes::idref)),
    f("static-base-uri", 0, 0, 0, Run::Any(general::static_base_uri)),
    f("default-collation", 0, 0, 0, Run::Text(general::default_collation)),
    f("QName", 2, 2, 0, Run::Any(qnames::qname)),
    f("resolve-QName", 2, 2, 0, Run::Any(qnames::resolve_qname)),
    f("local-name-from-QName", 1, 1, 0, Run::Any(qnames::local_name_from)),
    f("prefix-from-QName", 1, 1, 0, Run::Any(qnames::prefix_from)),
    f("namespace-uri-from-QName", 1, 1, 0, Run::Any(qnames::namespace_uri_from)),
    f("namespace-uri-for-prefix", 2, 2, 0, Run::Any(qnames::namespace_uri_for_prefix)),
    f("in-scope-prefixes", 1, 1, 0, Run::Any(qnames::in_scope_prefixes)),
    // Errors.
    f("error", 0, 3, 0, Run::Any(general::error)),
    f("trace", 1, 2, 0, Run::Any(general::trace)),
    // Dates and times.
    f("current-dateTime", 0, 0, TEMPORAL, Run::Any(dates::current_date_time)),
    f("current-date", 0, 0, TEMPORAL, Run::Any(dates::current_date)),
    f("current-time", 0, 0, TEMPORAL, Run::Any(dates::current_time)),
    f("implicit-timezone", 0, 0, TEMPORAL, Run::Any(dates::implicit_timezone)),
    f("dateTime", 2, 2, TEMPORAL, Run::Any(dates::date_time)),
    f("year-from-dateTime", 1, 1, 0, Run::Any(dates::year)),
    f("month-from-dateTime", 1, 1, 0, Run::Any(dates::month)),
    f("day-from-dateTime", 1, 1, 0, Run::Any(dates::day)),
    f("hours-from-dateTime", 1, 1, 0, Run::Any(dates::hours)),
    f("minutes-from-dateTime", 1, 1, 0, Run::Any(dates::minutes)),
    f("seconds-from-dateTime", 1, 1, 0, Run::Any(dates::seconds)),
    f("timezone-from-dateTime", 1, 1, TEMPORAL, Run::Any(dates::timezone)),
    f("year-from-date", 1, 1, 0, Run::Any(dates::date_year)),
    f("month-from-date", 1, 1, 0, Run::Any(dates::date_month)),
    f("day-from-date", 1, 1, 0, Run::Any(dates::date_day)),
    f("timezone-from-date", 1, 1, TEMPORAL, Run::Any(dates::date_timezone)),
    f("hours-from-time", 1, 1, 0, Run::Any(dates::time_hours)),
    f("minutes-from-time", 1, 1, 0, Run::Any(dates::time_minutes)),
    f("seconds-from-time", 1, 1, 0, Run::Any(dates::time_seconds)),
    f("timezone-from-time", 1, 1, TEMPORAL, Run::Any(dates::time_timezone)),
    f("years-from-duration", 1, 1, 0, Run::Any(dates::duration_years)),
    f("months-from-duration", 1, 1, 0, Run::Any(dates::duration_months)),
    f("days-from-duration", 1, 1, 0, Run::Any(dates::duration_days)),
    f("hours-from-duration", 1, 1, 0, Run::Any(dates::duration_hours)),
    f("minutes-from-duration", 1, 1, 0, Run::Any(dates::duration_minutes)),
    f("seconds-from-duration", 1, 1, 0, Run::Any(dates::duration_seconds)),
    f("adjust-dateTime-to-timezone", 1, 2, TEMPORAL, Run::Any(dates::adjust_date_time)),
    f("adjust-date-to-timezone", 1, 2, TEMPORAL, Run::Any(dates::adjust_date)),
    f("adjust-time-to-timezone", 1, 2, TEMPORAL, Run::Any(dates::adjust_time)),
    f("format-dateTime", 2, 5, 0, Run::Any(format_date::format_date_time)),
    f("format-date", 2, 5, 0, Run::Any(format_date::format_date)),
    f("format-time", 2, 5, 0, Run::Any(format_date::format_time)),
];

static MATH: &[Builtin] = &[
    f("pi", 0, 0, PURE, Run::Number(maths::pi)),
    f("sqrt", 1, 1, PURE, Run::Number(maths::sqrt)),
    f("pow", 2, 2, PURE, Run::Number(maths::pow)),
    f("exp", 1, 1, PURE, Run::Number(maths::exp)),
    f("log", 1, 1, PURE, Run::Number(maths::log)),
    f("log10", 1, 1, PURE, Run::Number(maths::log10)),
    f("sin", 1, 1, PURE, Run::Number(maths::sin)),
    f("cos", 1, 1, PURE, Run::Number(maths::cos)),
    f("tan", 1, 1, PURE, Run::Number(maths::tan)),
    f("atan", 1, 1, PURE, Run::Number(maths::atan)),
];
