//! Identity: issuers and their keys, tokens and certificates parsed, verified and issued, revocation, users and passwords.
//!
//! `jose.rs` parses tokens, `algorithm.rs` verifies signatures. `jwks.rs` fetches keys from the addresses that
//! `discovery.rs` finds, `introspection.rs` sends opaque tokens to their issuers, `revoked.rs` knows which tokens are
//! revoked. `signer.rs` holds a private key, `issue.rs` makes tokens.
//!
//! The crate is independent of routes, policies, requests and files. Start reading at [`Jws`] and [`PublicKey`], then
//! [`KeyRing`] and [`Signer`].

mod access;
mod algorithm;
mod certificate;
mod config;
mod discovery;
mod fetch;
mod introspection;
mod issue;
mod jose;
mod jwks;
mod revoked;
mod shards;
mod signer;

pub use access::AccessList;
pub use algorithm::{Algorithm, PublicKey};
pub use certificate::{Certificate, pem_blocks};
pub use config::{BackendJwt, Encoding, Introspection, Issuer, Secret, TrustedKey, User, knows};
pub use discovery::{KeySource, document_of};
pub use introspection::{IntrospectedToken, Introspector, OpaqueTokens, OwnTokens, is_opaque};
pub use issue::{Claims, issue};
pub use jose::{Jws, Malformed, TOKEN_BYTES_MAX, numeric_date};
pub use jwks::{KeyRing, Signed};
pub use revoked::{Revocations, RevokedSource, RevokedToken, identify, rewritten};
pub use signer::{Signer, SignerError};

/// Seconds since 1970.
pub fn unix_now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
