//! Requests that ask for more than there is: each gets an error, and the process serves on.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use support::{Connection, Folder, Server};

/// Without a limit each request would use more than the address space.
struct Scale {
    /// What sizes of bodies are divided by.
    divisor: usize,
    address_space_kib: usize,
    toml: &'static str,
}

/// A tenth of the default limits, so that a debug build needs seconds.
const SMALL: Scale = Scale {
    divisor: 10,
    address_space_kib: 3 << 19,
    toml: "limits.memory = \"64MiB\"\nlimits.nodes = 1000000\ntimeouts.deadline = \"20s\"",
};

/// The default limits.
const FULL: Scale = Scale { divisor: 1, address_space_kib: 3 << 20, toml: "" };

const XSLT: &str = r#"<xsl:stylesheet version="2.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:param name="what"/>
  <xsl:template match="/">
    <xsl:choose>
      <xsl:when test="$what = 'text'"><o><xsl:call-template name="double"><xsl:with-param name="s" select="'0123456789'"/></xsl:call-template></o></xsl:when>
      <xsl:when test="$what = 'tree'"><xsl:call-template name="trees"><xsl:with-param name="t"><a/><b/></xsl:with-param></xsl:call-template></xsl:when>
      <xsl:when test="$what = 'result'"><o><xsl:call-template name="results"/></o></xsl:when>
      <xsl:when test="$what = 'deep'"><o><xsl:call-template name="deep"/></o></xsl:when>
      <xsl:when test="$what = 'sequence'"><o><xsl:value-of select="count(for $a in 1 to 9000000 return ($a, $a))"/></o></xsl:when>
      <xsl:when test="$what = 'loop'"><o><xsl:for-each select="1 to 100000000"><xsl:value-of select="."/></xsl:for-each></o></xsl:when>
    </xsl:choose>
  </xsl:template>
  <xsl:template name="double"><xsl:param name="s"/>
    <xsl:call-template name="double"><xsl:with-param name="s" select="concat($s, $s)"/></xsl:call-template>
  </xsl:template>
  <xsl:template name="trees"><xsl:param name="t"/>
    <xsl:call-template name="trees"><xsl:with-param name="t"><xsl:copy-of select="$t"/><xsl:copy-of select="$t"/></xsl:with-param></xsl:call-template>
  </xsl:template>
  <xsl:template name="results"><x>0123456789</x><xsl:call-template name="results"/><xsl:call-template name="results"/></xsl:template>
  <xsl:template name="deep"><d><xsl:call-template name="deep"/></d></xsl:template>
</xsl:stylesheet>"#;

/// A resource that runs mediators and answers with what they leave.
fn resource(path: &str, mediators: &str) -> String {
    format!(
        "<resource methods='POST' url-mapping='/{path}'><inSequence>{mediators}<respond/></inSequence><faultSequence><property name='HTTP_SC' value='500' scope='axis2'/><payloadFactory media-type='text'><format>$1</format><args><arg expression='get-property(\"ERROR_MESSAGE\")'/></args></payloadFactory><property name='messageType' value='text/plain' scope='axis2'/><respond/></faultSequence></resource>"
    )
}

fn property(expression: &str) -> String {
    let expression = expression.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!("<property name='p' expression=\"{expression}\"/>")
}

fn payload(media: &str, format: &str, args: &str) -> String {
    format!("<payloadFactory media-type='{media}'><format>{format}</format><args>{args}</args></payloadFactory>")
}

fn freemarker(template: &str) -> String {
    format!(
        "<payloadFactory media-type='text' template-type='freemarker'><format><![CDATA[{template}]]></format><args/></payloadFactory>"
    )
}

fn script(text: &str) -> String {
    format!("<script language='js'><![CDATA[{text}]]></script>")
}

