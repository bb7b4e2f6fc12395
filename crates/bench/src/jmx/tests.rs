use super::context::Context;
use super::cookies::Jar;
use super::text::Text;
use super::time::TimeFormat;
use super::*;
use crate::http::url::Url;

/// A plan around the elements of its thread group.
fn plan(elements: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2"><hashTree>
<TestPlan testname="Orders" enabled="true"><elementProp name="TestPlan.user_defined_variables" elementType="Arguments"><collectionProp name="Arguments.arguments">
<elementProp name="host" elementType="Argument"><stringProp name="Argument.name">host</stringProp><stringProp name="Argument.value">${{__P(host,shop.example)}}</stringProp></elementProp>
</collectionProp></elementProp></TestPlan><hashTree>
<ThreadGroup testname="Buyers" enabled="true">
<elementProp name="ThreadGroup.main_controller" elementType="LoopController"><stringProp name="LoopController.loops">3</stringProp></elementProp>
<stringProp name="ThreadGroup.num_threads">${{__P(users,2)}}</stringProp><stringProp name="ThreadGroup.ramp_time">1</stringProp>
</ThreadGroup><hashTree>{elements}</hashTree></hashTree></hashTree></jmeterTestPlan>"#
    )
}

/// A request with the body `body`, and what is below it.
fn post(body: &str, below: &str) -> String {
    format!(
        r#"<HTTPSamplerProxy testname="Buy" enabled="true"><boolProp name="HTTPSampler.postBodyRaw">true</boolProp>
<elementProp name="HTTPsampler.Arguments" elementType="Arguments"><collectionProp name="Arguments.arguments"><elementProp name="" elementType="HTTPArgument"><stringProp name="Argument.value">{body}</stringProp></elementProp></collectionProp></elementProp>
<stringProp name="HTTPSampler.domain">${{host}}</stringProp><stringProp name="HTTPSampler.path">/orders</stringProp><stringProp name="HTTPSampler.method">POST</stringProp><boolProp name="HTTPSampler.use_keepalive">true</boolProp>
</HTTPSamplerProxy><hashTree>{below}</hashTree>"#
    )
}

fn header_manager(headers: &[(&str, &str)]) -> String {
    let one = |(name, value): &(&str, &str)| {
        format!(
            r#"<elementProp name="" elementType="Header"><stringProp name="Header.name">{name}</stringProp><stringProp name="Header.value">{value}</stringProp></elementProp>"#
        )
    };
    let headers: String = headers.iter().map(one).collect();
    format!(
        r#"<HeaderManager testname="Headers" enabled="true"><collectionProp name="HeaderManager.headers">{headers}</collectionProp></HeaderManager><hashTree/>"#
    )
}

const USERS: &str = r#"<CSVDataSet testname="Accounts" enabled="true"><stringProp name="filename">users.csv</stringProp><stringProp name="variableNames">user,key</stringProp><stringProp name="delimiter">,</stringProp></CSVDataSet><hashTree/>"#;

fn parse(text: &str) -> Result<Plan, Error> {
    let files = |path: &Path| match path.to_str() {
        Some("users.csv") => Ok(b"ann,one\nbob,two\n".to_vec()),
        _ => Err(std::io::ErrorKind::NotFound.into()),
    };
    read("p.jmx", text.as_bytes(), Path::new("."), Arc::default(), &files)
}

/// What a dry run of a plan prints.
fn dry_run_of(elements: &str) -> String {
    let plan = parse(&plan(elements)).unwrap();
    describe(&plan.script, &Arc::default())
}

