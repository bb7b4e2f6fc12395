//! temporary
use penstock_xml::{Document, Event, ParseOptions, Reader};
use std::time::Instant;

fn soap(size: usize) -> String {
    let mut s = String::from(
        "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Header/><soapenv:Body><m:buyStocks xmlns:m=\"http://services.samples/xsd\">",
    );
    let tail = "</m:buyStocks></soapenv:Body></soapenv:Envelope>";
    let mut i = 0;
    loop {
        let o = format!(
            "<order><symbol>S{}</symbol><buyerID>buyer{}</buyerID><price>{}.{:02}</price><volume>{}</volume></order>",
            i % 97,
            i * 7 % 1000,
            i % 300,
            i % 100,
            i * 13 % 5000
        );
        if i > 0 && s.len() + o.len() + tail.len() > size {
            break;
        }
        s.push_str(&o);
        i += 1;
    }
    s + tail
}
fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    for size in if sizes.is_empty() { vec![500, 1000, 10_000, 100_000] } else { sizes } {
        let text = bytes::Bytes::from(soap(size));
        let n = 10_000_000 / size;
        let mut best = [f64::MAX; 3];
        let mut nodes = 0;
        for _ in 0..9 {
            let t = Instant::now();
            for _ in 0..n {
                nodes =
                    std::hint::black_box(Document::parse(text.clone(), &ParseOptions::default()).unwrap()).node_count();
            }
            best[0] = best[0].min(t.elapsed().as_secs_f64() / n as f64 * 1e6);
            let m = n / 10;
            let t = Instant::now();
            let o = ParseOptions::default();
            for _ in 0..m {
                let mut r = Reader::new(&text, &o);
                while !matches!(r.next_event().unwrap(), Event::End) {}
            }
            best[1] = best[1].min(t.elapsed().as_secs_f64() / m as f64 * 1e6);
        }
        println!("{} bytes, {} nodes: tree {:.2} µs, events {:.2} µs", text.len(), nodes, best[0], best[1]);
    }
}
