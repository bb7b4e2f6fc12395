//! The stream must answer as the tree does.

use std::sync::{Arc, OnceLock};

use penstock_xml::{Document, ParseOptions};
use penstock_xpath::stream::{Answer, Stream, Surroundings, Want};
use penstock_xpath::{DynamicContext, NoHost, Session, StaticContext, XPath};

use crate::xml::LIMITS;

const EXPRESSIONS: &[&str] = &[
    "//a[1]/b",
    "//a[b='x']/c",
    "//a[b][2]//c",
    "/a/b[@c='d']",
    "/a/b/c",
    "//p:a/@p:c",
    "//*[namespace-uri()='u']/b",
    "//@b",
    "//p:a/b",
    "//a/text()",
    "//a | //b/@c",
    "count(//a)",
    "//*[local-name()='a'][2]",
    "//a = 'x'",
    "//a[not(b/c > 1)]",
    "concat(//a, //b)",
];

fn compiled() -> &'static [(XPath, Stream)] {
    static COMPILED: OnceLock<Vec<(XPath, Stream)>> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let context = StaticContext::new().namespace("p", "u");
        let compile = |text: &&str| {
            let expression = XPath::compile(text, &context).expect("an expression");
            let stream = Stream::compile(&expression, Want::Text).expect("a streamable expression");
            (expression, stream)
        };
        EXPRESSIONS.iter().map(compile).collect()
    })
}

/// For every well-formed document without a document type declaration the two ways agree.
pub fn stream(data: &[u8]) {
    let options = ParseOptions::with_limits(LIMITS);
    let surroundings = Surroundings { options: options.clone(), ..Surroundings::default() };
    let document = Document::parse(data.to_vec(), &options).ok().map(Arc::new);
    let step = 1 + usize::from(data.first().copied().unwrap_or(0) % 29);
    for (expression, stream) in compiled() {
        let mut run = stream.start(&surroundings);
        let mut end = step.min(data.len());
        let streamed = loop {
            match run.feed(&data[..end], end == data.len()) {
                Ok(Answer::NeedMore) => end = (end + step).min(data.len()),
                Ok(Answer::Unsuitable(_)) | Err(_) => break None,
                Ok(answer) => break Some(answer),
            }
        };
        let (Some(document), Some(streamed)) = (&document, streamed) else { continue };
        if document.source() != data {
            continue;
        }
        let (session, root) = Session::with_document(Arc::clone(document));
        let cx = DynamicContext::new(&session, &NoHost).with_node(root);
        let expected = expression.evaluate_string(&cx).expect("a value").into_owned();
        assert_eq!(streamed, Answer::Text(expected), "{}", expression.text());
    }
}
