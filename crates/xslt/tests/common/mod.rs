//! Helpers of the tests: a stylesheet body and a source in, text out.

#![allow(dead_code, clippy::unwrap_used, reason = "not every test file uses every helper; a panic here is the report")]

use std::sync::Arc;

use penstock_xml::{Document, ParseOptions};
use penstock_xslt::{CompileOptions, NoResolver, Resolver, Resource, Stylesheet, TransformOptions, XsltError};

/// Finds modules and documents among pairs of name and text.
pub struct Files(pub &'static [(&'static str, &'static str)]);

impl Resolver for Files {
    fn resolve(&self, reference: &str, _base: &str) -> Result<Resource, String> {
        let found = self.0.iter().find(|(name, _)| *name == reference);
        found
            .map(|(name, text)| Resource { uri: (*name).into(), content: text.as_bytes().into() })
            .ok_or_else(|| format!("no file `{reference}`"))
    }
}

/// A whole stylesheet around top-level elements; the result has no XML declaration.
pub fn stylesheet(version: &str, body: &str) -> String {
    format!(
        r#"<xsl:stylesheet version="{version}" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
            xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:e="http://exslt.org/common" xmlns:f="urn:f"
            exclude-result-prefixes="xs f e"><xsl:output omit-xml-declaration="yes"/>{body}</xsl:stylesheet>"#
    )
}

pub fn compile(text: &str, resolver: &dyn Resolver) -> Result<Stylesheet, Vec<XsltError>> {
    let options = CompileOptions { base_uri: "main.xsl", resolver, entities: None };
    Stylesheet::compile(text.to_owned(), &options).map(|(stylesheet, _)| stylesheet)
}

pub fn parse(source: &str) -> Arc<Document> {
    let options = ParseOptions { base_uri: Some("source.xml".into()), ..ParseOptions::default() };
    Arc::new(Document::parse(source.to_owned(), &options).unwrap())
}

/// The result of a stylesheet body, or the code of what went wrong.
pub fn transform(version: &str, body: &str, source: &str) -> String {
    transform_with(&stylesheet(version, body), source, &NoResolver)
}

pub fn transform_with(text: &str, source: &str, resolver: &dyn Resolver) -> String {
    let compiled = match compile(text, resolver) {
        Ok(compiled) => compiled,
        Err(errors) => return errors.iter().map(|error| &*error.code).collect::<Vec<_>>().join(" "),
    };
    let options = TransformOptions { resolver, ..TransformOptions::default() };
    let mut out = Vec::new();
    match compiled.transform(&parse(source), Document::ROOT, &options, &mut out) {
        Ok(_) => String::from_utf8(out).unwrap(),
        Err(error) => error.code.into_owned(),
    }
}
