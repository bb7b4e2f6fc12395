//! Plans of JMeter.

use std::path::Path;
use std::sync::Arc;

use penstock_bench::jmx;

/// Pieces of plans.
pub const DICTIONARY: &[&str] = &[
    "${__P(a,b)}",
    "${__Random(1,9,x)}",
    "${__time(yyyy-MM-dd)}",
    "${__V(a_${b})}",
    "${__counter(FALSE)}",
    "${",
    "${__jexl3(1 == 1)}",
    "\\,",
    "<hashTree>",
    "<hashTree/>",
    "enabled=\"false\"",
    "<stringProp name=\"",
    "</stringProp>",
    "<boolProp name=\"",
    "<LoopController>",
    "LoopController.loops",
    "<IfController>",
    "IfController.condition",
    "<RegexExtractor>",
    "RegexExtractor.regex",
    "<CounterConfig>",
    "CounterConfig.end",
    "<CSVDataSet>",
    "filename",
    "HTTPSampler.path",
    "HTTPSampler.postBodyRaw",
    "<elementProp name=\"\">",
    "-1",
    "9223372036854775807",
];

/// Reading a plan ends with a plan or with mistakes that have a place, and what a plan would send can be shown.
pub fn plan(data: &[u8]) {
    let properties = Arc::new(jmx::Properties::default());
    let files = |_: &Path| Ok(b"a,b\nc,\"d\"\n".to_vec());
    match jmx::read("plan.jmx", data, Path::new("."), properties.clone(), &files) {
        Ok(plan) => {
            let text = jmx::describe(&plan.script, &properties);
            assert!(text.starts_with("plan `"), "a plan is described");
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.lines().next().is_some_and(|line| line.starts_with("plan.jmx:")), "{text}");
        }
    }
}
