//! The little of HTTP that a load generator needs: addresses, request bytes, response framing.
pub mod request;
pub mod response;
pub mod url;
