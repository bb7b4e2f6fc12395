//! Keys, tokens and who holds them: what the credential policies decide by.
//!
//! A token goes through `jose.rs` (what it says), `issuers.rs` (whose it is), `algorithm.rs` (whether the signature
//! holds) once; `cache.rs` remembers it per core until it expires or is revoked. `jwks.rs` fetches keys from where
//! `discovery.rs` finds them, `introspection.rs` introspects opaque tokens, `signer.rs`
//! holds our own, `issue.rs` makes tokens. Nothing here is a policy, nothing here logs.
//!
//! Start reading at `Verifier`.

mod access;
mod algorithm;
mod cache;
mod certificate;
mod config;
mod discovery;
mod fetch;
mod introspection;
mod issue;
mod issuers;
mod jose;
mod jwks;
mod revoked;
mod signer;
mod state;
mod token;

pub use access::AccessList;
pub use algorithm::{Algorithm, PublicKey};
pub use certificate::{Certificate, pem_blocks};
pub(crate) use config::knows;
pub use config::{BackendJwt, Encoding, Introspection, Issuer, Secret, SecurityConfig, TrustedKey, User};
pub use issue::{Claims, issue};
pub use issuers::OWN_ISSUER;
pub(crate) use issuers::{Among, Need, Outcome, Verifier};
pub use jose::{Jws, Malformed, TOKEN_BYTES_MAX};
pub(crate) use jwks::KeyRing;
pub(crate) use revoked::rewritten;
pub use revoked::{Revocations, RevokedSource, RevokedToken};
pub use signer::{Signer, SignerError};
pub(crate) use state::ForBackend;
pub use state::SecurityState;
pub(crate) use token::{Kind, Refusal, Verified};

/// Seconds since 1970.
pub(crate) fn unix_now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
