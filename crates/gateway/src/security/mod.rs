//! The tokens of callers: verified once, remembered per core.
//!
//! A token goes through `issuers.rs` (its issuer, its signature) once; `cache.rs` remembers it per core until it expires
//! or is revoked. Issuers, keys and the formats of tokens are the crate `penstock-identity`. Nothing here is a policy,
//! nothing here logs.
//!
//! Start reading at `Verifier`.

mod cache;
mod config;
mod issuers;
mod state;
mod token;

pub use config::SecurityConfig;
pub use issuers::OWN_ISSUER;
pub(crate) use issuers::{Among, Need, Outcome, Verifier};
pub use penstock_identity::{
    AccessList, Algorithm, BackendJwt, Certificate, Claims, Encoding, Introspection, Issuer, Jws, Malformed,
    OpaqueTokens, OwnTokens, PublicKey, Revocations, RevokedSource, RevokedToken, Secret, Signer, SignerError,
    TOKEN_BYTES_MAX, TrustedKey, User, issue, pem_blocks,
};
pub(crate) use penstock_identity::{knows, unix_now};
pub(crate) use state::ForBackend;
pub use state::SecurityState;
pub(crate) use token::{Refusal, TokenKind, Verified};
