//! Answers from the examples of a definition, for APIs that have no backend yet.

use std::sync::Arc;

use penstock_catalog::{Implementation, MockExample, MockResponse};
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Body, Headers, Message};

use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{Gateway, Site};

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "mock",
    applies_to: ApiKinds::MESSAGES,
    phase: Phase::Backend,
    request: Some(compile),
    response: None,
};

/// Answers in place of a backend.
struct Mock {
    site: Arc<Site>,
}

fn compile(_gateway: &Gateway, site: &Arc<Site>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    if site.api.implementation != Implementation::Mock {
        return None;
    }
    Some(Box::new(Mock { site: site.clone() }))
}

impl Mediator for Mock {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let headers = &exchange.message.headers;
        let wish = Wish::parse(headers.get("prefer").unwrap_or_default(), headers.get("accept").unwrap_or_default())?;
        let reply = answer(&self.site.operation.mock, &wish)?;
        exchange.message = reply;
        Ok(Flow::Loopback)
    }
}

/// The client's preference.
#[derive(Debug, Default)]
struct Wish<'a> {
    code: Option<u16>,
    example: Option<&'a str>,
    accept: &'a str,
}

impl<'a> Wish<'a> {
    /// Reads `code=508, example=example1`.
    fn parse(prefer: &'a str, accept: &'a str) -> Result<Wish<'a>, GatewayError> {
        let mut wish = Wish { accept, ..Wish::default() };
        for preference in prefer.split([',', ';']).map(str::trim).filter(|preference| !preference.is_empty()) {
            let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
            let value = value.trim().trim_matches('"');
            match name.trim() {
                name if name.eq_ignore_ascii_case("code") => match value.parse().ok().filter(|_| value.len() == 3) {
                    Some(code) => wish.code = Some(code),
                    None => {
                        let description = "Invalid format for code preference";
                        return Err(GatewayError::described(codes::MOCK_BAD_PREFERENCE, description));
                    }
                },
                name if name.eq_ignore_ascii_case("example") => wish.example = Some(value),
                _ => {}
            }
        }
        Ok(wish)
    }

    /// How well a media type fits what the client accepts; `None` when it does not.
    fn quality(&self, media_type: &str) -> Option<u8> {
        if self.accept.trim().is_empty() {
            return Some(1);
        }
        let essence = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let offered = essence(media_type);
        let family = |text: &str| text.split('/').next().unwrap_or_default().to_owned();
        let fits = |range: &str| match essence(range) {
            range if range == offered => Some(3),
            range if range == "*/*" || range == "*" => Some(1),
            range if range.ends_with("/*") && family(&range) == family(&offered) => Some(2),
            _ => None,
        };
        self.accept.split(',').filter_map(fits).max()
    }
}

fn answer(responses: &[MockResponse], wish: &Wish<'_>) -> Result<Message, GatewayError> {
    let unsupported = |description: String| GatewayError::described(codes::MOCK_NOT_IMPLEMENTED, description);
    let (response, status) = match wish.code {
        Some(code) => by_code(responses, code)
            .map(|response| (response, code))
            .ok_or_else(|| unsupported(format!("Preferred code {code} is not supported for this resource.")))?,
        None => {
            // Choreo Connect says no more than that there is nothing.
            let response = default_response(responses).ok_or_else(|| unsupported(String::new()))?;
            (response, status_of(&response.code).unwrap_or(200))
        }
    };
    let named: Vec<&MockExample> = match wish.example {
        Some(name) => response.examples.iter().filter(|example| example.name.eq_ignore_ascii_case(name)).collect(),
        None => response.examples.iter().collect(),
    };
    if let Some(name) = wish.example
        && named.is_empty()
    {
        return Err(unsupported(format!("Example preference {name} is not supported for this resource")));
    }
    let mut headers = Headers::new();
    for (name, value) in &response.headers {
        headers.append(name, &**value);
    }
    if named.is_empty() {
        headers.set("content-type", JSON);
        return Ok(Message { headers, status, ..Message::default() });
    }
    // The first of those that fit best, and JSON before others.
    let mut best: Option<((u8, bool), &MockExample)> = None;
    for example in named {
        let quality = wish.quality(&example.media_type).map(|quality| (quality, *example.media_type == *JSON));
        if let Some(quality) = quality
            && best.is_none_or(|(other, _)| quality > other)
        {
            best = Some((quality, example));
        }
    }
    let Some((_, example)) = best else {
        let accepted: Vec<&str> = wish.accept.split(',').collect();
        let accepted = accepted.join(", ");
        return Err(unsupported(format!("Accept type [{accepted}] is not supported for this resource")));
    };
    headers.set("content-type", &*example.media_type);
    let body = if example.body.is_empty() { Body::empty() } else { Body::bytes(example.body.as_bytes().to_vec()) };
    Ok(Message { headers, body, status, ..Message::default() })
}

