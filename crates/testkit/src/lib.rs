//! Tests of the whole: documentation pages as tests, fake backends, conformance runners, the dependency table.
//!
//! Start reading at [`pages`]. Nothing of the product depends on this crate.

pub mod pages;
