use super::*;
use crate::http::request::TOKEN;

/// A plan of our own in the layout JMeter writes.
const PLAN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<jmeterTestPlan version="1.2" properties="5.0" jmeter="5.6">
  <hashTree>
    <TestPlan guiclass="TestPlanGui" testclass="TestPlan" testname="Orders" enabled="true"/>
    <hashTree>
      <ThreadGroup guiclass="ThreadGroupGui" testclass="ThreadGroup" testname="Buyers" enabled="true">
        <stringProp name="ThreadGroup.on_sample_error">continue</stringProp>
        <elementProp name="ThreadGroup.main_controller" elementType="LoopController">
          <boolProp name="LoopController.continue_forever">false</boolProp>
          <intProp name="LoopController.loops">-1</intProp>
        </elementProp>
        <stringProp name="ThreadGroup.num_threads">${__P(users)}</stringProp>
        <stringProp name="ThreadGroup.ramp_time">${__P(ramp,5)}</stringProp>
        <boolProp name="ThreadGroup.scheduler">true</boolProp>
        <stringProp name="ThreadGroup.duration">${__P(duration,30)}</stringProp>
      </ThreadGroup>
      <hashTree>
        <CSVDataSet testname="Keys" enabled="true">
          <stringProp name="filename">FILE</stringProp>
          <stringProp name="variableNames">user,key</stringProp>
          <stringProp name="delimiter">,</stringProp>
          <boolProp name="recycle">true</boolProp>
        </CSVDataSet>
        <hashTree/>
        <HTTPSamplerProxy testname="Buy &amp; sell" enabled="true">
          <elementProp name="HTTPsampler.Arguments" elementType="Arguments">
            <collectionProp name="Arguments.arguments">
              <elementProp name="" elementType="HTTPArgument">
                <stringProp name="Argument.value">&lt;order/&gt;</stringProp>
              </elementProp>
            </collectionProp>
          </elementProp>
          <boolProp name="HTTPSampler.postBodyRaw">true</boolProp>
          <stringProp name="HTTPSampler.domain">${__P(host,localhost)}</stringProp>
          <stringProp name="HTTPSampler.port">${__P(port,8280)}</stringProp>
          <stringProp name="HTTPSampler.protocol">http</stringProp>
          <stringProp name="HTTPSampler.path">/orders</stringProp>
          <stringProp name="HTTPSampler.method">POST</stringProp>
          <boolProp name="HTTPSampler.use_keepalive">true</boolProp>
          <stringProp name="HTTPSampler.response_timeout">3000</stringProp>
        </HTTPSamplerProxy>
        <hashTree>
          <HeaderManager testname="Headers" enabled="true">
            <collectionProp name="HeaderManager.headers">
              <elementProp name="" elementType="Header">
                <stringProp name="Header.name">ApiKey</stringProp>
                <stringProp name="Header.value">${key}</stringProp>
              </elementProp>
            </collectionProp>
          </HeaderManager>
          <hashTree/>
          <ResponseAssertion testname="Accepted" enabled="true">
            <collectionProp name="Asserion.test_strings">
              <stringProp name="1">order</stringProp>
            </collectionProp>
            <stringProp name="Assertion.test_field">Assertion.response_data</stringProp>
            <intProp name="Assertion.test_type">16</intProp>
          </ResponseAssertion>
          <hashTree/>
          <ResultCollector testname="Off" enabled="false"/>
          <hashTree/>
        </hashTree>
      </hashTree>
    </hashTree>
  </hashTree>
</jmeterTestPlan>
"#;