fn refusals(elements: &str) -> String {
    parse(&plan(elements)).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn variables_stand_in_bodies_headers_and_addresses() {
    let text = dry_run_of(&format!(
        "{USERS}{}",
        post("{&quot;user&quot;:&quot;${user}&quot;,&quot;key&quot;:&quot;${key}&quot;}", "")
    ));
    assert!(text.contains("thread group `Buyers`: 2 users, 3 iterations, ramp-up 1 s"), "{text}");
    assert!(text.contains("to shop.example"), "{text}");
    assert!(text.contains(r#"{"user":"ann","key":"one"}"#), "{text}");
    assert!(text.contains("Content-Length: 26"), "{text}");
}

#[test]
fn headers_of_outer_levels_are_added_and_inner_ones_win() {
    let outer = header_manager(&[("Accept", "text/plain"), ("X-Outer", "1")]);
    let inner = header_manager(&[("accept", "application/json"), ("X-Inner", "2")]);
    let text = dry_run_of(&format!("{outer}{}{}", post("a", &inner), post("b", "")));
    let (first, second) = text.split_once("Content-Length: 1").unwrap();
    for (part, expected, absent) in [
        (first, ["accept: application/json", "X-Inner: 2", "X-Outer: 1"].as_slice(), "text/plain"),
        (second, ["Accept: text/plain", "X-Outer: 1"].as_slice(), "X-Inner"),
    ] {
        assert!(expected.iter().all(|line| part.contains(line)) && !part.contains(absent), "{part}");
    }
}

#[test]
fn defaults_fill_what_a_request_leaves_open() {
    let defaults = r#"<ConfigTestElement guiclass="HttpDefaultsGui" testname="Defaults"><stringProp name="HTTPSampler.domain">api.example</stringProp><stringProp name="HTTPSampler.port">8443</stringProp><stringProp name="HTTPSampler.protocol">https</stringProp></ConfigTestElement><hashTree/>"#;
    let get = r#"<HTTPSamplerProxy testname="Find"><elementProp name="HTTPsampler.Arguments" elementType="Arguments"><collectionProp name="Arguments.arguments"><elementProp name="q" elementType="HTTPArgument"><boolProp name="HTTPArgument.always_encode">true</boolProp><stringProp name="Argument.name">q</stringProp><stringProp name="Argument.value">a b&amp;c</stringProp></elementProp></collectionProp></elementProp><stringProp name="HTTPSampler.path">find</stringProp></HTTPSamplerProxy><hashTree/>"#;
    let text = dry_run_of(&format!("{defaults}{get}"));
    assert!(text.contains("over TLS to api.example:8443") && text.contains("GET /find?q=a+b%26c HTTP/1.1"), "{text}");
}

#[test]
fn everything_that_is_not_supported_is_refused_with_its_place() {
    let elements = format!(
        r#"<JSR223Sampler testname="Script" enabled="true"/><hashTree/>
<BeanShellPreProcessor testname="Off" enabled="false"/><hashTree/>
{}
<CacheManager testname="Cache"/><hashTree/>"#,
        post("${__groovy(vars.get('x'))}", r#"<XPathExtractor testname="Path"/><hashTree/>"#)
    );
    let text = refusals(&elements);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    for (line, expected) in lines.iter().zip([
        "p.jmx:9: `Script`: `JSR223Sampler` is not supported",
        "p.jmx:12: `HTTPArgument`",
        "p.jmx:14: `Path`: `XPathExtractor` is not supported",
        "p.jmx:15: `Cache`: `CacheManager` is not supported",
    ]) {
        let expected =
            expected.replace("`HTTPArgument`", "`elementProp`: the expression of `__groovy` is not supported");
        assert!(line.starts_with(&expected), "{line}\n{expected}");
    }
}

#[test]
fn unknown_functions_and_properties_are_refused() {
    for (elements, expected) in [
        (post("${__StringFromFile(x)}", ""), "the function `__StringFromFile` is not supported"),
        (post("${__Random(1)}", ""), "the function `__Random` cannot have 1 arguments"),
        (post("${__time(yyyy-ww)}", ""), "`ww` of the time format `yyyy-ww` is not supported"),
        (post("a", "").replace("HTTPSampler.path", "HTTPSampler.proxyHost"), "`HTTPSampler.proxyHost` is not supported"),
        (post("a", "<RegexExtractor testname=\"X\"><stringProp name=\"RegexExtractor.regex\">(</stringProp></RegexExtractor><hashTree/>"), "the regular expression `(` is not supported"),
        (USERS.replace("users.csv", "none.csv") + &post("a", ""), "cannot open `none.csv`"),
        (post("a", "").replace("${host}", ""), "the request has no server name"),
        ("<IfController testname=\"When\"><stringProp name=\"IfController.condition\">vars.get(\"a\") == 1</stringProp></IfController><hashTree/>".to_owned(), "the condition is not supported"),
    ] {
        let text = refusals(&elements);
        assert!(text.starts_with("p.jmx:") && text.contains(expected), "{text}\n{expected}");
    }
}

#[test]
fn what_is_ignored_or_has_no_value_is_noted() {
    let elements = format!(
        r#"{}<DebugSampler testname="Look"/><hashTree/><ResultCollector testname="Tree"/><hashTree/>"#,
        post("${who}", "")
    );
    let notes = parse(&plan(&elements)).unwrap().notes;
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].contains("`who` has no value; as in JMeter, `${who}` is sent as it is written"), "{notes:?}");
    assert!(notes[1].ends_with("`Look`: `DebugSampler` is ignored: it sends nothing"), "{notes:?}");
}

fn evaluated(text: &str, context: &mut Context) -> String {
    Text::parse(text).unwrap().evaluate(context)
}

#[test]
fn texts_are_evaluated_as_jmeter_does() {
    let mut properties = Properties::default();
    assert!(properties.add("a=b=c") && !properties.add("novalue") && !properties.add("=x"));
    let mut context = Context::new(Arc::new(properties));
    context.user = 7;
    context.variables.extend([("n".into(), "5".into()), ("x_1".into(), "first".into())]);
    for (text, expected) in [
        ("${__P(a)}", "b=c"),
        ("${__P(none)}", "1"),
        ("${__P(none,)}", ""),
        ("${__P(none,${n})}", "5"),
        ("${__V(x_${__intSum(0,1)})}", "first"),
        (r"no \$ \, reference", r"no \$ \, reference"),
        (r"\${n} \, ${n}", "${n} , 5"),
        (r#"{"a":"\"${n}\""}"#, r#"{"a":"\"5\""}"#),
        ("${unknown}", "${unknown}"),
        ("${__threadNum}", "7"),
        ("${__counter(TRUE)}", "1"),
        ("${__Random(3,3,r)}-${r}", "3-3"),
        ("${__urlencode(a b&c)}", "a+b%26c"),
        ("${__jexl3(\"${n}\" == \"5\" && ${n} < 6)}", "true"),
        ("${__groovy(\"${n}\" != \"5\" || !(1 + 1 == 2),r)}", "false"),
        ("${__changeCase(abc,CAPITALIZE)}", "Abc"),
    ] {
        assert_eq!(evaluated(text, &mut context), expected, "{text}");
    }
    let uuid = evaluated("${__UUID()}", &mut context);
    assert!(
        uuid.len() == 36 && uuid.as_bytes()[14] == b'4' && matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b')
    );
    assert!(evaluated("${__time(,)}", &mut context).parse::<u64>().is_ok());
    assert_eq!(evaluated("${__RandomString(12,ab,)}", &mut context).trim_matches(['a', 'b']), "");
    let counter = Text::parse("${__counter(FALSE)}").unwrap();
    assert_eq!((counter.evaluate(&mut context), counter.evaluate(&mut context.clone())), ("1".into(), "2".into()));
    for text in ["${n", "${__P(a}", "${__nope()}"] {
        assert!(Text::parse(text).is_err(), "{text}");
    }
}

#[test]
fn times_follow_patterns_of_java() {
    for pattern in ["yyyy-MM-dd'T'HH:mm:ss.SSSZ", "EEE, d MMM yy h:m:s a", "'it''s' YMD"] {
        let pattern = pattern.replace("YMD", "yyyyMMdd");
        assert!(matches!(TimeFormat::parse(&pattern), Ok(TimeFormat::Pattern(_))), "{pattern}");
    }
    let time = TimeFormat::parse("yyyy-MM-dd'T'HH:mm").unwrap().now();
    assert!(time.len() == 16 && time.as_bytes()[10] == b'T', "{time}");
    assert!(TimeFormat::parse("/0").is_err() && TimeFormat::parse("zzz").is_err());
}

#[test]
fn cookies_go_to_their_hosts_and_paths() {
    let url = |text: &str| Url::parse(text).unwrap();
    let mut jar = Jar::default();
    let shop = url("https://www.shop.example/cart/add");
    for field in ["a=1; Path=/", "b=2", "c=3; Domain=shop.example; Path=/; Secure", "d=4; Domain=other.example"] {
        jar.take(field, &shop);
    }
    for (address, expected) in [
        ("https://www.shop.example/cart/pay", Some("b=2; a=1; c=3")),
        ("https://api.shop.example/", Some("c=3")),
        ("http://www.shop.example/", Some("a=1")),
        ("http://notshop.example/", None),
    ] {
        assert_eq!(jar.field(&url(address)).as_deref(), expected, "{address}");
    }
    jar.take("a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT", &shop);
    jar.take("c=5; Domain=.shop.example; Path=/; Max-Age=60", &shop);
    assert_eq!(jar.field(&url("https://www.shop.example/")).as_deref(), Some("c=5"));
}

/// The plans of the published tests are read unmodified.
#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_plans_are_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/scenarios/jmeter");
    let entries = std::fs::read_dir(&directory).unwrap();
    let mut properties = Properties::default();
    for property in
        ["users=3", "duration=4", "path=/x", "payload=body", "tokens=body", "response_size=1", "response_pattern=a"]
    {
        assert!(properties.add(property));
    }
    let properties = Arc::new(properties);
    for entry in entries.flatten().filter(|entry| entry.path().extension().is_some_and(|kind| kind == "jmx")) {
        let bytes = std::fs::read(entry.path()).unwrap();
        let plan = read("p", &bytes, Path::new("."), properties.clone(), &|_| Ok(b"first\nsecond\n".to_vec())).unwrap();
        let group = &plan.script.groups[0];
        assert_eq!((group.users, group.duration), (3, Some(std::time::Duration::from_secs(4))));
    }
}

#[test]
fn no_bytes_can_break_the_reader() {
    let whole = plan(&format!("{USERS}{}{}", header_manager(&[("A", "${__time()}")]), post("${user}", "")));
    crate::mutations::each(&[&whole], |bytes, _| {
        if let Ok(plan) = read("p", bytes, Path::new("."), Arc::default(), &|_| Ok(b"a,b\n".to_vec())) {
            assert!(describe(&plan.script, &Arc::default()).starts_with("plan `"));
        }
    });
}
