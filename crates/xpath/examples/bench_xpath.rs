//! Nanoseconds per evaluation of typical expressions on a document of about 100 KB.
//!
//! `cargo run --release -p penstock-xpath --example bench_xpath [EXPRESSION [TIMES]]`: with an expression only that one
//! is evaluated a given number of times, for an instruction counter.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for a person at a terminal")]

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use penstock_xml::{Document, ParseOptions};
use penstock_xpath::ast::Name;
use penstock_xpath::{
    DynamicContext, FunctionRef, Host, HostCall, Resolver, Result, ResultKind, Sequence, Session, StaticContext, XPath,
};

struct Properties;

impl Resolver for Properties {
    fn function(&self, _: &Name, _: usize) -> Option<FunctionRef> {
        Some(FunctionRef { index: 0, result: ResultKind::String })
    }
}

impl Host for Properties {
    fn call(&self, _: &HostCall<'_>) -> Result<Sequence> {
        Ok(Sequence::from("value"))
    }
}

fn document() -> String {
    let mut text = String::from(
        "<soap:Envelope xmlns:soap=\"http://schemas.xmlsoap.org/soap/envelope/\"><soap:Header/><soap:Body><orders>",
    );
    for index in 0..850 {
        let _ = writeln!(
            text,
            "<order id=\"o{index}\"><symbol>SYM{}</symbol><price>{}.5</price><quantity unit=\"pc\">{}</quantity></order>",
            index % 10,
            index % 40,
            index % 7
        );
    }
    text.push_str("</orders></soap:Body></soap:Envelope>");
    text
}

const EXPRESSIONS: &[&str] = &[
    "get-property('x')",
    "'constant'",
    "$body/*[1]",
    "//order[1]/symbol",
    "(//order)[1]/symbol",
    "//order[symbol = 'SYM9']",
    "//order[@id = 'o849']/price",
    "//symbol = 'SYM5'",
    "boolean(//missing)",
    "count(//order)",
    "count(//order[price > 20])",
    "count(/soap:Envelope/soap:Body/orders/order)",
    "sum(//price)",
    "string(//order[last()]/@id)",
    "//*[local-name() = 'quantity'][1]",
    "concat('id: ', //order[2]/@id, ', ', normalize-space(//order[3]/symbol))",
    "count(//order[position() mod 2 = 0]/quantity/@unit)",
];

fn main() {
    let source = document();
    let document = Arc::new(Document::parse(source.clone().into_bytes(), &ParseOptions::default()).unwrap());
    let context = StaticContext::new()
        .namespace("soap", "http://schemas.xmlsoap.org/soap/envelope/")
        .alias("body", "/*/*[2]")
        .resolver(&Properties);
    println!("{} bytes, {} nodes", source.len(), document.node_count());
    let mut arguments = std::env::args().skip(1);
    if let Some(text) = arguments.next() {
        let times = arguments.next().and_then(|times| times.parse().ok()).unwrap_or(1000);
        let compiled = XPath::compile(&text, &context).unwrap();
        measure(&compiled, &document, times);
        return;
    }
    for text in EXPRESSIONS {
        let start = Instant::now();
        let compiled = XPath::compile(text, &context).unwrap();
        let compile = start.elapsed();
        let once = measure(&compiled, &document, 10);
        let times = (20_000_000 / once.max(1)).clamp(10, 200_000) as usize;
        // The least of a few runs is the cost without other load.
        let best = (0..5).map(|_| measure(&compiled, &document, times)).min().unwrap_or(0);
        println!("{best:>9} ns  (compiled in {:>6} ns)  {text}", compile.as_nanos());
    }
}

/// Nanoseconds per evaluation to a string, with a new session each time as a message has it.
fn measure(compiled: &XPath, document: &Arc<Document>, times: usize) -> u128 {
    let start = Instant::now();
    for _ in 0..times {
        let (session, root) = Session::with_document(Arc::clone(document));
        let cx = DynamicContext::new(&session, &Properties).with_node(root);
        black_box(compiled.evaluate_string(&cx).unwrap());
    }
    start.elapsed().as_nanos() / times as u128
}
