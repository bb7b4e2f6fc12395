//! Requests that Apache WSS4J 1.6.19 made (`vectors/Vectors.java`), attacks on them, and responses.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_wssecurity::{Keys, Policy, Received, Refusal, RefusalCode, Request, Service};
use penstock_xml::{Document, ParseOptions, WriteOptions};

/// When the vectors were made.
const MADE: Duration = Duration::from_secs(1795355890);

const SIGNED_BODY: &str = "<sp:SignedParts><sp:Body/></sp:SignedParts>";
const BOTH: &str = "<sp:SignedParts><sp:Body/></sp:SignedParts><sp:EncryptedParts><sp:Body/></sp:EncryptedParts>";

fn now() -> SystemTime {
    UNIX_EPOCH + MADE + Duration::from_secs(5)
}

fn document(text: &str) -> Document {
    Document::parse(text.to_owned(), &ParseOptions::default()).unwrap()
}

fn policy(assertions: &str) -> Policy {
    let text = format!(
        "<wsp:Policy xmlns:wsp='http://schemas.xmlsoap.org/ws/2004/09/policy' \
         xmlns:sp='http://schemas.xmlsoap.org/ws/2005/07/securitypolicy'><wsp:ExactlyOne><wsp:All>{assertions}\
         </wsp:All></wsp:ExactlyOne></wsp:Policy>"
    );
    Policy::parse(&document(&text)).unwrap_or_else(|problems| panic!("{problems:?}"))
}

const TOKEN: &str = "<wsp:Policy><sp:X509Token><wsp:Policy><sp:RequireThumbprintReference/></wsp:Policy></sp:X509Token>\
                     </wsp:Policy>";

fn asymmetric(suite: &str, options: &str, parts: &str) -> Policy {
    policy(&format!(
        "<sp:AsymmetricBinding><wsp:Policy><sp:InitiatorToken>{TOKEN}</sp:InitiatorToken><sp:RecipientToken>{TOKEN}\
         </sp:RecipientToken><sp:AlgorithmSuite><wsp:Policy><sp:{suite}/></wsp:Policy></sp:AlgorithmSuite>\
         <sp:IncludeTimestamp/>{options}</wsp:Policy></sp:AsymmetricBinding><sp:Wss11><wsp:Policy>\
         <sp:RequireSignatureConfirmation/></wsp:Policy></sp:Wss11>{parts}"
    ))
}

fn symmetric(derived: bool) -> Policy {
    // WSS4J makes keys of 128 bits where nothing is derived from them.
    let (derived, suite) = if derived { ("<sp:RequireDerivedKeys/>", "Basic256") } else { ("", "Basic128") };
    policy(&format!(
        "<sp:SymmetricBinding><wsp:Policy><sp:ProtectionToken><wsp:Policy><sp:X509Token><wsp:Policy>{derived}\
         </wsp:Policy></sp:X509Token></wsp:Policy></sp:ProtectionToken><sp:AlgorithmSuite><wsp:Policy><sp:{suite}/>\
         </wsp:Policy></sp:AlgorithmSuite><sp:IncludeTimestamp/></wsp:Policy></sp:SymmetricBinding>{BOTH}"
    ))
}

