//! Elements of the original that do not run here: what each is, and what to do instead.

use penstock_compile::{Effect, Unsupported};

const fn refused(name: &'static str, what: &'static str, instead: &'static str) -> Unsupported {
    Unsupported { name, effect: Effect::Refused, what, instead }
}

const fn without_effect(name: &'static str, what: &'static str, instead: &'static str) -> Unsupported {
    Unsupported { name, effect: Effect::LeftOut, what, instead }
}

/// What calls Java can become this.
const JAVA: &str = "write it as <script>, or as a WebAssembly module that <class> names";

/// The elements, by name.
pub const UNSUPPORTED: &[Unsupported] = &[
    refused("annotatedCommand", "runs a Java class that is chosen by annotations", JAVA),
    without_effect("bam", "sends an event to a monitor of the maker", "requests are counted on the metrics port"),
    refused("bean", "works on JavaBeans", JAVA),
    refused("ejb", "calls an Enterprise JavaBean", "give the bean an HTTP interface and use <call>"),
    refused(
        "enqueue",
        "hands the message to a priority executor, and there are none",
        "name the sequence with <sequence key>",
    ),
    refused("entitlementService", "asks an XACML server whether the request is allowed", "use <call> and <filter>"),
    refused("event", "publishes to topics of an event broker that the original dropped", "use <call> to a broker"),
    without_effect(
        "eventPublisher",
        "sends an event to a monitor of the maker",
        "requests are counted on the metrics port",
    ),
    refused(
        "NTLM",
        "sets credentials that Windows asks for",
        "a backend that accepts basic authentication or OAuth needs no mediator",
    ),
    refused(
        "oauthService",
        "asks a server of the maker whether a token is good",
        "use an API handler, or <call> and <filter>",
    ),
    refused("pojoCommand", "runs a Java class", JAVA),
    without_effect(
        "publishEvent",
        "sends an event to a monitor of the maker",
        "requests are counted on the metrics port",
    ),
    refused("rule", "runs rules of Drools, an engine in Java", "use <switch>, <filter> or <script>"),
    refused("sampler", "keeps messages back to a rate, in queues of Java", "use <throttle>"),
    refused("smooks", "transforms with Smooks, an engine in Java", "use <xslt>, <payloadFactory> or <script>"),
    refused("spring", "runs a bean of a Spring container, which is Java", JAVA),
];