/// What the evil requests are sent to.
fn artifact() -> String {
    let mut resources = String::new();
    for what in ["text", "tree", "result", "deep", "sequence", "loop"] {
        let xslt = format!("<xslt key='evil'><property name='what' value='{what}'/></xslt>");
        resources.push_str(&resource(&format!("xslt-{what}"), &xslt));
    }
    for (name, mediators) in [
        ("range", property("count((1 to 999999999)[. > 3])")),
        ("join", property("string-join(for $a in 1 to 9000000 return \"0123456789012345678901234567890123456789\", \",\")")),
        ("replace", property("replace(//t, \"a\", //u)")),
        ("translate", property("string-length(translate(concat(//t, //t, //t, //t), \"ab\", \"cd\"))")),
        ("tokenize", property("count(tokenize(//t, \"b\"))")),
        ("codepoints", property("count(string-to-codepoints(//t))")),
        ("product", property("count(for $a in //*, $b in //* return ($a, $b))")),
        ("regex", property("matches(//t, \"(a|aa)+$\")")),
        ("read-xml", property("count(//*)")),
        ("read-json", property("json-eval($..a)")),
        ("to-json", "<property name='messageType' value='application/json' scope='axis2'/>".into()),
        ("to-xml", "<property name='messageType' value='application/xml' scope='axis2'/>".into()),
        ("insert", payload("text", &"$1".repeat(200), "<arg expression='//t'/>")),
        ("insert-json", payload("json", &format!("[{}\"\"]", "\"$1\",".repeat(200)), "<arg expression='//t'/>")),
        ("iterate", "<iterate expression='//i' id='i' preservePayload='true' attachPath='//r'><target><sequence><log level='custom'/></sequence></target></iterate>".into()),
        ("foreach", "<foreach expression='//i'><sequence><enrich><source type='body'/><target type='property' property='copy'/></enrich></sequence></foreach>".into()),
        ("enrich", "<enrich><source clone='true' xpath='//r'/><target action='child' xpath='//r'/></enrich>".repeat(40)),
        ("clone", format!("<clone>{}</clone>", "<target><sequence><enrich><source clone='true' xpath='//r'/><target action='child' xpath='//r'/></enrich></sequence></target>".repeat(50))),
        ("fm-double", freemarker("<#assign s=\"0123456789\"><#list 1..60 as i><#assign s=s+s></#list>${s?length}")),
        ("fm-list", freemarker("<#assign l=[1]><#list 1..60 as i><#assign l=l+l></#list>${l?size}")),
        ("fm-loop", freemarker("<#list 1..1000000 as i><#list 1..1000000 as j>0123456789</#list></#list>")),
        ("fm-keep", freemarker("<#assign k={}><#list 1..100000 as i><#assign k=k+{\"k\"+i: payload?string?left_pad(100000)}></#list>${k?size}")),
        ("fm-replace", freemarker("<#assign s=\"aaaaaaaaaa\"><#list 1..12 as i><#assign s=s?replace(\"a\",\"aaaaaaaaaa\")></#list>${s?length}")),
        ("fm-macro", freemarker("<#macro m><@m/></#macro><@m/>")),
        ("js-loop", script("while (true) {}")),
        ("js-text", script("var s = '0123456789'; while (true) { s += s; }")),
        ("js-list", script("var l = []; while (true) { l.push([l.length, {}]); }")),
        ("js-deep", script("function f() { return f() + 1; } f();")),
        ("js-payload", script("var s = '0123456789'; for (var i = 0; i < 20; i++) s += s; for (var j = 0; j < 1000; j++) mc.setProperty('p' + j, s);")),
        ("js-regex", script("/(a+)+$/.test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab');")),
    ] {
        resources.push_str(&resource(name, &mediators));
    }
    resources.push_str("<resource methods='GET' url-mapping='/ok'><inSequence><payloadFactory media-type='text'><format>ok</format><args/></payloadFactory><property name='messageType' value='text/plain' scope='axis2'/><respond/></inSequence></resource>");
    format!(
        "<definitions xmlns='http://ws.apache.org/ns/synapse'><localEntry key='evil'>{}</localEntry><api name='a' context='/a'>{resources}</api></definitions>",
        XSLT.replace("<xsl:stylesheet ", "<xsl:stylesheet xmlns='' ")
    )
}