fn keys(own: &str, other: &str) -> Keys {
    let file = |name: String| std::fs::read(format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let trusted = [file(format!("{other}.der"))];
    Keys::from_der(&file(format!("{own}.der")), &file(format!("{own}.key.der")), &trusted).unwrap()
}

fn service(policy: Policy) -> Service {
    Service::new(policy, Some(keys("service", "client")))
}

fn vector(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/vectors/{name}.xml", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn at(service: &Service, text: &str, now: SystemTime) -> Result<Received, Refusal> {
    let passwords = |name: &str| (name == "anna").then(|| "secret".to_owned());
    service.receive(Request { document: &document(text), now, over_tls: true, passwords: &passwords })
}

fn receive(service: &Service, text: &str) -> Result<Received, Refusal> {
    at(service, text, now())
}

fn refused(service: &Service, text: &str) -> Refusal {
    match receive(service, text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(refusal) => refusal,
    }
}

/// The order in the body of a request that was decrypted.
fn content(received: &Received, text: &str) -> String {
    let original = document(text);
    let document = received.document.as_ref().unwrap_or(&original);
    let is_order = |node: &penstock_xml::NodeId| document.is_element(*node) && document.local_name(*node) == "order";
    let order = document.descendants(Document::ROOT).find(is_order).unwrap();
    String::from_utf8(penstock_xml::to_vec(document, order, &WriteOptions::default())).unwrap()
}

#[test]
fn requests_of_another_implementation_are_accepted() {
    for (name, policy) in [
        ("sign-encrypt-basic256", asymmetric("Basic256", "", BOTH)),
        ("sign-encrypt-basic128sha256rsa15", asymmetric("Basic128Sha256Rsa15", "", BOTH)),
        ("sign-encrypt-signature-basic192", asymmetric("Basic192", "<sp:EncryptSignature/>", BOTH)),
        ("sign-encrypt-tripledes", asymmetric("TripleDes", "", BOTH)),
        ("sign-basic256sha256", asymmetric("Basic256Sha256", "", SIGNED_BODY)),
        ("symmetric-derived", symmetric(true)),
        ("symmetric", symmetric(false)),
    ] {
        let text = vector(name);
        let received = receive(&service(policy), &text).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let order = content(&received, &text);
        assert!(order.contains("<x:item>tea &amp; caf\u{e9}</x:item>"), "{name}: {order}");
    }
}

#[test]
fn a_password_digest_counts_once() {
    let tokens = "<sp:SupportingTokens><wsp:Policy><sp:UsernameToken><wsp:Policy><sp:HashPassword/></wsp:Policy>\
                  </sp:UsernameToken></wsp:Policy></sp:SupportingTokens>";
    let service = Service::new(policy(tokens), None);
    let text = vector("username-digest");
    let received = receive(&service, &text).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(received.context.user.as_deref(), Some("anna"));
    assert_eq!(refused(&service, &text).reason, "the security token was used before");
    let later = at(&service, &text, now() + Duration::from_secs(3_600)).err().unwrap();
    assert_eq!(later.code, RefusalCode::MessageExpired);
    let other = refused(&service, &text.replace("anna", "bert"));
    assert_eq!(other.reason, "the security token could not be authenticated");
}

#[test]
fn old_and_future_messages_are_refused() {
    let service = service(asymmetric("Basic256", "", BOTH));
    let text = vector("sign-encrypt-basic256");
    let code = |now| at(&service, &text, now).err().map(|refusal| refusal.code);
    assert_eq!(code(now() + Duration::from_secs(590)), None);
    assert_eq!(code(now() + Duration::from_secs(610)), Some(RefusalCode::MessageExpired));
    assert_eq!(code(now() - Duration::from_secs(310)), Some(RefusalCode::MessageExpired));
}

#[test]
fn all_failures_after_decryption_have_one_message() {
    for (name, suite) in
        [("sign-encrypt-basic256", "Basic256"), ("sign-encrypt-basic128sha256rsa15", "Basic128Sha256Rsa15")]
    {
        let service = service(asymmetric(suite, "", BOTH));
        let text = vector(name);
        let mut places: Vec<usize> = text.match_indices("<xenc:CipherValue>").map(|(at, tag)| at + tag.len()).collect();
        places.extend(text.match_indices("<ds:DigestValue>").map(|(at, tag)| at + tag.len()));
        places.extend(text.match_indices("<ds:SignatureValue>").map(|(at, tag)| at + tag.len()));
        assert!(places.len() >= 5, "{places:?}");
        for place in places {
            for offset in [0, 10, 21] {
                let at = place + offset;
                let other = if &text[at..=at] == "A" { "B" } else { "A" };
                let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
                let refusal = refused(&service, &changed);
                let told = (refusal.code, refusal.reason);
                assert_eq!(told, (RefusalCode::FailedCheck, "the signature or decryption was invalid"), "{name} {at}");
            }
        }
    }
}

#[test]
fn a_signature_covers_the_body_that_is_processed() {
    let service = service(asymmetric("Basic256Sha256", "", SIGNED_BODY));
    let text = vector("sign-basic256sha256");
    let (start, end) = (text.find("<s:Body").unwrap(), text.find("</s:Body>").unwrap() + "</s:Body>".len());
    let signed = &text[start..end];
    let forged = "<s:Body><x:order number=\"8\"/></s:Body>";
    let id = signed.split("wsu:Id=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let with_id = forged.replace("<s:Body", &format!("<s:Body xmlns:wsu=\"http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd\" wsu:Id=\"{id}\""));
    let wrapped = |body: &str| {
        let header = format!("<x:wrapper>{signed}</x:wrapper></s:Header>");
        text.replace(signed, body).replace("</s:Header>", &header)
    };
    for (attack, what) in [
        (text.replace("number=\"7\"", "number=\"8\""), "a changed body"),
        (wrapped(forged), "the signed body in a header, another in its place"),
        (wrapped(&with_id), "the same with the same identifier"),
        (text.replace(signed, &format!("{forged}{signed}")), "two bodies"),
        (text.replace(signed, &format!("{signed}{forged}")), "two bodies, the signed one first"),
        (text.replace("wsu:Timestamp", "wsu:TimeStamp"), "no timestamp"),
    ] {
        assert_ne!(attack, text, "{what}");
        refused(&service, &attack);
    }
    let unsigned = {
        let (start, end) = (text.find("<ds:Signature ").unwrap(), text.find("</ds:Signature>").unwrap());
        format!("{}{}", &text[..start], &text[end + "</ds:Signature>".len()..])
    };
    assert_eq!(refused(&service, &unsigned).reason, "the body is not signed");
}

