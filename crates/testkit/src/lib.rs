//! Tests of the whole: documentation pages as tests, fake backends, conformance runners, the dependency table.