const JSON: &str = "application/json";

/// The answer of a status, else of its ten, else of its hundred.
fn by_code(responses: &[MockResponse], code: u16) -> Option<&MockResponse> {
    if code < 200 {
        // An answer that announces another one.
        return None;
    }
    let exact = code.to_string();
    let patterns = [exact.clone(), format!("{}x", &exact[..2]), format!("{}xx", &exact[..1])];
    patterns.iter().find_map(|pattern| responses.iter().find(|response| response.code.eq_ignore_ascii_case(pattern)))
}

/// The default response: `default`, else 200, else the lowest success, else the first.
fn default_response(responses: &[MockResponse]) -> Option<&MockResponse> {
    let called = |code: &str| responses.iter().find(|response| response.code.eq_ignore_ascii_case(code));
    let success = |response: &&MockResponse| response.code.starts_with('2');
    called("default")
        .filter(|response| !response.examples.is_empty())
        .or_else(|| called("200"))
        .or_else(|| responses.iter().filter(success).min_by_key(|response| response.code.clone()))
        .or_else(|| called("default"))
        .or_else(|| responses.first())
}

/// The status of a code or of a range of them.
fn status_of(code: &str) -> Option<u16> {
    code.to_ascii_lowercase().replace('x', "0").parse().ok().filter(|status| (200..=599).contains(status))
}

#[cfg(test)]
mod tests {
    use penstock_message::Form;

    use super::*;

    fn responses() -> Vec<MockResponse> {
        let example = |name: &str, media_type: &str, body: &str| MockExample {
            name: name.into(),
            media_type: media_type.into(),
            body: body.into(),
        };
        let response = |code: &str, examples| MockResponse {
            code: code.into(),
            headers: vec![("x-a".into(), code.into())],
            examples,
        };
        vec![
            response("404", vec![example("", "application/json", "nf")]),
            response("200", vec![example("one", "application/json", "{}"), example("two", "text/html", "<p/>")]),
            response("50X", vec![example("e", "text/plain", "50x")]),
            response("5XX", vec![example("e", "text/plain", "5xx")]),
            response("204", vec![]),
        ]
    }

    fn check(prefer: &str, accept: &str, expected: &str) {
        let outcome = Wish::parse(prefer, accept).and_then(|wish| answer(&responses(), &wish));
        let shown = match outcome {
            Ok(mut message) => {
                let body = match message.body.take() {
                    Form::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    _ => String::new(),
                };
                format!("{} {} {body}", message.status, message.headers.get("content-type").unwrap_or("-"))
            }
            Err(error) => format!("{} {}", error.code, error.description.unwrap_or_default()),
        };
        assert_eq!(shown, expected, "{prefer} / {accept}");
    }

    #[test]
    fn examples_are_chosen() {
        check("", "", "200 application/json {}");
        check("", "text/*", "200 text/html <p/>");
        check("example=two", "", "200 text/html <p/>");
        check("example=two", "*/*;q=0.1, application/json", "200 text/html <p/>");
        check("code=404", "application/json", "404 application/json nf");
        check("code=508, example=e", "text/*", "508 text/plain 50x");
        check("code=511", "", "511 text/plain 5xx");
        check("code=204", "text/html", "204 application/json ");
        check("CODE=404;example=\"\"", "", "404 application/json nf");
        let several = [
            MockResponse { code: "200".into(), ..MockResponse::default() },
            MockResponse {
                code: "default".into(),
                headers: Vec::new(),
                examples: ["text/html", JSON]
                    .map(|kind| MockExample { name: "One".into(), media_type: kind.into(), body: kind.into() })
                    .into(),
            },
        ];
        for (prefer, accept) in [("", ""), ("", "*/*"), ("example=one", "*/*")] {
            let wish = Wish::parse(prefer, accept).unwrap();
            let message = answer(&several, &wish).unwrap();
            assert_eq!((message.status, message.headers.get("content-type")), (200, Some(JSON)), "{prefer} {accept}");
        }
    }

    #[test]
    fn what_is_not_there_is_said() {
        check("code=400", "", "900871 Preferred code 400 is not supported for this resource.");
        check("example=none", "", "900871 Example preference none is not supported for this resource");
        check("", "image/png", "900871 Accept type [image/png] is not supported for this resource");
        check("code=x", "", "900870 Invalid format for code preference");
        check("code=99", "", "900870 Invalid format for code preference");
        check("code=100", "", "900871 Preferred code 100 is not supported for this resource.");
        check("code=999", "", "900871 Preferred code 999 is not supported for this resource.");
    }
}
