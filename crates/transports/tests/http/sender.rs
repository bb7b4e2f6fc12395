//! What the sender makes of backends that behave, and of those that do not.

use std::time::Duration;

use crate::common::{Act, Chunks, backend, collect, get, run, sender};
use bytes::Bytes;
use penstock_engine::Fault;
use penstock_engine::ports::{Outbound, Outgoing};
use penstock_message::{Body, Message, Method, SizeHint};
use penstock_transports::http::HttpSender;

const END: &str = "\r\n\r\n";

/// Status and body, or the fault's number.
async fn outcome(sender: &HttpSender, outgoing: Outgoing) -> Result<(u16, String), Option<u32>> {
    match sender.send(outgoing).await {
        Ok(mut reply) => {
            let body = collect(&mut reply.body).await;
            Ok((
                reply.status,
                body.map_or_else(|error| format!("error: {error}"), |bytes| String::from_utf8_lossy(&bytes).into()),
            ))
        }
        Err(fault) => Err(fault.number()),
    }
}

fn check(script: Vec<Act>, expected: Result<(u16, &str), u32>) {
    let shown = format!("{expected:?}");
    let result = run(async {
        let (address, _) = backend(vec![script]).await;
        let (_core, sender) = sender();
        let mut outgoing = get(address, "/");
        outgoing.options.response_timeout = Duration::from_millis(100);
        outcome(&sender, outgoing).await
    });
    assert_eq!(result, expected.map(|(status, body)| (status, body.to_owned())).map_err(Some), "{shown}");
}

fn answers(text: &'static str, expected: Result<(u16, &str), u32>) {
    check(vec![Act::Until(END), Act::Say(text)], expected);
}

