//! What checks a request before its service sees it.

pub mod username_token;