fn read(name: &str, plan: &str, properties: &[&str]) -> Result<JmxPlan, Error> {
    let directory = std::env::temp_dir().join(format!("penstock-jmx-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("keys.csv"), "a,one\nb,two\n").unwrap();
    let path = directory.join("plan.jmx");
    std::fs::write(&path, plan.replace("FILE", "keys.csv")).unwrap();
    let mut values = Properties::default();
    assert!(properties.iter().all(|text| values.add(text)));
    let outcome = JmxPlan::read(&path, &values, 1, Arc::default());
    std::fs::remove_dir_all(&directory).unwrap();
    outcome
}

#[test]
fn a_plan_becomes_a_load() {
    let plan = read("ok", PLAN, &["users=20", "port=9"]).unwrap();
    assert_eq!((plan.label.as_str(), plan.group.as_str()), ("Buy & sell", "Buyers"));
    let load = &plan.load;
    assert_eq!((load.users, load.ramp_up, load.duration), (20, Duration::from_secs(5), Duration::from_secs(30)));
    assert_eq!(load.request.url.to_string(), "http://localhost:9/orders");
    assert_eq!(load.request.body, "<order/>");
    assert_eq!(load.request.headers, [("ApiKey".to_owned(), TOKEN.to_owned())]);
    assert_eq!(*load.tokens, ["one", "two"]);
    assert_eq!(load.expect.rules.len(), 1);
    assert_eq!(load.response_timeout, Duration::from_secs(3));
}

fn check(name: &str, from: &str, to: &str, expected: &str) {
    let plan = PLAN.replace(from, to);
    assert_ne!(plan, PLAN);
    let message = read(name, &plan, &[]).err().unwrap().to_string();
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn what_is_not_supported_is_one_clear_error() {
    check(
        "a",
        "\"Off\" enabled=\"false\"",
        "\"On\" enabled=\"true\"",
        "plan.jmx:60: `ResultCollector` (`On`) is not supported; thread group, HTTP request, HTTP header manager, CSV data set and response assertion are",
    );
    check(
        "b",
        "${__P(ramp,5)}",
        "${__time()}",
        "plan.jmx:13: the function `__time()` is not supported, only `__P(name,default)` is",
    );
    check("c", "${key}", "${other}", "has user, key");
    check("d", "${__P(users)}", "many", "plan.jmx:12: `many` in `ThreadGroup.num_threads` is not a whole number");
    check("e", "-1</intProp>", "7</intProp>", "plan.jmx:8: 7 loops are not supported, only endless loops are");
}

#[test]
fn properties_have_jmeters_defaults() {
    let mut properties = Properties::default();
    assert!(properties.add("a=b=c") && !properties.add("novalue") && !properties.add("=x"));
    for (text, expected) in
        [("${__P(a)}", "b=c"), ("${__P(none)}", "1"), ("x ${__P(none,y)} ${v}", "x y ${v}"), ("${__P(none,)}", "")]
    {
        assert_eq!(properties.evaluate(text).unwrap(), expected);
    }
    assert!(properties.evaluate("${__P(a)").is_err());
}

/// The plans of the published tests are read unmodified where they are at hand.
#[test]
fn the_published_plans_are_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/scenarios/jmeter");
    let Ok(entries) = std::fs::read_dir(&directory) else {
        println!("skipped: there is no {}", directory.display());
        return;
    };
    let body = directory.join("../payloads/500B_buyStocks.xml");
    let mut properties = Properties::default();
    for text in ["users=3", "duration=4", "path=/p", "response_pattern=x"] {
        properties.add(text);
    }
    properties.add(&format!("payload={}", body.display()));
    properties.add(&format!("tokens={}", body.display()));
    for entry in entries.flatten().filter(|entry| entry.path().extension().is_some_and(|kind| kind == "jmx")) {
        let plan = JmxPlan::read(&entry.path(), &properties, 1, Arc::default()).unwrap();
        assert_eq!((plan.load.users, plan.load.duration), (3, Duration::from_secs(4)));
        assert_eq!(plan.load.request.body.len(), 499);
    }
}

#[test]
fn no_text_can_break_the_reader() {
    crate::mutations::each(&[PLAN], |bytes, _| {
        let _ = Element::parse("p", &String::from_utf8_lossy(bytes));
    });
}
