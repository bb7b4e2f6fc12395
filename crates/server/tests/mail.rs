//! Mail with the running program: endpoints over SMTP, proxy services that listen on a mailbox.
//! `tools/with-greenmail cargo test -p penstock-server --test mail -- --ignored`

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::broker::{Gate, backend};
use support::{Folder, Server};

/// Nothing that is waited for here takes longer on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn port(protocol: &str) -> u16 {
    std::env::var(format!("PENSTOCK_TEST_{protocol}")).expect("run under tools/with-greenmail").parse().unwrap()
}

/// A client of the mail server, which is not Penstock's.
struct Peer {
    reader: BufReader<TcpStream>,
}

impl Peer {
    fn open(protocol: &str) -> Peer {
        let mut peer = Peer { reader: BufReader::new(TcpStream::connect(("127.0.0.1", port(protocol))).unwrap()) };
        peer.line();
        peer
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the mail server closed the connection");
        line
    }

    fn write(&mut self, line: &str) {
        self.reader.get_mut().write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    /// An SMTP command.
    fn smtp(&mut self, line: &str) {
        self.write(line);
        while self.line().as_bytes()[3] == b'-' {}
    }

    /// An IMAP command; what the server answers.
    fn imap(&mut self, command: &str) -> String {
        self.write(&format!("t {command}"));
        let mut answer = String::new();
        loop {
            let line = self.line();
            if line.starts_with("t ") {
                return answer;
            }
            answer += &line;
        }
    }
}

fn send(to: &str, headers: &str, text: &str) {
    let mut peer = Peer::open("SMTP");
    for line in ["EHLO peer", "MAIL FROM:<peer@localhost>", &format!("RCPT TO:<{to}@localhost>"), "DATA"] {
        peer.smtp(line);
    }
    peer.smtp(&format!("From: peer@localhost\r\nTo: {to}@localhost\r\n{headers}\r\n\r\n{text}\r\n."));
    peer.smtp("QUIT");
}

/// All mails of a folder.
fn mails(user: &str, folder: &str) -> String {
    let mut peer = Peer::open("IMAP");
    peer.imap(&format!("LOGIN {user}@localhost any"));
    peer.imap(&format!("SELECT {folder}"));
    peer.imap("FETCH 1:* BODY.PEEK[]")
}

fn wait_for_mails(user: &str, folder: &str, server: &Server, test: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = mails(user, folder);
        if test(&found) {
            return found;
        }
        assert!(Instant::now() < end, "`{folder}` of {user}: {found}\n{}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A sender of the configuration.
fn sender(name: &str, port: u16, parameters: &str) -> String {
    format!(
        r#"
[connections.{name}]
transport = "mailto"
"mail.smtp.host" = "localhost"
"mail.smtp.port" = "{port}"
"mail.smtp.user" = "penstock@localhost"
"mail.smtp.password" = "any"
"mail.smtp.from" = "penstock@localhost"
{parameters}
"#
    )
}

/// A proxy service that listens on the mailbox of a user.
fn listener(user: &str, protocol: &str, port: u16, sequence: &str, parameters: &str) -> String {
    let family = protocol.trim_end_matches('s');
    format!(
        r#"<proxy xmlns="http://ws.apache.org/ns/synapse" name="{user}" transports="mailto">
  <target><inSequence>{sequence}</inSequence></target>
  <parameter name="transport.PollInterval">50ms</parameter>
  <parameter name="transport.mail.Address">{user}@localhost</parameter>
  <parameter name="transport.mail.Protocol">{protocol}</parameter>
  <parameter name="mail.{family}.host">localhost</parameter>
  <parameter name="mail.{family}.port">{port}</parameter>
  <parameter name="mail.{family}.user">{user}@localhost</parameter>
  <parameter name="mail.{family}.password">any</parameter>
  {parameters}
</proxy>"#
    )
}

const TRUST: &str = r#"<parameter name="mail.pop3.ssl.trust">localhost</parameter>"#;

/// What the flow does is written in the subject.
const TAKE: &str = r#"<log><property name="took" expression="$trp:Subject"/><property name="of" expression="$trp:From"/></log>
    <filter source="$trp:Subject" regex="fail.*"><then><throwError type="MINE" errorMessage="it broke"/></then></filter>"#;

#[test]
#[ignore = "needs GreenMail"]
fn an_endpoint_sends_mails_with_and_without_tls() {
    let folder = Folder::new("mail-endpoint");
    let proxy = |name: &str, address: &str| {
        format!(
            r#"<proxy xmlns="http://ws.apache.org/ns/synapse" name="{name}" transports="http"><target><inSequence>
  <property name="Subject" value="Order 7" scope="transport"/><property name="OUT_ONLY" value="true"/>
  <property name="messageType" value="application/json" scope="axis2"/>
  <call><endpoint><address uri="{address}"/></endpoint></call>
  <respond/></inSequence></target></proxy>"#
        )
    };
    for (name, address) in [
        ("Plain", "mailto:first@localhost,second@localhost"),
        ("Secure", "mailtoSecure:third@localhost"),
        ("Untrusted", "mailtoUntrusted:third@localhost"),
        ("Unknown", "mailtoAway:third@localhost"),
        ("Wrong", "mailto:third"),
    ] {
        folder.write(&format!("artifacts/{name}.xml"), proxy(name, address));
    }
    let toml = [
        sender(
            "mailto",
            port("SMTP"),
            "\"transport.mail.SMTPBccAddresses\" = \"archive@localhost\"\n\"mail.smtp.starttls.enable\" = true",
        ),
        sender("mailtoSecure", port("SMTPS"), "\"mail.smtp.ssl.enable\" = true\n\"mail.smtp.ssl.trust\" = \"*\""),
        sender("mailtoUntrusted", port("SMTPS"), "\"mail.smtp.ssl.enable\" = true"),
        sender("mailtoAway", 1, ""),
    ];
    let mut server = Server::start(&folder, &["run", "artifacts"], &toml.concat());
    assert_eq!(server.post("/services/Plain", "application/json", "{\"n\":1}").status, 200, "{}", server.log());
    for user in ["first", "second", "archive"] {
        let found = mails(user, "INBOX");
        assert!(found.contains("Subject: Order 7") && found.contains("{\"n\":1}"), "{user}: {found}");
        assert!(
            found.contains("To: first@localhost, second@localhost") && !found.contains("archive@localhost"),
            "{found}"
        );
    }
    assert_eq!(server.post("/services/Secure", "application/json", "{\"n\":2}").status, 200, "{}", server.log());
    assert!(mails("third", "INBOX").contains("{\"n\":2}"));
    for (name, reason) in [
        ("Untrusted", "invalid peer certificate"),
        ("Unknown", "no connection to the mail server localhost:1"),
        ("Wrong", "`third` is not a mail address"),
    ] {
        assert!(server.post(&format!("/services/{name}"), "application/json", "{}").status >= 500, "{name}");
        server.wait_for_log(reason);
    }
    assert_eq!(mails("third", "INBOX").matches("Subject: Order 7").count(), 1);
}

#[test]
#[ignore = "needs GreenMail"]
fn a_listener_deletes_what_was_processed_moves_what_failed_and_replies() {
    let folder = Folder::new("mail-imap");
    let parameters = r#"<parameter name="transport.mail.ActionAfterFailure">MOVE</parameter>
  <parameter name="transport.mail.MoveAfterFailure">Failed</parameter>
  <parameter name="transport.mail.ContentType">application/json</parameter>"#;
    let sequence = format!("{TAKE}<log><property name=\"n\" expression=\"json-eval($.n)\"/></log><respond/>");
    folder.write("artifacts/a.xml", listener("sales", "imap", port("IMAP"), &sequence, parameters));
    let mut server = Server::start(&folder, &["run", "artifacts"], &sender("mailto", port("SMTP"), ""));
    send("sales", "Subject: good\r\nMessage-ID: <g1@localhost>", "{\"n\":41}");
    server.wait_for_log("took = good, of = peer@localhost");
    server.wait_for_log("n = 41");
    let reply = wait_for_mails("peer", "INBOX", &server, |found| found.contains("Re: good"));
    for expected in
        ["{\"n\":41}", "In-Reply-To: <g1@localhost>", "From: sales@localhost", "Auto-Submitted: auto-replied"]
    {
        assert!(reply.contains(expected), "{expected} in {reply}");
    }
    wait_for_mails("sales", "INBOX", &server, str::is_empty);
    send("sales", "Subject: fail1", "{\"n\":42}");
    wait_for_mails("sales", "Failed", &server, |found| found.contains("{\"n\":42}"));
    wait_for_mails("sales", "INBOX", &server, str::is_empty);
    server.wait_for_log("`fail1`: its flow failed: it broke; it is moved to `Failed`");
}

#[test]
#[ignore = "needs GreenMail"]
fn a_mail_that_failed_stays_and_is_not_read_again_and_a_server_may_be_away() {
    let gate = Gate::open(port("IMAP"));
    let folder = Folder::new("mail-away");
    folder.write("artifacts/a.xml", listener("kept", "imap", gate.port, TAKE, ""));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    send("kept", "Subject: fail2", "x");
    server.wait_for_log("`fail2`: its flow failed: it broke; it stays in the mailbox");
    send("kept", "Subject: next", "x");
    server.wait_for_log("took = next");
    let found = wait_for_mails("kept", "INBOX", &server, |found| !found.contains("next"));
    assert!(found.contains("fail2"), "{found}");
    gate.shut();
    server.wait_for_log("kept/mailto: the mail server localhost:");
    send("kept", "Subject: later", "x");
    gate.reopen();
    server.wait_for_log("took = later");
    assert_eq!(server.log().matches("took = fail2").count(), 1, "{}", server.log());
}

#[test]
#[ignore = "needs GreenMail"]
fn a_mail_whose_flow_has_not_ended_is_read_again_after_a_kill() {
    let (port_of_backend, received) = backend();
    // The first backend never responds.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::new("mail-kill");
    let write = |backend: u16| {
        let sequence = format!(
            r#"<property name="DISABLE_CHUNKING" value="true" scope="axis2"/><call><endpoint><http
    uri-template="http://127.0.0.1:{backend}/" method="POST"/></endpoint></call><log><property name="sent" value="yes"/></log><drop/>"#
        );
        folder.write("artifacts/a.xml", listener("orders", "pop3s", port("POP3S"), &sequence, TRUST));
    };
    write(silent.local_addr().unwrap().port());
    send("orders", "Subject: order", "once\r\n..dot");
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    let _under_way = silent.accept().unwrap();
    server.signal(Signal::KILL);
    server.wait();
    write(port_of_backend);
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    let body = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(body.trim_end(), "once\r\n.dot", "{}", server.log());
    server.wait_for_log("sent = yes");
    wait_for_mails("orders", "INBOX", &server, str::is_empty);
}
