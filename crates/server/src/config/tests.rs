//! Configuration files, as a user writes them.

use super::*;

fn configuration(dialect: Dialect, text: &str) -> Configuration {
    read("x.toml", text, dialect, &|name| (name == "PORT").then(|| "8123".to_owned()))
}

fn said(configuration: &Configuration) -> Vec<String> {
    configuration.diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn ports_default_to_those_of_micro_integrator() {
    let settings = Settings::default();
    assert_eq!((settings.http_port(), settings.https_port(), settings.admin_port()), (8290, 8253, 9201));
    let moved = Settings { offset: 200, ..Settings::default() };
    assert_eq!((moved.http_port(), moved.https_port(), moved.admin_port()), (8480, 8443, 9391));
}

#[test]
fn the_offset_of_the_command_line_moves_ports_that_no_file_names() {
    for (dialect, text, expected) in [
        (Dialect::Penstock, "", (8290, 8380, 8343, 9943)),
        (Dialect::Penstock, "[gateway]\nhttp_port = 7\n[adapter]\nport = 8\n", (8290, 7, 8343, 8)),
        (Dialect::ChoreoConnect, "", (8290, 9190, 9195, 9943)),
        (Dialect::ApiPlatform, "", (8290, 8180, 8543, 9943)),
        (Dialect::ApiPlatform, "[router]\nlistener_port = 81\n", (8290, 81, 8543, 9943)),
    ] {
        let mut settings = configuration(dialect, text).settings;
        assert_eq!(settings.http_port(), expected.0, "{text}");
        settings.move_ports(100);
        let (http, https) = (settings.gateway.http_port, settings.gateway.https_port);
        assert_eq!(settings.http_port(), 8380);
        assert_eq!((http, https, settings.adapter.port), (expected.1, expected.2, expected.3), "{text}");
    }
}

#[test]
fn a_whole_file_of_ours() {
    let text = r#"
        workers = 3
        [listener]
        host = "127.0.0.1"
        http_port = "$env{PORT}"
        [tls]
        certificate = "cert.pem"
        key = "key.pem"
        [limits]
        body = "10MiB"
        [timeouts]
        idle = 5
        endpoint = "1500ms"
        [mediation]
        enable_auto_primitive = false
        [users]
        anna = "secret"
        [databases."jdbc/Orders"]
        url = "postgresql://db/orders"
        password = "hidden"
        query_timeout = "2500ms"
        [databases."jdbc:h2:./x.y"]
        url = "sqlite:all.db"
    "#;
    let found = configuration(Dialect::Penstock, text);
    assert_eq!(said(&found), [""; 0]);
    let settings = found.settings;
    assert_eq!(settings.workers, Some(3));
    assert_eq!(settings.http_port(), 8123);
    assert_eq!(settings.keystore.unwrap().key.unwrap().to_str(), Some("key.pem"));
    assert_eq!(settings.limits.body_bytes_max, 10 << 20);
    assert_eq!(settings.timeouts.idle.as_secs(), 5);
    assert_eq!(settings.flow.endpoint_timeout.as_millis(), 1500);
    assert!(!settings.conversion.mapping.auto_primitive);
    assert_eq!(settings.users, [("anna".to_owned(), "secret".to_owned())]);
    let [orders, all] = settings.databases.entries.as_slice() else { panic!("{:?}", settings.databases) };
    assert_eq!((orders.name.as_str(), orders.url.as_str()), ("jdbc/Orders", "postgresql://db/orders"));
    assert_eq!(orders.query_timeout.unwrap().as_millis(), 2500);
    assert_eq!((all.name.as_str(), all.url.as_str()), ("jdbc:h2:./x.y", "sqlite:all.db"));
    assert!(!format!("{:?}", settings.databases).contains("hidden"));
}

#[test]
fn every_mistake_is_said_with_its_place() {
    let elsewhere = said(&configuration(Dialect::Penstock, "[server]\noffset = 1"));
    assert_eq!(elsewhere, ["x.toml:2:1: error: unknown key `server.offset`, did you mean `listener.offset`?"]);
    let text = "workers = 0\n[listener]\nhttp_prt = 1\nhost = \"here\"\n[timeouts]\nidle = { a = 1 }\n[log]\nlevel = \"loud\"\n[tls]\npassword = \"$env{NONE}\"\n";
    let expected = [
        "x.toml:1:1: error: the key or password of a keystore is given, and no file (`tls.keystore` or `tls.certificate`)",
        "x.toml:1:11: error: `workers` must be a whole number above 0, not `0`",
        "x.toml:3:1: error: unknown key `listener.http_prt`, did you mean `listener.http_port`?",
        "x.toml:4:8: error: `listener.host` must be an IP address, not `here`",
        "x.toml:6:8: error: `timeouts.idle` must be a time such as `30s`",
        "x.toml:8:9: error: `log.level` must be trace, debug, info, warn or error, not `loud`",
        "x.toml:10:12: error: `$env{NONE}`: the environment variable `NONE` is not set",
    ];
    assert_eq!(said(&configuration(Dialect::Penstock, text)), expected);
    let databases = said(&configuration(Dialect::Penstock, "[databases.\"a.b\"]\nuser = \"x\"\nurll = \"y\"\n"));
    let expected =
        ["x.toml:1:1: error: `databases.a.b` has no `url`", "x.toml:3:8: error: unknown key `databases.a.b.urll`"];
    assert_eq!(databases, expected);
    let broken = said(&configuration(Dialect::Penstock, "a = = 1"));
    assert!(broken[0].starts_with("x.toml:1:5: error: not valid TOML: "), "{broken:?}");
}

#[test]
fn deployment_toml_applies_where_keys_are_supported() {
    let text = r#"
[server]
hostname = "esb.example.com"
offset = "20"
[user_store]
type = "read_only_ldap"
[transport.http]
socket_timeout = 90000
core_worker_pool_size = 500
[transport.http.listener]
parameter.port = 8300
[keystore.primary]
file_name = "x.p12"
password = "wso2carbon"
[mediation]
synapse.enable_auto_primitive = false
synapse.core_threads = 20
synapse.global_timeout_interval = 60000
[[datasource]]
id = "Orders"
url = "jdbc:h2:./orders"
username = "anna"
password = "secret"
pool_options.maxActive = 5
[[transport.rabbitmq.listener]]
name = "Broker"
parameter.hostname = "mq.example.com"
parameter.port = 5673
parameter.x = "y"
"#;
    let found = configuration(Dialect::MicroIntegrator, text);
    assert_eq!(
        said(&found),
        [
            "x.toml:6:1: warning: keys that have no meaning here are ignored: user_store.type, transport.http.core_worker_pool_size, \
          mediation.synapse.core_threads"
        ]
    );
    let settings = found.settings;
    assert_eq!((settings.http_port(), settings.https_port(), settings.admin_port()), (8320, 8263, 9211));
    assert_eq!(settings.hostname, "esb.example.com");
    let [orders] = settings.databases.entries.as_slice() else { panic!("{:?}", settings.databases) };
    assert_eq!((orders.name.as_str(), orders.url.as_str()), ("jdbc/Orders", "jdbc:h2:./orders"));
    assert_eq!((orders.user.as_deref(), orders.connections_max), (Some("anna"), Some(5)));
    let [broker] = settings.connection_factories.as_slice() else { panic!("{:?}", settings.connection_factories) };
    assert_eq!((broker.transport.as_str(), broker.name.as_str()), ("rabbitmq", "Broker"));
    let parameters = [("rabbitmq.server.host.name", "mq.example.com"), ("rabbitmq.server.port", "5673"), ("x", "y")];
    let expected: Vec<_> = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let sorted = |mut parameters: Vec<(String, String)>| {
        parameters.sort();
        parameters
    };
    assert_eq!(sorted(broker.parameters.clone()), expected);
    assert_eq!(settings.timeouts.idle.as_secs(), 90);
    assert_eq!(settings.flow.endpoint_timeout.as_secs(), 60);
    assert!(!settings.conversion.mapping.auto_primitive);
    assert_eq!(
        settings.keystore,
        Some(Keystore { file: "x.p12".into(), password: "wso2carbon".into(), ..Keystore::default() })
    );
}

#[test]
fn every_key_is_documented() {
    let page = include_str!("../../../../docs/configuration.md");
    for dialect in [Dialect::Penstock, Dialect::MicroIntegrator] {
        for name in keys::names(dialect) {
            assert!(page.contains(&format!("`{name}`")), "docs/configuration.md does not mention `{name}`");
        }
    }
}

#[test]
fn secrets_are_read_before_what_refers_to_them() {
    let text =
        "[tls]\nkeystore = 'k.p12'\npassword = '$secret{keys}'\n[secrets]\nkeys = 'env:PORT'\nother = 'env:NONE'\n";
    let found = configuration(Dialect::Penstock, text);
    assert_eq!(said(&found), ["x.toml:6:9: error: `secrets.other`: the environment variable `NONE` is not set"]);
    assert_eq!(found.settings.keystore.map(|keystore| keystore.password).as_deref(), Some("8123"));
    let text = "[secrets]\nplain = '[word]'\nsecret = 'kLJ8=='\n";
    let found = configuration(Dialect::MicroIntegrator, text);
    assert!(said(&found)[0].starts_with("x.toml:3:10: warning: `secrets.secret` is encrypted"), "{:?}", said(&found));
    assert_eq!(found.settings.secrets.get("plain").map(|value| &**value), Some("word"));
}

#[test]
fn limits_of_managed_apis_are_read_and_mistakes_named() {
    let text = "[gateway]\ndeny = [\"ip 10.0.0.0/8 and not user ann\"]\n[gateway.plans]\napi.Small = \"100/1m burst 5/1s\"\n\
                subscription.Trial = \"10/1m soft\"\n[gateway.custom_limits]\nperAddress = \"$clientIp 600/1m\"\n\
                [gateway.retry]\nstatuses = [502, 504]\n";
    let configuration = read("penstock.toml", text, Dialect::Penstock, &|_| None);
    assert!(!configuration.has_errors(), "{:?}", configuration.diagnostics);
    let gateway = &configuration.settings.gateway;
    let limits = &gateway.limits;
    assert_eq!((limits.plans.len(), limits.denials[0].conditions.len(), limits.custom.len()), (2, 2, 1));
    assert!(!limits.plans.iter().any(|plan| &*plan.name == "Trial" && plan.stop_on_quota));
    assert_eq!(gateway.upstream.retry_statuses, [502, 504]);
    for (text, says) in [
        ("[gateway.plans]\napi.Small = \"fast\"", "must be an amount"),
        ("[gateway.plans]\nother.Small = \"1/1m\"", "unknown key"),
        ("[gateway]\ndeny = [\"colour red\"]", "`colour` is not known"),
        ("[gateway.retry]\nstatuses = [200]", "from 401 to 598"),
        ("[gateway.tracing]\nratio = 2", "from 0 to 1"),
        ("[gateway.tracing]\nendpoint = \"collector:4317\"", "OTLP receiver"),
    ] {
        let said = format!("{:?}", read("penstock.toml", text, Dialect::Penstock, &|_| None).diagnostics);
        assert!(said.contains(says), "{text}: {said}");
    }
}

#[test]
fn connections_have_names_and_a_transport() {
    let text = "[connections.Broker]\ntransport = \"rabbitmq\"\n\"rabbitmq.server.host.name\" = \"mq\"\n";
    let found = configuration(Dialect::Penstock, text);
    assert_eq!(said(&found), [""; 0]);
    let [broker] = found.settings.connection_factories.as_slice() else { panic!() };
    assert_eq!(broker.parameters, [("rabbitmq.server.host.name".to_owned(), "mq".to_owned())]);
    let wrong =
        said(&configuration(Dialect::Penstock, "[connections.A]\nx = \"y\"\n[connections.B]\ntransport = \"z\"\n"));
    let expected = [
        "x.toml:1:1: error: `connections.A` has no `transport`",
        "x.toml:1:1: error: `connections.B` has no `transport`",
        "x.toml:4:13: error: `connections.B.transport`: must be one of: jms, mailto, mqtt, rabbitmq",
    ];
    assert_eq!(wrong, expected);
}
