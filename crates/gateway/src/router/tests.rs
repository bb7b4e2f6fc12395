use penstock_catalog::{Api, Operation as CatalogOperation};

use penstock_catalog::path::PathPattern;

use super::*;

fn site(name: &str, base: &str, method: &str, path: &str) -> Arc<Site> {
    Arc::new(Site {
        api: Arc::new(Api { name: name.into(), base_path: base.into(), ..Api::default() }),
        base_path: base.into(),
        operation: Arc::new(CatalogOperation {
            method: method.into(),
            path: path.into(),
            ..CatalogOperation::default()
        }),
        pattern: Arc::new(PathPattern::parse(path)),
        methods: method.into(),
        graphql: None,
        counted_at: 0,
    })
}

/// Name, base path, hosts, operations.
type Described<'a> = (&'a str, &'a str, &'a [&'a str], &'a [(&'a str, &'a str)]);

/// A router without a compiler: nothing of it is run.
fn router(apis: &[Described<'_>]) -> ApiRouter {
    let mut bases: HashMap<Arc<str>, Vec<Arc<Served>>> = HashMap::new();
    for (name, base, hosts, operations) in apis {
        let target =
            |(method, path): &(&str, &str)| Target { site: site(name, base, method, path), operation: Arc::default() };
        let path: Arc<str> = base.trim_end_matches('/').into();
        let base = Base {
            path: path.clone(),
            hosts: hosts.iter().map(|host| (*host).into()).collect(),
            transports: (true, true),
            targets: operations.iter().map(target).collect(),
            options: operations.iter().map(|(_, path)| target(&("OPTIONS", path))).collect(),
        };
        let served = bases.entry(path).or_default();
        served.push(Arc::new(Served::new(base)));
        served.sort_by_key(|served| served.base.hosts.is_empty());
    }
    let segments_max = bases.keys().map(|base| base.matches('/').count()).max().unwrap_or_default();
    let [unknown, other_method, no_resource] = [Arc::default(), Arc::default(), Arc::default()];
    ApiRouter {
        config: Arc::default(),
        state: Arc::default(),
        bases,
        segments_max,
        unknown,
        no_resource,
        other_method,
        denied: Default::default(),
        system: Default::default(),
    }
}

#[test]
fn needless_escapes_lead_to_no_other_operation() {
    let router = router(&[(
        "A",
        "/a",
        &[],
        &[
            ("GET", "/admin"),
            ("GET", "/*"),
            ("GET", "/users/{id}"),
            ("GET", "/jobs/{id}"),
            ("GET", "/jobs/{id}:cancel"),
        ],
    )]);
    for (path, is_another) in [
        ("/a/jobs/1%3Acancel", true),
        ("/a/jobs/1%3a%63ancel", true),
        ("/a/jobs/1%3A2", false),
        ("/a/jobs/1:cancel", false),
        ("/a/admin", false),
        ("/a/%61dmin", true),
        ("/%61/admin", true),
        ("/a/users/%7Eann", false),
        ("/a/users/a%2Fb", false),
        ("/a/%6fther", false),
    ] {
        let key =
            RouteKey { path, method: "GET", host: None, secure: false, preflight: None, headers: &Headers::new() };
        assert_eq!(router.is_another_unescaped(&key, router.find(&key)), is_another, "{path}");
    }
}

#[test]
fn slashes_that_backends_may_read_do_not_open_protected_operations() {
    let operations = [
        ("GET", "/{name}"),
        ("GET", "/users/{id}"),
        ("GET", "/users/{id}/orders"),
        ("GET", "/admin/keys"),
        ("GET", "/public/list"),
        ("GET", "/files/*"),
        ("GET", "/files/secret/*"),
    ];
    let closed = ["/users/{id}", "/users/{id}/orders", "/admin/keys", "/files/secret/*"];
    let target = |(method, path): &(&str, &str)| {
        let mut site = Arc::into_inner(site("A", "/a", method, path)).unwrap();
        let operation = CatalogOperation { secured: closed.contains(path), ..(*site.operation).clone() };
        site.operation = Arc::new(operation);
        Target { site: Arc::new(site), operation: Arc::default() }
    };
    let base = Base {
        path: "/a".into(),
        hosts: Vec::new(),
        transports: (true, true),
        targets: operations.iter().map(target).collect(),
        options: Vec::new(),
    };
    let mut router = router(&[("A", "/a", &[], &[])]);
    router.bases.insert("/a".into(), vec![Arc::new(Served::new(base))]);
    for (path, is_refused) in [
        ("/a/admin%2Fkeys", true),
        ("/a/admin%2fkeys", true),
        ("/a/admin%5Ckeys", true),
        ("/a/admin\\keys", true),
        ("/a/users%2F7", true),
        ("/a/users%2F7;v=1", true),
        ("/a/users/7%2Forders", true),
        ("/a/files//secret/x", true),
        ("/a/files/secret;v=1/x", true),
        ("/a/files/x%2F..x", false),
        ("/a/files%2Fsecret%2Fx", true),
        // No operation, an open one, or the same: the slash belongs to a value.
        ("/a/users/a%2Fb%2Fc", false),
        ("/a/x%2Fy", false),
        ("/a/public%2Flist", false),
        ("/a/users/7;v=1", false),
        ("/a/users/7", false),
        ("/a/users/7/orders", false),
    ] {
        let key =
            RouteKey { path, method: "GET", host: None, secure: false, preflight: None, headers: &Headers::new() };
        let found = router.find(&key);
        assert!(found.is_some(), "{path}");
        assert_eq!(router.may_be_another(&key, found), is_refused, "{path}");
    }
}

fn found(router: &ApiRouter, method: &str, host: &str, path: &str) -> String {
    match router.find(&RouteKey {
        path,
        method,
        host: Some(host),
        secure: false,
        preflight: None,
        headers: &Headers::new(),
    }) {
        None => "no API".to_owned(),
        Some((operation, None)) if Arc::ptr_eq(operation, &router.other_method) => "other method".to_owned(),
        Some((_, None)) => "no resource".to_owned(),
        Some((_, Some(target))) => {
            let values = router.values(&target.site, path).join(",");
            format!("{} {} {values}", target.site.api.name, target.site.operation.method).trim_end().to_owned()
        }
    }
}

#[test]
fn the_longest_base_path_of_the_host_wins() {
    let router = router(&[
        ("v2", "/orders", &[], &[("GET", "/{id}")]),
        ("v1", "/orders/1.0.0", &[], &[("GET", "/{id}")]),
        ("us", "/orders", &["us.example.com"], &[("GET", "/{id}")]),
        ("root", "/", &["root.example.com"], &[("GET", "/*")]),
    ]);
    for (method, host, path, expected) in [
        ("GET", "h", "/orders/7", "v2 GET 7"),
        ("GET", "h", "/orders/1.0.0/7", "v1 GET 7"),
        ("GET", "h", "/orders/1.0.0/7/", "v1 GET 7"),
        ("GET", "h", "/orders/1.0.0", "no resource"),
        ("GET", "h", "/orders/2.0.0/7", "no resource"),
        ("GET", "h", "/ordersX/7", "no API"),
        ("GET", "US.example.com:8280", "/orders/7", "us GET 7"),
        ("GET", "us.example.com", "/orders/1.0.0/7", "v1 GET 7"),
        ("GET", "root.example.com", "/anything/at/all", "root GET"),
        ("GET", "root.example.com", "/", "root GET"),
        ("GET", "[::1]:8280", "/orders/7", "v2 GET 7"),
        ("POST", "h", "/orders/7", "other method"),
        ("OPTIONS", "h", "/orders/7", "v2 OPTIONS 7"),
        ("OPTIONS", "h", "/orders/7/8", "no resource"),
        ("GET", "h", "", "no API"),
    ] {
        assert_eq!(found(&router, method, host, path), expected, "{method} {host} {path}");
    }
}

/// 300 APIs of 50 operations: prints what finding one costs. Run with `--release --nocapture` for figures that mean
/// something; what is asserted is that all of them are found.
#[test]
fn many_apis_and_operations() {
    let paths: Vec<(String, String)> = (0..25)
        .flat_map(|number| {
            let literal = ("GET".to_owned(), format!("/things{number}/list"));
            let template = ("POST".to_owned(), format!("/things{number}/{{id}}/parts/{{part}}"));
            [literal, template]
        })
        .collect();
    let operations: Vec<(&str, &str)> = paths.iter().map(|(method, path)| (&**method, &**path)).collect();
    let names: Vec<(String, String)> =
        (0..300).map(|number| (format!("api{number}"), format!("/team{}/api{number}/1.0.0", number % 7))).collect();
    let apis: Vec<_> = names.iter().map(|(name, base)| (&**name, &**base, &[] as &[&str], &operations[..])).collect();
    let router = router(&apis);
    let requests: Vec<(String, String)> = (0..300)
        .flat_map(|number| {
            let base = format!("/team{}/api{number}/1.0.0", number % 7);
            let part = number % 25;
            [
                ("GET".to_owned(), format!("{base}/things{part}/list")),
                ("POST".to_owned(), format!("{base}/things{part}/4711/parts/{number}")),
            ]
        })
        .collect();
    const ROUNDS: u32 = 20;
    let started = std::time::Instant::now();
    let mut hits = 0;
    for _ in 0..ROUNDS {
        for (method, path) in &requests {
            hits += usize::from(
                router
                    .find(&RouteKey {
                        path,
                        method,
                        host: Some("localhost:8280"),
                        secure: false,
                        preflight: None,
                        headers: &Headers::new(),
                    })
                    .is_some_and(|(_, target)| target.is_some()),
            );
        }
    }
    let each = started.elapsed() / (ROUNDS * requests.len() as u32);
    assert_eq!(hits, ROUNDS as usize * requests.len());
    println!("300 APIs of 50 operations: {each:?} for one request");
}
