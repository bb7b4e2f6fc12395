//! WS-Security 1.0 and 1.1 of SOAP envelopes, as required by WS-SecurityPolicy: UsernameToken, Timestamp, XML Signature
//! and XML Encryption with X.509 certificates.
//!
//! Independent of messages, HTTP, files and the clock: a tree and the time come in, a tree or a [`Refusal`] comes out.
//!
//! Start reading at [`Policy`] (the requirements of a policy document), then [`Service::receive`] (a request) and
//! [`Service::send`] (its response). `c14n`, `signature` and `encryption` are the three specifications of W3C, `rsa`
//! holds the only operations with a private key.

mod algorithm;
mod c14n;
mod certificate;
mod cipher;
mod derived;
mod encryption;
mod keys;
mod names;
mod policy;
mod receive;
mod reference;
mod refusal;
mod rsa;
mod send;
mod service;
mod signature;
mod time;
mod tree;
mod username_token;

pub use algorithm::Suite;
pub use c14n::{Canonicalization, canonicalize};
pub use certificate::Certificate;
pub use keys::{KeyError, Keys};
pub use policy::{Policy, PolicyProblem};
pub use receive::Received;
pub use refusal::{Refusal, RefusalCode};
pub use service::{Request, SecurityContext, Service};
pub use username_token::{NonceCache, Passwords};
