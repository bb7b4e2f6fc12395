//! WS-Security UsernameToken: a name and a password, in the clear (inside TLS) or as a digest with
//! a nonce and a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_compile::{Compiler, Element};
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, is_secret};
use penstock_message::{Envelope, Form, MediaType, SoapVersion};
use penstock_xml::{Document, NodeId, TreeBuilder, XML_NAMESPACE};

use crate::payload;
use crate::tree::SOAP_PREFIX;

const WSSE: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";
const WSU: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";

/// How far the time of a token may be off, and so how long its nonce is remembered: the usual bound of WS-Security.
const FRESH: Duration = Duration::from_secs(300);

/// More nonces than this within the window are an attack; further digests are refused until old ones expire.
const NONCES_MAX: usize = 100_000;

/// Checks the token of every request.
struct UsernameToken {
    seen: Mutex<HashMap<String, Instant>>,
}

/// What the registry hands to the compiler.
pub fn compile(_policy: &Element<'_>, _cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    Some(Box::new(UsernameToken { seen: Mutex::default() }))
}

/// A token as it was sent.
#[derive(Debug, Default, PartialEq, Eq)]
struct Token {
    name: String,
    password: String,
    digest: bool,
    nonce: String,
    created: String,
}

/// The token in the header. `Err` says why there is none that can be checked.
fn token_of(envelope: &Envelope) -> Result<Token, &'static str> {
    let document = &*envelope.document;
    let child = |parent: NodeId, namespace: &str, name: &str| {
        let mut children = document.children(parent).filter(|child| document.is_element(*child));
        children.find(|child| document.local_name(*child) == name && document.namespace(*child) == namespace)
    };
    let text =
        |node: Option<NodeId>| node.map(|node| document.string_value(node).trim().to_owned()).unwrap_or_default();
    let security = envelope
        .header
        .and_then(|header| child(header, WSSE, "Security"))
        .ok_or("the request has no Security header")?;
    let token = child(security, WSSE, "UsernameToken").ok_or("the Security header has no UsernameToken")?;
    let password = child(token, WSSE, "Password").ok_or("the UsernameToken has no Password")?;
    Ok(Token {
        name: text(child(token, WSSE, "Username")),
        password: text(Some(password)),
        digest: document.attribute(password, "", "Type").is_some_and(|kind| kind.ends_with("#PasswordDigest")),
        nonce: text(child(token, WSSE, "Nonce")),
        created: text(child(token, WSU, "Created")),
    })
}

impl UsernameToken {
    fn check(&self, token: &Token, users: &HashMap<String, String>, now: SystemTime) -> Result<(), &'static str> {
        // The answer does not tell whether the name or the password was wrong.
        const WRONG: &str = "the security token could not be authenticated";
        let password = users.get(&token.name).ok_or(WRONG)?;
        if !token.digest {
            return if is_secret(password.as_bytes(), token.password.as_bytes()) { Ok(()) } else { Err(WRONG) };
        }
        let nonce =
            STANDARD.decode(&token.nonce).ok().filter(|nonce| !nonce.is_empty()).ok_or("a digest needs a nonce")?;
        let created = seconds_of(&token.created).ok_or("a digest needs the time it was created")?;
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if created.abs_diff(now) > FRESH.as_secs() {
            return Err("the security token has expired");
        }
        let mut context = ring::digest::Context::new(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY);
        context.update(&nonce);
        context.update(token.created.as_bytes());
        context.update(password.as_bytes());
        if !is_secret(STANDARD.encode(context.finish()).as_bytes(), token.password.as_bytes()) {
            return Err(WRONG);
        }
        self.remember(&token.nonce)
    }

    /// A nonce is good once.
    fn remember(&self, nonce: &str) -> Result<(), &'static str> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        // A token may be as much ahead of our clock as behind it.
        seen.retain(|_, at| now.duration_since(*at) < FRESH * 2);
        if seen.contains_key(nonce) {
            return Err("the security token was used before");
        }
        if seen.len() >= NONCES_MAX {
            return Err("too many security tokens at once");
        }
        seen.insert(nonce.to_owned(), now);
        Ok(())
    }
}

/// Seconds since 1970 of `2026-11-21T13:00:00.000Z`.
fn seconds_of(text: &str) -> Option<u64> {
    let (date, time) = text.trim().strip_suffix('Z')?.split_once('T')?;
    let mut parts = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let mut parts = time.split('.').next()?.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let valid = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !valid || !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..=60).contains(&second) {
        return None;
    }
    let days = penstock_engine::clock::days_of(year, month as u32, day as u32);
    u64::try_from(days * 86_400 + hour * 3_600 + minute * 60 + second).ok()
}

