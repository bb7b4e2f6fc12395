use penstock_xml::ParseOptions;

use super::*;

const HEAD: &str = "<wsp:Policy xmlns:wsp='http://schemas.xmlsoap.org/ws/2004/09/policy' \
                    xmlns:r='http://ws.apache.org/rampart/policy' \
                    xmlns:sp='http://docs.oasis-open.org/ws-sx/ws-securitypolicy/200702'>";

fn read(assertions: &str) -> Result<Policy, String> {
    let document = Document::parse(format!("{HEAD}{assertions}</wsp:Policy>"), &ParseOptions::default());
    Policy::parse(&document.expect("well-formed")).map_err(|problems| {
        let lines: Vec<String> = problems.into_iter().map(|problem| problem.message).collect();
        lines.join("; ")
    })
}

const USERNAME: &str = "<sp:SupportingTokens><wsp:Policy><sp:UsernameToken/></wsp:Policy></sp:SupportingTokens>";

#[test]
fn a_username_token_is_an_assertion_and_not_a_word() {
    assert!(read(USERNAME).expect("understood").needs_tls());
    for (text, expected) in [
        ("", "neither a binding nor a UsernameToken"),
        ("<!-- UsernameToken -->", "neither a binding nor a UsernameToken"),
        ("<x:UsernameToken xmlns:x='urn:x'/>", "the assertion `UsernameToken` is not supported"),
        (
            "<sp:SupportingTokens><wsp:Policy><sp:SamlToken/></wsp:Policy></sp:SupportingTokens>",
            "the assertion `SamlToken` is not supported",
        ),
        (
            "<sp:SupportingTokens><wsp:Policy><sp:UsernameToken><wsp:Policy><sp:NoPassword/></wsp:Policy></sp:UsernameToken>\
             </wsp:Policy></sp:SupportingTokens>",
            "the assertion `NoPassword` is not supported",
        ),
    ] {
        let problem = read(text).expect_err(text);
        assert!(problem.contains(expected), "{text}: {problem}");
    }
}

#[test]
fn the_first_alternative_that_is_understood_is_enforced() {
    let text = format!(
        "<wsp:ExactlyOne><wsp:All><sp:EndorsingSupportingTokens/></wsp:All><wsp:All>{USERNAME}</wsp:All></wsp:ExactlyOne>"
    );
    assert!(read(&text).expect("understood").username.is_some());
    assert!(read("<wsp:ExactlyOne/>").expect_err("no alternative").contains("no alternative"));
    let choices = "<wsp:ExactlyOne><wsp:All/><wsp:All/><wsp:All/></wsp:ExactlyOne>".repeat(9);
    assert!(read(&choices).expect_err("too many").contains("too many alternatives"));
    let optional = USERNAME.replace("<sp:SupportingTokens", "<sp:SupportingTokens wsp:Optional='true'");
    assert!(read(&optional).expect_err("optional").contains("optional assertions"));
}

#[test]
fn settings_of_the_products_are_read() {
    let with = |config: &str| read(&format!("{USERNAME}<r:RampartConfig>{config}</r:RampartConfig>"));
    let policy =
        with("<r:user>a</r:user><r:timestampTTL>60</r:timestampTTL><r:timestampMaxSkew>5</r:timestampMaxSkew>");
    let settings = policy.expect("understood").settings;
    assert_eq!((settings.ttl, settings.skew), (Duration::from_secs(60), Duration::from_secs(5)));
    for (config, expected) in [
        ("<r:timestampTTL>long</r:timestampTTL>", "must be a number of seconds"),
        ("<r:kerberosConfig/>", "`kerberosConfig` of RampartConfig is not supported"),
        ("<r:encryptionUser>bob</r:encryptionUser>", "must be `useReqSigCert`"),
    ] {
        let problem = with(config).expect_err(config);
        assert!(problem.contains(expected), "{config}: {problem}");
    }
}

#[test]
fn a_binding_without_a_suite_or_parts_is_no_protection() {
    let token = "<wsp:Policy><sp:X509Token/></wsp:Policy>";
    let binding = |more: &str, parts: &str| {
        read(&format!(
            "<sp:AsymmetricBinding><wsp:Policy><sp:InitiatorToken>{token}</sp:InitiatorToken><sp:RecipientToken>{token}\
             </sp:RecipientToken>{more}</wsp:Policy></sp:AsymmetricBinding>{parts}"
        ))
    };
    let suite = "<sp:AlgorithmSuite><wsp:Policy><sp:Basic128/></wsp:Policy></sp:AlgorithmSuite>";
    let parts = "<sp:SignedParts><sp:Body/></sp:SignedParts>";
    assert!(binding(suite, parts).is_ok());
    for (more, parts, expected) in [
        ("", parts, "no algorithm suite"),
        (suite, "", "protects no part"),
        ("<sp:AlgorithmSuite><wsp:Policy><sp:Basic42/></wsp:Policy></sp:AlgorithmSuite>", parts, "`Basic42`"),
        (suite, "<sp:SignedElements/>", "`SignedElements` is not supported"),
        (suite, "<sp:EncryptedParts><sp:Header Namespace='urn:x'/></sp:EncryptedParts>", "encrypted headers"),
    ] {
        let problem = binding(more, parts).expect_err(expected);
        assert!(problem.contains(expected), "{problem}");
    }
}