#[test]
fn replies_are_read_however_they_are_framed() {
    answers("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Ok((200, "abc")));
    answers("HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n", Ok((404, "")));
    answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", Ok((200, "abc")));
    answers("HTTP/1.1 200 OK\r\n\r\nabc", Ok((200, "abc")));
    answers("HTTP/1.0 200 OK\r\n\r\nabc", Ok((200, "abc")));
    answers("HTTP/1.1 204 No Content\r\n\r\n", Ok((204, "")));
    answers("HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", Ok((304, "")));
    answers(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
        Ok((200, "a")),
    );
}

#[test]
fn every_failure_has_its_code() {
    answers("nonsense\r\n\r\n", Err(101_506));
    answers("HTTP/1.1 200 OK\nContent-Length: 0\n\n", Err(101_506));
    answers("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", Err(101_506));
    answers("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Err(101_506));
    answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Err(101_506));
    answers("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", Err(101_506));
    answers("HTTP/1.1 101 Switching Protocols\r\n\r\n", Err(101_506));
    answers("HTTP/1.1 200 OK\r\nContent", Err(101_505));
    answers("", Err(101_505));
    check(vec![Act::Until(END), Act::Say("HTTP/1.1 20"), Act::Reset], Err(101_501));
    check(vec![Act::Until(END), Act::Hold], Err(101_504));
    check(vec![Act::Until(END), Act::Say("HTTP/1.1 200 OK\r\nContent-Le"), Act::Hold], Err(101_504));
    answers(
        "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nabc",
        Ok((200, "error: the body ended early: the connection was closed")),
    );
    answers(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        Ok((200, "error: a chunk size is malformed")),
    );
    let result = run(async {
        let (_core, sender) = sender();
        // Only root may listen on port 1, and no server does.
        let free = ([127, 0, 0, 1], 1).into();
        [
            outcome(&sender, get(free, "/")).await,
            outcome(&sender, Outgoing { url: "http://nowhere.invalid/".into(), ..get(free, "/") }).await,
            outcome(&sender, Outgoing { url: "gopher://a/".into(), ..get(free, "/") }).await,
        ]
    });
    assert_eq!(result, [Err(Some(101_503)), Err(Some(101_503)), Err(Some(101_503))]);
}

#[test]
fn requests_leave_as_the_options_say() {
    let check = |change: fn(&mut Outgoing), expected: &str| {
        let heard = run(async {
            let (address, heard) = backend(vec![vec![Act::Until(END), Act::Say("HTTP/1.1 200 OK\r\n\r\n")]]).await;
            let (_core, sender) = sender();
            let mut outgoing = get(address, "/p?q=1");
            change(&mut outgoing);
            sender.send(outgoing).await.unwrap();
            heard.borrow().concat().replace(&address.to_string(), "B")
        });
        assert_eq!(heard, expected);
    };
    check(|_| (), "GET /p?q=1 HTTP/1.1\r\nHost: B\r\n\r\n");
    check(
        |outgoing| outgoing.options.http.http10 = true,
        "GET /p?q=1 HTTP/1.0\r\nHost: B\r\nConnection: close\r\n\r\n",
    );
    check(|outgoing| outgoing.options.http.close = true, "GET /p?q=1 HTTP/1.1\r\nHost: B\r\nConnection: close\r\n\r\n");
    check(|outgoing| outgoing.options.http.absolute_form = true, "GET http://B/p?q=1 HTTP/1.1\r\nHost: B\r\n\r\n");
    check(
        |outgoing| {
            for (name, value) in [
                ("Host", "h"),
                ("Connection", "x"),
                ("Content-Length", "9"),
                ("TE", "a"),
                ("X-Y", "z\r\nA: b"),
                ("Bad\r\n", "c"),
            ] {
                outgoing.message.headers.append(name, value);
            }
        },
        "GET /p?q=1 HTTP/1.1\r\nHost: h\r\nX-Y: zA: b\r\n\r\n",
    );
    check(|outgoing| outgoing.method = Method::Post, "POST /p?q=1 HTTP/1.1\r\nHost: B\r\nContent-Length: 0\r\n\r\n");
}

fn post(address: std::net::SocketAddr, body: Body) -> Outgoing {
    Outgoing { method: Method::Post, message: Message { body, ..Message::default() }, ..get(address, "/") }
}

#[test]
fn bodies_leave_with_a_length_when_it_is_known() {
    let check = |body: fn() -> Body, content_length: bool, end: &'static str, expected: &str| {
        let heard = run(async {
            let (address, heard) = backend(vec![vec![Act::Until(end), Act::Say("HTTP/1.1 200 OK\r\n\r\n")]]).await;
            let (_core, sender) = sender();
            let mut outgoing = post(address, body());
            outgoing.options.http.content_length = content_length;
            sender.send(outgoing).await.unwrap();
            heard.borrow().concat().replace(&address.to_string(), "B")
        });
        assert_eq!(heard, format!("POST / HTTP/1.1\r\nHost: B\r\n{expected}"));
    };
    let unknown = || Body::stream(Box::new(Chunks::new(&["ab", "c!"], SizeHint::Unknown)));
    let exact = || Body::stream(Box::new(Chunks::new(&["ab", "c!"], SizeHint::Exact(4))));
    check(|| Body::bytes("abc!"), false, "!", "Content-Length: 4\r\n\r\nabc!");
    check(exact, false, "!", "Content-Length: 4\r\n\r\nabc!");
    check(unknown, true, "!", "Content-Length: 4\r\n\r\nabc!");
    check(unknown, false, "0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\nc!\r\n0\r\n\r\n");
}

