//! Client certificates: one that the API lists, shown by TLS or passed on by a proxy that is trusted to.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use penstock_catalog::SecurityMode;
use penstock_compile::Compiler;
use penstock_engine::Exchange;
use penstock_projects::place;

use crate::security::{Certificate, Refusal, unix_now};
use crate::{CallContext, Gateway, Site, text};

/// The certificates an API lets in.
pub(super) struct MutualTls {
    mandatory: bool,
    header: Option<Arc<str>>,
    certificates: Vec<Listed>,
}

/// A certificate, its plan, and which kind of key it stands for.
struct Listed {
    certificate: Certificate,
    tier: Arc<str>,
    sandbox: Option<bool>,
}

impl MutualTls {
    /// What an API says; certificates that cannot be read are an error of its project.
    pub(super) fn compile(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<MutualTls> {
        let api = &site.api;
        let mandatory = match api.security.mutual_tls {
            SecurityMode::Off => return None,
            SecurityMode::Optional => false,
            SecurityMode::Mandatory => true,
        };
        let mut certificates = Vec::new();
        for listed in &api.client_certificates {
            match Certificate::parse(&listed.certificate) {
                Ok(certificate) => {
                    let tier = listed.tier.clone().unwrap_or_default();
                    certificates.push(Listed { certificate, tier, sandbox: listed.sandbox });
                }
                // Said once, not for every operation.
                Err(why) if api.operations.first().is_some_and(|first| Arc::ptr_eq(first, &site.operation)) => {
                    cx.error(place(&api.at), format!("client certificate `{}`: {why}", listed.alias));
                }
                Err(_) => {}
            }
        }
        gateway.state.security.wants_certificates().store(true, Ordering::Relaxed);
        let header = gateway.config.security.certificate_header.clone();
        Some(MutualTls { mandatory, header, certificates })
    }

    /// Whether the client showed a certificate that is let in; its owner and plan are noted.
    pub(super) fn check(&self, exchange: &mut Exchange, context: &CallContext) -> Result<bool, Refusal> {
        let passed_on = self.passed_on(exchange);
        let shown = exchange.client.certificate.as_deref().or(passed_on.as_deref());
        let found = shown.and_then(|shown| self.certificates.iter().find(|known| *known.certificate.der == *shown));
        let good = found.filter(|known| known.certificate.is_valid_at(unix_now()));
        let Some(Listed { certificate, tier, sandbox }) = good else {
            let reason = match (shown, found) {
                (None, _) => "no client certificate was shown",
                (Some(_), None) => "the client certificate is not listed in the API",
                (Some(_), Some(_)) => "the client certificate is not good at this time",
            };
            return if self.mandatory { Err(Refusal::invalid(reason)) } else { Ok(false) };
        };
        let mut caller = context.caller.borrow_mut();
        let caller = Rc::make_mut(&mut caller);
        caller.subject = certificate.subject.clone();
        caller.subscription_tier = tier.clone();
        if let Some(sandbox) = *sandbox {
            (caller.sandbox, caller.key_type_known) = (sandbox, true);
        }
        Ok(true)
    }

    /// The certificate a proxy passed on, in PEM (perhaps percent-encoded or on one line) or base64 of DER.
    fn passed_on(&self, exchange: &mut Exchange) -> Option<Vec<u8>> {
        let name = self.header.as_ref()?;
        let value = exchange.message.headers.get(name)?.to_owned();
        // Backends have no use for it, and it would let them be deceived in turn.
        exchange.message.headers.remove(name);
        let text = text::percent_decoded(&value, false);
        let pem = match text.contains("-----BEGIN") {
            true => text.into_owned(),
            false => format!("-----BEGIN CERTIFICATE-----{text}-----END CERTIFICATE-----"),
        };
        let certificate = Certificate::parse(pem.as_bytes()).ok()?;
        Some(certificate.der.to_vec())
    }
}