#[test]
fn the_policy_decides_what_is_enough() {
    let signed_only = vector("sign-basic256sha256");
    let wants_both = service(asymmetric("Basic256Sha256", "", BOTH));
    assert_eq!(refused(&wants_both, &signed_only).reason, "the body is not encrypted");
    let other_suite = service(asymmetric("Basic256Rsa15", "", BOTH));
    let refusal = refused(&other_suite, &vector("sign-encrypt-basic256"));
    assert_eq!(refusal.detail, "the key encryption algorithm is not allowed");
    let stranger = Service::new(asymmetric("Basic256", "", BOTH), Some(keys("service", "service")));
    let refusal = refused(&stranger, &vector("sign-encrypt-basic256"));
    assert_eq!(refusal.detail, "the certificate of the signature is not trusted");
    let bare = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body/></s:Envelope>";
    assert_eq!(refused(&wants_both, bare).reason, "the request has no Security header");
}

#[test]
fn a_response_is_signed_and_encrypted_for_the_client() {
    let response = document(
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/' xmlns:x='urn:example'><s:Body><x:order \
         number='9'><x:item>tea &amp; caf\u{e9}</x:item></x:order></s:Body></s:Envelope>",
    );
    for (name, policy) in [
        ("sign-encrypt-basic256", asymmetric("Basic256", "", BOTH)),
        ("sign-encrypt-basic128sha256rsa15", asymmetric("Basic128Sha256Rsa15", "", BOTH)),
        ("sign-encrypt-basic256", asymmetric("Basic256", "", BOTH)),
        ("sign-basic256sha256", asymmetric("Basic256Sha256", "", SIGNED_BODY)),
    ] {
        let service = service(policy.clone());
        let received = receive(&service, &vector(name)).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let secured = service.send(&response, &received.context, now()).unwrap();
        let text = String::from_utf8(penstock_xml::to_vec(&secured, Document::ROOT, &WriteOptions::default())).unwrap();
        assert_eq!(text.contains("tea"), name == "sign-basic256sha256", "{text}");
        assert!(text.contains("SignatureConfirmation"), "{text}");
        if let Some(folder) = std::env::var_os("WSS_RESPONSES") {
            std::fs::write(std::path::Path::new(&folder).join(format!("{name}-response.xml")), &text).unwrap();
        }
        let client = Service::new(policy, Some(keys("client", "service")));
        let read = receive(&client, &text).unwrap_or_else(|refusal| panic!("{name}: {refusal}\n{text}"));
        assert!(content(&read, &text).contains("<x:item>tea &amp; caf\u{e9}</x:item>"), "{name}");
    }
}

#[test]
fn a_response_to_an_anonymous_client_uses_the_key_of_the_request() {
    let response = document(
        "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><done/></s:Body></s:Envelope>",
    );
    for (name, derived) in [("symmetric-derived", true), ("symmetric", false)] {
        let service = service(symmetric(derived));
        let received = receive(&service, &vector(name)).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let secured = service.send(&response, &received.context, now()).unwrap();
        let text = String::from_utf8(penstock_xml::to_vec(&secured, Document::ROOT, &WriteOptions::default())).unwrap();
        assert!(!text.contains("done") && text.contains("EncryptedKeySHA1"), "{text}");
        assert_eq!(text.contains("DerivedKeyToken"), derived, "{text}");
    }
}