/// Path, Content-Type and body of the evil requests. `Some` is what the answer says, when it is always the same limit.
fn requests(scale: &Scale) -> Vec<(&'static str, &'static str, String, Option<&'static str>)> {
    const XML: &str = "application/xml";
    const JSON: &str = "application/json";
    let megabytes = |count: usize| (count << 20) / scale.divisor;
    let thousand = |count: usize| count * 1_000 / scale.divisor;
    let small = || "<r><t>a</t></r>".to_owned();
    let text = |bytes: usize| format!("<r><t>{}</t><u>{}</u></r>", "ab".repeat(bytes / 2), "x".repeat(bytes / 100));
    let items = |count: usize| format!("<r><t>{}</t>{}</r>", "x".repeat(20_000), "<i>1</i>".repeat(count));
    let memory = Some("`limits.memory`");
    let nodes = Some("`limits.nodes`");
    // Whichever is reached first.
    let either = Some("`limits.");
    vec![
        ("xslt-text", XML, small(), memory),
        ("xslt-tree", XML, small(), None),
        ("xslt-result", XML, small(), None),
        ("xslt-deep", XML, small(), None),
        ("xslt-sequence", XML, small(), None),
        ("xslt-loop", XML, small(), None),
        ("range", XML, small(), None),
        ("join", XML, small(), None),
        ("replace", XML, text(megabytes(8)), memory),
        ("translate", XML, text(megabytes(40)), None),
        ("tokenize", XML, text(megabytes(40)), memory),
        ("codepoints", XML, text(megabytes(40)), None),
        ("product", XML, items(20_000), None),
        ("regex", XML, format!("<r><t>{}b</t></r>", "a".repeat(megabytes(1))), None),
        ("read-xml", XML, format!("<r>{}</r>", "<a/>".repeat(megabytes(15))), nodes),
        ("read-xml", XML, "<a>".repeat(megabytes(10)), None),
        (
            "read-xml",
            XML,
            format!("<r {}/>", (0..thousand(3_000)).map(|n| format!("a{n}=''")).collect::<Vec<_>>().join(" ")),
            None,
        ),
        (
            "read-xml",
            XML,
            format!(
                "<!DOCTYPE r [<!ENTITY a0 'aaaaaaaaaa'>{}]><r>&a30;</r>",
                (1..=30).map(|n| format!("<!ENTITY a{n} '&a{};&a{};'>", n - 1, n - 1)).collect::<String>()
            ),
            None,
        ),
        ("to-json", XML, format!("<r>{}</r>", "<a>1</a>".repeat(megabytes(7))), nodes),
        (
            "to-json",
            XML,
            format!("<r>{}</r>", (0..thousand(2_000)).map(|n| format!("<a{n}/>")).collect::<String>()),
            None,
        ),
        ("read-json", JSON, format!("{{\"a\":[{}1]}}", "1,".repeat(megabytes(31))), either),
        ("to-xml", JSON, format!("{{\"a\":[{}1]}}", "1,".repeat(megabytes(31))), either),
        ("to-xml", JSON, "[".repeat(megabytes(10)), None),
        (
            "to-xml",
            JSON,
            format!("{{{}\"z\":1}}", (0..thousand(2_000)).map(|n| format!("\"@a{n}\":1,")).collect::<String>()),
            None,
        ),
        ("insert", XML, text(megabytes(20)), memory),
        ("insert-json", XML, text(megabytes(20)), memory),
        ("iterate", XML, items(thousand(90)), memory),
        ("foreach", XML, items(thousand(90)), None),
        ("enrich", XML, items(thousand(100)), None),
        ("clone", XML, text(megabytes(20)), memory),
        ("fm-double", XML, small(), None),
        ("fm-list", XML, small(), None),
        ("fm-loop", XML, small(), None),
        ("fm-keep", JSON, "{}".into(), None),
        ("fm-replace", XML, small(), None),
        ("fm-macro", XML, small(), None),
        ("js-loop", XML, small(), None),
        ("js-text", XML, small(), None),
        ("js-list", XML, small(), None),
        ("js-deep", XML, small(), None),
        ("js-payload", XML, small(), None),
        ("js-regex", XML, small(), None),
    ]
}

