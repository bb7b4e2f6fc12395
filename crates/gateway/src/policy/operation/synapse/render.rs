//! Fills a template of a Synapse policy (`.j2`).

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, escape_formatter};
use penstock_catalog::PolicyUse;

use super::super::step::ActionCall;
use crate::gotemplate::TemplateError;

/// Instructions a template may run. One without a runaway loop uses a few hundred.
const STEPS_MAX: u64 = 200_000;

/// The largest result: a sequence that long was not written by a person.
const OUTPUT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Fills a template. Values are escaped for XML, so that a parameter is a value and never a mediator.
pub(crate) fn fill(template: &str, values: &[(Arc<str>, Arc<str>)]) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    // Truth values are written as XML and API Manager write them.
    environment.set_formatter(|out, state, value| match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(()),
        ValueKind::Bool => Ok(out.write_str(if value.is_true() { "true" } else { "false" })?),
        _ => escape_formatter(out, state, value),
    });
    environment.set_fuel(Some(STEPS_MAX));
    environment.add_template("policy", template).map_err(of_jinja)?;
    // A template that compares with quoted words wants words; all others mean true and false when they ask.
    let wants_words = ["'true'", "\"true\"", "'false'", "\"false\""].iter().any(|word| template.contains(word));
    let context = values.iter().map(|(name, value)| {
        let value = match &**value {
            "true" if !wants_words => Value::from(true),
            "false" if !wants_words => Value::from(false),
            text => Value::from(text),
        };
        (name.to_string(), value)
    });
    let context = Value::from(context.collect::<BTreeMap<String, Value>>());
    let mut out = Bounded(Vec::new());
    let template = environment.get_template("policy").map_err(of_jinja)?;
    template.render_captured_to(context, &mut out).map_err(of_jinja)?;
    let malformed = |_| TemplateError { line: 1, message: "the result is not UTF-8".into() };
    String::from_utf8(out.0).map_err(malformed)
}

fn of_jinja(error: minijinja::Error) -> TemplateError {
    let message =
        error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind()));
    TemplateError { line: error.line().unwrap_or(1), message }
}

/// Takes as much as a sequence may be.
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_BYTES_MAX {
            return Err(std::io::Error::other(format!("the result is larger than {OUTPUT_BYTES_MAX} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A sequence that is nothing but API Manager's `<opa>` mediator is the action of that name.
pub(super) fn opa_call(text: &str, one: &PolicyUse) -> Option<ActionCall> {
    let text = text.trim();
    if !text.starts_with("<opa>") || !text.ends_with("</opa>") {
        return None;
    }
    let unescape = |text: &str| {
        let text = text.trim().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        text.replace("&#x27;", "'").replace("&#x2f;", "/").replace("&amp;", "&")
    };
    let between = |start: &str, end: &str| {
        let (_, rest) = text.split_once(start)?;
        let (value, _) = rest.split_once(end)?;
        Some(unescape(value)).filter(|value| !value.is_empty())
    };
    let element = |name: &str| between(&format!("<{name}>"), &format!("</{name}>"));
    let parameter = |name: &str| between(&format!("<parameter name=\"{name}\">"), "</parameter>");
    let found = [
        ("serverURL", element("serverUrl")),
        ("accessKey", element("accessKey")),
        ("policy", element("policy")),
        ("rule", element("rule")),
        ("sendAccessToken", parameter("sendAccessToken")),
        ("additionalProperties", parameter("additionalMCProperties")),
        ("connectionTimeout", parameter("connectionTimeout")),
    ];
    let parameters = found.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    Some(ActionCall { action: "OPA".into(), parameters, at: one.at.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, expected: Result<&str, &str>) {
        let values: Vec<(Arc<str>, Arc<str>)> =
            [("a", "x<y & \"z\""), ("on", "true"), ("off", "false"), ("path", "/p")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
        let outcome = fill(template, &values).map_err(|error| error.to_string());
        assert_eq!(outcome.as_deref().map_err(String::as_str), expected, "{template}");
    }

    #[test]
    fn templates_are_filled_with_values_not_with_markup() {
        check("<p v=\"{{a}}\"/>", Ok("<p v=\"x&lt;y &amp; &quot;z&quot;\"/>"));
        check("[{{missing}}]", Ok("[]"));
        check("{% if on %}1{% endif %}{% if off %}2{% endif %}{% if missing %}3{% endif %}", Ok("1"));
        check("{% if off == \"false\" %}1{% endif %}{{ on }}", Ok("1true"));
        check("{{ on }} {{ off }}", Ok("true false"));
        check("{% for i in [1, 2] %}{{ i }}{% endfor %}", Ok("12"));
    }

    #[test]
    fn templates_that_do_not_end_or_parse_say_where() {
        let runaway = fill("a\n{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}", &[]);
        assert!(runaway.is_err_and(|error| error.line == 2));
        let broken = fill("a\nb\n{% if %}", &[]);
        assert!(broken.is_err_and(|error| error.line == 3));
    }

    #[test]
    fn an_agent_mediator_is_the_action() {
        let text = "<opa><serverUrl>http:&#x2f;&#x2f;h</serverUrl><policy>p</policy><additionalParameters>\n\
                    <parameter name=\"sendAccessToken\">true</parameter></additionalParameters></opa>";
        let call = opa_call(text, &PolicyUse::default()).expect("an opa mediator");
        assert_eq!(
            (call.get("serverURL"), call.get("sendAccessToken"), call.get("rule")),
            (Some("http://h"), Some("true"), None)
        );
        assert!(opa_call("<log/>", &PolicyUse::default()).is_none());
    }
}
