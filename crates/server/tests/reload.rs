//! Hot reload under load: not one request fails, and a broken change changes nothing.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use support::{Connection, Folder, Server, api};

#[test]
fn not_one_request_fails_while_artifacts_change() {
    let folder = Folder::new("reload");
    let file = folder.write("artifacts/a.xml", api("v0"));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|number| {
            let (stop, port) = (stop.clone(), server.http);
            std::thread::spawn(move || {
                let mut seen = BTreeSet::new();
                let mut count = 0u64;
                let mut connection = Connection::open(port);
                while !stop.load(Ordering::Relaxed) {
                    let reply = connection.request("GET", "/a", &[], b"");
                    assert_eq!(reply.status, 200, "{reply:?}");
                    seen.insert(reply.body);
                    count += 1;
                    // Half of the clients open a connection for every request.
                    if number % 2 == 0 {
                        connection = Connection::open(port);
                    }
                }
                (seen, count)
            })
        })
        .collect();
    for version in 1..=3 {
        // As editors do it: a new file takes the place of the old one.
        let new = folder.write("artifacts/.a.xml.new", api(&format!("v{version}")));
        std::fs::rename(new, &file).unwrap();
        wait_for_answer(&server, &format!("v{version}"));
    }
    std::fs::write(&file, "<api name='A'").unwrap();
    server.wait_for_log("the change has 1 new error; keeping the previous configuration");
    assert_eq!(server.get("/a").body, "{\"text\": \"v3\"}");
    folder.write("artifacts/b.xml", api("b").replace("'A'", "'B'").replace("'/a'", "'/b'"));
    std::fs::write(&file, api("v4")).unwrap();
    wait_for_answer(&server, "v4");
    assert_eq!(server.get("/b").status, 200);
    std::fs::remove_file(folder.0.join("artifacts/b.xml")).unwrap();
    server.wait_for_log("b.xml is gone");
    assert_eq!(server.get("/b").status, 404);
    stop.store(true, Ordering::Relaxed);
    let mut all = BTreeSet::new();
    let mut count = 0;
    for client in clients {
        let (seen, requests) = client.join().unwrap();
        all.extend(seen);
        count += requests;
    }
    let expected: BTreeSet<String> = (0..=4).map(|version| format!("{{\"text\": \"v{version}\"}}")).collect();
    assert_eq!(all, expected);
    assert!(count > 100, "{count} requests");
    let metrics = server.admin("/metric-service/metrics").body;
    assert!(metrics.contains("penstock_reloads_refused_total 1\n"), "{metrics}");
    assert!(metrics.contains("penstock_replies_total{class=\"5xx\"} 0\n"), "{metrics}");
}

fn wait_for_answer(server: &Server, text: &str) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !server.get("/a").body.contains(text) {
        assert!(std::time::Instant::now() < end, "`{text}` was never served:\n{}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_watched_when_it_is_not_wanted() {
    let folder = Folder::new("no-watch");
    let file = folder.write("artifacts/a.xml", api("old"));
    let server = Server::start(&folder, &["run", "artifacts", "--no-watch"], "");
    std::fs::write(file, api("new")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert_eq!(server.get("/a").body, "{\"text\": \"old\"}");
}