#[test]
fn connections_are_used_again_while_they_can_be() {
    let twice = |first: &'static str| {
        run(async {
            let script = vec![
                Act::Until(END),
                Act::Say(first),
                Act::Until(END),
                Act::Say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2"),
            ];
            let other = vec![Act::Until(END), Act::Say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n3")];
            let (address, heard) = backend(vec![script, other]).await;
            let (_core, sender) = sender();
            let first = outcome(&sender, get(address, "/")).await.unwrap();
            let second = outcome(&sender, get(address, "/")).await.unwrap();
            assert_eq!(first.0, 200);
            (first.1, second.1, heard.borrow().len())
        })
    };
    let big: &'static str =
        Box::leak(format!("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n{}", "x".repeat(200_000)).into_boxed_str());
    let same = |body: &str| (body.to_owned(), "2".to_owned(), 1);
    let fresh = |body: &str| (body.to_owned(), "3".to_owned(), 2);
    assert_eq!(twice("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"), same("1"));
    assert_eq!(twice("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), same(""));
    assert_eq!(twice("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n"), same("1"));
    assert_eq!(twice("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\n1"), same("1"));
    assert_eq!(twice(big), same(&"x".repeat(200_000)));
    assert_eq!(twice("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1"), fresh("1"));
    assert_eq!(twice("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n1"), fresh("1"));
    // What follows a reply uninvited must not become the reply to the next request.
    assert_eq!(twice("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\n\r\n"), fresh("1"));
}

#[test]
fn a_connection_that_the_backend_closed_meanwhile_is_replaced() {
    run(async {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
        let closes = vec![Act::Until(END), Act::Say(ok), Act::Until(END)];
        let answers = vec![Act::Until("b!"), Act::Say(ok)];
        let (address, heard) = backend(vec![closes, answers]).await;
        let (core, sender) = sender();
        outcome(&sender, get(address, "/")).await.unwrap();
        // The first connection reads this request and closes without a response: sent again on another.
        let put = Outgoing { method: Method::Put, ..post(address, Body::bytes("b!")) };
        assert_eq!(outcome(&sender, put).await, Ok((200, "a".into())));
        assert_eq!(heard.borrow().len(), 2);
        assert_eq!((core.counters.connects.get(), core.counters.reused.get()), (2, 1));
    });
}

/// What the backend may have done before it closed is not done again.
#[test]
fn a_request_that_must_not_be_repeated_is_not() {
    for method in [Method::Post, Method::Patch, Method::Other("APPROVE".into())] {
        run(async {
            let ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
            let closes = vec![Act::Until(END), Act::Say(ok), Act::Until(END)];
            let (address, heard) = backend(vec![closes, vec![Act::Until(END), Act::Say(ok)]]).await;
            let (_core, sender) = sender();
            outcome(&sender, get(address, "/")).await.unwrap();
            let once = Outgoing { method: method.clone(), ..post(address, Body::empty()) };
            assert_eq!(outcome(&sender, once).await, Err(Some(101_505)), "{method:?}");
            assert_eq!(heard.borrow().len(), 1);
        });
    }
}

/// A method that a flow made of what a client sent does not become a request of its own.
#[test]
fn a_method_that_is_none_is_a_fault() {
    run(async {
        let (_core, sender) = sender();
        for method in ["GET /x HTTP/1.1\r\nHost: h\r\n\r\nGET", "G T", "", "G\0"] {
            for http2 in [false, true] {
                let mut outgoing = get("127.0.0.1:1".parse().unwrap(), "/");
                outgoing.method = Method::Other(method.into());
                outgoing.options.http.http2 = http2;
                let fault = sender.send(outgoing).await.unwrap_err();
                assert!(fault.to_string().contains("is not a method"), "{fault}");
            }
        }
    });
}

/// A reply that says it has a body where none can be: the connection is not used again, so that the body, should it come,
/// belongs to no request.
#[test]
fn what_a_reply_without_body_announces_is_not_the_next_reply() {
    for announced in ["Content-Length: 5", "Transfer-Encoding: chunked"] {
        run(async {
            let reply: &'static str = format!("HTTP/1.1 204 No Content\r\n{announced}\r\n\r\n").leak();
            let ok = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
            let first = vec![Act::Until(END), Act::Say(reply), Act::Hold];
            let (address, heard) = backend(vec![first, vec![Act::Until(END), Act::Say(ok)]]).await;
            let (_core, sender) = sender();
            assert_eq!(outcome(&sender, get(address, "/")).await, Ok((204, String::new())));
            assert_eq!(outcome(&sender, get(address, "/")).await, Ok((200, "a".into())));
            assert_eq!(heard.borrow().len(), 2, "{announced}");
        });
    }
}

#[test]
fn a_fresh_connection_that_closes_is_a_fault() {
    let fault: Fault = run(async {
        let (address, _) = backend(vec![vec![Act::Until(END)]]).await;
        let (_core, sender) = sender();
        sender.send(get(address, "/")).await.unwrap_err()
    });
    assert_eq!((fault.number(), fault.retry), (Some(101_505), true));
}

#[test]
fn an_early_reply_wins_over_the_rest_of_the_body() {
    run(async {
        let reply = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig";
        let (address, _) = backend(vec![vec![Act::Until(END), Act::Say(reply), Act::Hold]]).await;
        let (_core, sender) = sender();
        let body = Bytes::from(vec![b'x'; 20_000_000]);
        assert_eq!(outcome(&sender, post(address, Body::bytes(body))).await, Ok((413, "big".into())));
    });
}
