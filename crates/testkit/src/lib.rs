//! Tests of the whole: documentation pages as tests, a scripted backend, the dependency table.
//!
//! It may use every crate and nothing of the product depends on it; it knows nothing of sockets, the
//! tests of the running binary live with the binary.
//!
//! Start reading at [`pages`].

pub mod pages;
