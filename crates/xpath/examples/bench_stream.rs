//! One measurement: CPU microseconds per routing decision, from bytes, printed as one number.
//!
//! `bench_stream stream|tree|pass EXPRESSION SOURCE MILLISECONDS`, driven by `tools/bench-xml/parse.py`. `stream`
//! answers from the reader, `tree` parses first, `pass` only reads the document from end to end.

#[path = "../../../tools/bench-xml/measure.rs"]
mod measure;

use std::hint::black_box;
use std::sync::Arc;

use penstock_xml::{Document, ParseOptions, Reader, Token};
use penstock_xpath::stream::{Stream, Surroundings, Want};
use penstock_xpath::{DynamicContext, NoHost, Session, StaticContext, XPath};

use measure::{Outcome, print_cost};

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, expression, source, milliseconds] = &arguments[..] else {
        return Err("usage: bench_stream stream|tree|pass EXPRESSION SOURCE MILLISECONDS".into());
    };
    let source = Document::parse(std::fs::read(source)?, &ParseOptions::default())?.source().clone();
    let expression = XPath::compile(expression, &StaticContext::new())?;
    let stream = Stream::compile(&expression, Want::Text)?;
    let (surroundings, options) = (Surroundings::default(), ParseOptions::default());
    let once = || -> Outcome {
        match what.as_str() {
            "stream" => {
                black_box(stream.answer(&source, &surroundings)?);
            }
            "tree" => {
                let document = Document::parse(source.clone(), &options)?;
                let (session, root) = Session::with_document(Arc::new(document));
                let cx = DynamicContext::new(&session, &NoHost).with_node(root);
                black_box(expression.evaluate_string(&cx)?);
            }
            _ => {
                let mut reader = Reader::new(&source, &options);
                while black_box(reader.advance()?) != Token::EndOfInput {}
            }
        }
        Ok(())
    };
    print_cost(milliseconds, once)
}
