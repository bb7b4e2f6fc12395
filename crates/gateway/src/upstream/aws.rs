//! Signing requests for AWS: Signature Version 4, as the documentation of AWS describes it.

use penstock_catalog::AwsIdentity;
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};

use crate::hex::hex;
use crate::text::percent_encode;

/// A request without a query.
pub(crate) struct Unsigned<'r> {
    pub method: &'r str,
    pub host: &'r str,
    /// As it is sent, escaped once.
    pub path: &'r str,
    pub body: &'r [u8],
    pub region: &'r str,
    pub service: &'r str,
    /// `20150830T123600Z`
    pub at: &'r str,
}

impl Unsigned<'_> {
    /// The value of `Authorization`. The request has `Host`, `X-Amz-Date` and, with a session, `X-Amz-Security-Token`.
    pub(crate) fn authorization(&self, who: &AwsIdentity) -> String {
        let mut fields = format!("host:{}\nx-amz-date:{}\n", self.host, self.at);
        let mut names = "host;x-amz-date".to_owned();
        if let Some(session) = &who.session {
            fields.push_str(&format!("x-amz-security-token:{}\n", session.0));
            names.push_str(";x-amz-security-token");
        }
        let (path, payload) = (canonical(self.path), hash(self.body));
        let request = format!("{}\n{path}\n\n{fields}\n{names}\n{payload}", self.method);
        let day = self.at.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{}", self.at, hash(request.as_bytes()));
        let with = |key: &[u8], text: &str| sign(&Key::new(HMAC_SHA256, key), text.as_bytes());
        let day_key = with(format!("AWS4{}", who.key.0).as_bytes(), day);
        let region_key = with(day_key.as_ref(), self.region);
        let service_key = with(region_key.as_ref(), self.service);
        let key = with(service_key.as_ref(), "aws4_request");
        let signature = hex(with(key.as_ref(), &text).as_ref());
        format!("AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}", who.key_id)
    }
}

fn hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// A path is escaped once more for every service but S3.
fn canonical(path: &str) -> String {
    let mut out = String::with_capacity(path.len() + 16);
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            out.push('/');
        }
        percent_encode(&mut out, segment);
    }
    out
}

#[cfg(test)]
mod tests {
    use penstock_catalog::Secret;

    use super::*;

    /// Computed with OpenSSL, step by step.
    #[test]
    fn requests_are_signed() {
        let who = |session: Option<&str>| AwsIdentity {
            key_id: "AKTEST".into(),
            key: Secret("very/secret+key".into()),
            session: session.map(|session| Secret(session.into())),
        };
        let request = Unsigned {
            method: "POST",
            host: "lambda.eu-west-1.amazonaws.com",
            path: "/2015-03-31/functions/arn%3Aaws%3Alambda%3Aeu-west-1%3A1%3Afunction%3Aone/invocations",
            body: b"{\"a\":1}",
            region: "eu-west-1",
            service: "lambda",
            at: "20260102T030405Z",
        };
        let start =
            "AWS4-HMAC-SHA256 Credential=AKTEST/20260102/eu-west-1/lambda/aws4_request, SignedHeaders=host;x-amz-date";
        assert_eq!(
            request.authorization(&who(None)),
            format!("{start}, Signature=0e25eb1d9b84f1343b2d685e927725fd535d5b54aedac690063011ab22632506")
        );
        let expected = format!(
            "{start};x-amz-security-token, Signature=af4f18c20fe9e7bb3af1d0b5b0b1008783c0a7615999d3a423af77b9ad6e61c8"
        );
        assert_eq!(request.authorization(&who(Some("the session"))), expected);
    }
}