#[test]
fn no_request_ends_the_process() {
    survives(&SMALL);
}

#[test]
#[ignore = "sends bodies of 63 MB, which takes minutes in a debug build"]
fn no_request_ends_the_process_with_the_default_limits() {
    survives(&FULL);
}

#[test]
fn others_are_served_while_large_bodies_and_scripts_run() {
    /// On a core that does not pause, each request waits with a probability of one half, as there are two cores.
    const SERVED_MIN: usize = 20;
    let folder = Folder::new("limits-others");
    folder.write("a.xml", artifact());
    let server = Server::start(&folder, &["run", "a.xml"], "");
    let port = server.http;
    let numbers = format!("{{\"a\":[{}1]}}", "12345678,".repeat(600_000));
    let elements = format!("<r><t/>{}</r>", "<a>some text in an element</a>".repeat(150_000));
    for (path, content_type, body) in [
        ("/a/to-xml", "application/json", numbers.as_str()),
        ("/a/read-json", "application/json", numbers.as_str()),
        ("/a/read-xml", "application/xml", elements.as_str()),
        ("/a/to-json", "application/xml", elements.as_str()),
        ("/a/js-loop", "application/xml", "<r/>"),
    ] {
        let (sent, is_sent) = std::sync::mpsc::channel();
        let served = std::thread::scope(|scope| {
            let heavy = scope.spawn(move || {
                let mut socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let length = body.len();
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
                );
                socket.write_all(head.as_bytes()).unwrap();
                socket.write_all(body.as_bytes()).unwrap();
                sent.send(()).unwrap();
                let mut status = [0; 12];
                socket.read_exact(&mut status).unwrap();
                std::io::copy(&mut socket, &mut std::io::sink()).unwrap();
            });
            is_sent.recv().unwrap();
            let mut served = 0;
            while !heavy.is_finished() {
                assert_eq!(server.get("/a/ok").status, 200);
                served += 1;
            }
            served
        });
        assert!(served >= SERVED_MIN, "`{path}`: {served} requests were served meanwhile");
    }
}

fn survives(scale: &Scale) {
    let folder = Folder::new(&format!("limits-{}", scale.divisor));
    folder.write("a.xml", artifact());
    let limited = format!("ulimit -v {}; exec \"$0\" \"$@\"", scale.address_space_kib);
    let mut server = Server::start_under(&folder, &["sh", "-c", &limited], &["run", "a.xml"], scale.toml);
    for (path, content_type, body, expected) in requests(scale) {
        let mut connection = Connection::open(server.http);
        let reply =
            connection.try_request("POST", &format!("/a/{path}"), &[("Content-Type", content_type)], body.as_bytes());
        let reply = reply.unwrap_or_else(|error| panic!("`{path}` got no answer: {error}\n{}", server.log()));
        assert!(server.is_running(), "`{path}` ended the process:\n{}", server.log());
        assert_eq!(server.admin("/healthz").status, 200, "after `{path}`");
        let ok = server.get("/a/ok");
        assert_eq!((ok.status, ok.body.as_str()), (200, "ok"), "after `{path}`");
        if let Some(expected) = expected {
            assert!(reply.status >= 400 && reply.body.contains(expected), "`{path}`: {reply:?}");
        }
    }
}