/// Answers with the fault WS-Security names, in the client's version of SOAP.
fn refuse(exchange: &mut Exchange, soap: SoapVersion, why: &str) -> Flow {
    let namespace = soap.namespace();
    let mut builder = TreeBuilder::new();
    builder.start_element(SOAP_PREFIX, "Envelope", namespace);
    builder.start_element(SOAP_PREFIX, "Body", namespace);
    builder.start_element(SOAP_PREFIX, "Fault", namespace);
    builder.declare_namespace("wsse", WSSE);
    let mut leaf = |prefix: &str, name: &str, namespace: &str, text: &str| {
        builder.start_element(prefix, name, namespace);
        builder.text(text);
        builder.end_element();
    };
    if soap == SoapVersion::Soap12 {
        builder.start_element(SOAP_PREFIX, "Code", namespace);
        builder.start_element(SOAP_PREFIX, "Value", namespace);
        builder.text(&format!("{SOAP_PREFIX}:Sender"));
        builder.end_element();
        builder.start_element(SOAP_PREFIX, "Subcode", namespace);
        builder.start_element(SOAP_PREFIX, "Value", namespace);
        builder.text("wsse:FailedAuthentication");
        builder.end_element();
        builder.end_element();
        builder.end_element();
        builder.start_element(SOAP_PREFIX, "Reason", namespace);
        builder.start_element(SOAP_PREFIX, "Text", namespace);
        builder.attribute("xml", "lang", XML_NAMESPACE, "en-US");
        builder.text(why);
        builder.end_element();
        builder.end_element();
    } else {
        leaf("", "faultcode", "", "wsse:FailedAuthentication");
        leaf("", "faultstring", "", why);
    }
    builder.end_element();
    builder.end_element();
    builder.end_element();
    let document: Document = builder.finish();
    let media_type = if soap == SoapVersion::Soap12 { "application/soap+xml" } else { "text/xml" };
    if exchange.message.media_type() != MediaType::of(media_type) {
        payload::set_media_type(exchange, media_type);
    }
    if let Some(envelope) = Envelope::of(Arc::new(document)) {
        exchange.message.body.set(Form::Xml(Arc::new(envelope)));
    }
    exchange.log(Level::Warn, "UsernameToken", why);
    Flow::Respond
}

impl Mediator for UsernameToken {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let envelope = exchange.xml()?;
        let users = exchange.core().environment.clone();
        let outcome = token_of(&envelope).and_then(|token| self.check(&token, &users.users, SystemTime::now()));
        let soap = if envelope.soap == SoapVersion::Soap12 { SoapVersion::Soap12 } else { SoapVersion::Soap11 };
        Ok(match outcome {
            Ok(()) => Flow::Next,
            Err(why) => refuse(exchange, soap, why),
        })
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(nonce: &[u8], created: &str, password: &str) -> String {
        let all = [nonce, created.as_bytes(), password.as_bytes()].concat();
        STANDARD.encode(ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &all))
    }

    fn token(password: &str) -> Token {
        Token { name: "anna".into(), password: password.into(), ..Token::default() }
    }

    #[test]
    fn times_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T12:00:00.000Z", Some(951_825_600)),
            ("2026-11-21T13:00:00Z", Some(1_795_266_000)),
            ("2026-13-01T00:00:00Z", None),
            ("2026-11-21T13:00:00+01:00", None),
            ("", None),
        ] {
            assert_eq!(seconds_of(text), expected, "{text}");
        }
    }

    #[test]
    fn passwords_in_the_clear() {
        let check = UsernameToken { seen: Mutex::default() };
        let users = HashMap::from([("anna".to_owned(), "secret".to_owned())]);
        assert!(check.check(&token("secret"), &users, UNIX_EPOCH).is_ok());
        assert!(check.check(&token("Secret"), &users, UNIX_EPOCH).is_err());
        assert!(check.check(&token("secret"), &HashMap::new(), UNIX_EPOCH).is_err());
    }

    #[test]
    fn digests_are_fresh_and_used_once() {
        let check = UsernameToken { seen: Mutex::default() };
        let users = HashMap::from([("anna".to_owned(), "secret".to_owned())]);
        let created = "2026-11-21T13:00:00Z";
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(1_795_266_000 + seconds);
        let with = |nonce: &[u8], password: &str| Token {
            digest: true,
            nonce: STANDARD.encode(nonce),
            created: created.into(),
            ..token(&digest(nonce, created, password))
        };
        assert_eq!(check.check(&with(b"1", "secret"), &users, at(299)), Ok(()));
        assert_eq!(check.check(&with(b"1", "secret"), &users, at(0)), Err("the security token was used before"));
        assert_eq!(check.check(&with(b"2", "secret"), &users, at(301)), Err("the security token has expired"));
        assert!(check.check(&with(b"3", "wrong"), &users, at(0)).is_err());
        assert!(check.check(&with(b"", "secret"), &users, at(0)).is_err());
    }
}
