//! What JSONPath and the mapping cost, beside parsing the same document: microseconds and ratios.
//!
//! `cargo run --release -p penstock-json --example bench_json`

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use penstock_json::mapping::{Options, to_xml, write_json};
use penstock_json::path::{Dialect, JsonPath};
use penstock_xml::{Document, ParseOptions, TreeBuilder, WriteOptions, to_vec};
use serde_json::Value;

/// Long enough to be steady, short enough to be run often.
const ROUND: Duration = Duration::from_millis(200);

fn main() {
    println!("{:>9} {:<28} {:>10} {:>14}", "bytes", "what", "us", "to JSON parse");
    for orders in [3, 60, 600] {
        measure(&document(orders));
    }
    println!("numbers only");
    measure(&format!("[{}]", (0..600).map(|number| format!("[{number}.25,-{number}]")).collect::<Vec<_>>().join(",")));
}

/// Orders as a shop sends them.
fn document(orders: usize) -> String {
    let order = |number: usize| {
        format!(
            r#"{{"id":{number},"customer":"C-{number:05}","paid":true,"total":{number}.50,"lines":[{{"sku":"A-1","count":2}},{{"sku":"B-2","count":1}}],"note":null}}"#
        )
    };
    let orders: Vec<String> = (0..orders).map(order).collect();
    format!(r#"{{"shop":"north","orders":[{}]}}"#, orders.join(","))
}

fn measure(text: &str) {
    let options = Options::default();
    let value: Value = serde_json::from_str(text).expect("the document is JSON");
    let mut builder = TreeBuilder::new();
    to_xml(&value, &mut builder, &options).expect("the document can be mapped");
    let xml = to_vec(&builder.finish(), Document::ROOT, &WriteOptions::default());
    let tree = Document::parse(xml.clone(), &ParseOptions::default()).expect("the mapping is well-formed");
    let root = tree.root_element().expect("the mapping has a root");
    let path = |text: &str| JsonPath::parse(text, Dialect::Artifacts).expect("the path is one");
    let (near, filter, deep) = (path("$.orders[0].customer"), path("$.orders[?(@.total > 30)].id"), path("$..sku"));

    let parse = time(|| black_box(serde_json::from_str::<Value>(text).is_ok()));
    let rows = [
        ("parse JSON (serde_json)", parse),
        ("parse JSON (ours)", time(|| black_box(penstock_json::text::parse(text).is_ok()))),
        ("write JSON", time(|| black_box(!value.to_string().is_empty()))),
        ("definite path", time(|| black_box(near.read(&value).is_some()))),
        ("filter", time(|| black_box(filter.read(&value).is_some()))),
        ("descendants", time(|| black_box(deep.read(&value).is_some()))),
        (
            "value to tree",
            time(|| {
                let mut builder = TreeBuilder::with_capacity(1024);
                black_box(to_xml(&value, &mut builder, &options).is_ok())
            }),
        ),
        (
            "tree to JSON text",
            time(|| {
                let mut out = Vec::with_capacity(text.len());
                black_box(write_json(&mut out, &tree, root, &options).is_ok())
            }),
        ),
        (
            "XML text to JSON text",
            time(|| {
                let tree = Document::parse(xml.clone(), &ParseOptions::default()).expect("it parsed before");
                let mut out = Vec::with_capacity(text.len());
                black_box(write_json(&mut out, &tree, root, &options).is_ok())
            }),
        ),
    ];
    for (what, microseconds) in rows {
        println!("{:>9} {what:<28} {microseconds:>10.3} {:>14.2}", text.len(), microseconds / parse);
    }
}

/// Microseconds per call.
fn time(mut call: impl FnMut() -> bool) -> f64 {
    let start = Instant::now();
    let mut calls = 0_u32;
    while start.elapsed() < ROUND {
        for _ in 0..16 {
            call();
        }
        calls += 16;
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
}
