//! Elements of the WSO2 products that are not supported: what each does, and its replacement.

use penstock_compile::{Effect, Unsupported};

const fn refused(name: &'static str, what: &'static str, instead: &'static str) -> Unsupported {
    Unsupported { name, effect: Effect::Refused, what, instead }
}

const fn without_effect(name: &'static str, what: &'static str, instead: &'static str) -> Unsupported {
    Unsupported { name, effect: Effect::LeftOut, what, instead }
}

/// Replacement of elements that call Java.
const JAVA: &str = "write it as <script>, or as a WebAssembly module that <class> names";

/// The elements, by name.
pub const UNSUPPORTED: &[Unsupported] = &[
    refused("annotatedCommand", "runs an annotated Java class", JAVA),
    without_effect(
        "bam",
        "sends an event to WSO2 Business Activity Monitor or Stream Processor",
        "requests are counted on the metrics port",
    ),
    refused("bean", "calls JavaBeans", JAVA),
    refused("ejb", "calls an Enterprise JavaBean", "give the bean an HTTP interface and use <call>"),
    refused("enqueue", "passes the message to a priority executor, which is not supported", "use <sequence key>"),
    refused("entitlementService", "requests an authorization decision from an XACML server", "use <call> and <filter>"),
    refused("event", "publishes to topics of the event broker of Enterprise Integrator", "use <call> to a broker"),
    without_effect(
        "eventPublisher",
        "sends an event to WSO2 Business Activity Monitor or Stream Processor",
        "requests are counted on the metrics port",
    ),
    refused("NTLM", "sets NTLM credentials", "use basic authentication or OAuth of the endpoint"),
    refused("oauthService", "validates a token at WSO2 Identity Server", "use an API handler, or <call> and <filter>"),
    refused("pojoCommand", "runs a Java class", JAVA),
    without_effect(
        "publishEvent",
        "sends an event to WSO2 Business Activity Monitor or Stream Processor",
        "requests are counted on the metrics port",
    ),
    refused("rule", "runs Drools rules", "use <switch>, <filter> or <script>"),
    refused("sampler", "delays messages to a rate", "use <throttle>"),
    refused("smooks", "transforms with Smooks", "use <xslt>, <payloadFactory> or <script>"),
    refused("spring", "runs a Spring bean", JAVA),
];
