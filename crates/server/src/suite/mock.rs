//! Mock services: what a suite's backends answer.
//!
//! They run in the process: a request to the port of a mock service never reaches a socket, so that suites need no free
//! ports and run side by side.

use std::sync::Arc;

use penstock_compile::{Element, SourceDocument};
use penstock_engine::endpoint::{Leaf, Target};
use penstock_engine::{Exchange, Fault};
use penstock_message::{Body, Headers, Message};

use super::compare;
use super::parse::{Broken, content};

/// One mock service.
#[derive(Debug)]
pub struct Mock {
    /// The name of the endpoint it stands for.
    pub name: String,
    /// The port it is called at.
    pub port: u16,
    /// The path all its resources begin with.
    context: String,
    resources: Vec<Resource>,
}

#[derive(Debug)]
struct Resource {
    /// `sub-context`, with the query when the request must have that one.
    path: String,
    method: String,
    request: Option<Expected>,
    status: u16,
    headers: Vec<(String, String)>,
    payload: String,
}

/// What a request must carry to get the answer.
#[derive(Debug)]
struct Expected {
    payload: Option<String>,
    headers: Vec<(String, String)>,
}

/// Reads a mock service.
pub fn mock(source: &SourceDocument) -> Result<Mock, Broken> {
    let nowhere = || penstock_engine::Place { file: source.file.clone(), line: 1, column: 1 };
    let root = source.root().ok_or_else(|| (nowhere(), "the file is empty".to_owned()))?;
    if root.name() != "mock-service" {
        return Err((root.place(), format!("<{}> is not a mock service; expected <mock-service>", root.name())));
    }
    let port = root.child_text("port").unwrap_or_default();
    let port = port.parse().map_err(|_| (root.place(), format!("the port `{port}` is not a number of a port")))?;
    let resources = root.elements("resources").flat_map(|list| list.elements("resource").collect::<Vec<_>>());
    Ok(Mock {
        name: root.child_text("service-name").unwrap_or_default(),
        port,
        context: root.child_text("context").unwrap_or_default().trim_end_matches('/').to_owned(),
        resources: resources.map(|el| resource(&el)).collect::<Result<_, _>>()?,
    })
}

fn resource(el: &Element<'_>) -> Result<Resource, Broken> {
    let response = el.child("response").ok_or_else(|| (el.place(), "<resource> needs <response>".to_owned()))?;
    let status = response.child_text("status-code").filter(|text| !text.is_empty()).unwrap_or_else(|| "200".to_owned());
    // Editors write the reason behind the number.
    let number = status.split_whitespace().next().unwrap_or_default();
    let status = number.parse().map_err(|_| (response.place(), format!("the status `{status}` is not a number")))?;
    let payload =
        |el: &Element<'_>| el.child("payload").map(|payload| content(&payload)).filter(|text| !text.is_empty());
    Ok(Resource {
        path: el.child_text("sub-context").unwrap_or_default(),
        method: el.child_text("method").unwrap_or_default().to_uppercase(),
        request: el.child("request").map(|request| Expected { payload: payload(&request), headers: headers(&request) }),
        status,
        headers: headers(&response),
        payload: payload(&response).unwrap_or_default(),
    })
}

fn headers(el: &Element<'_>) -> Vec<(String, String)> {
    let list = el.elements("headers").flat_map(|list| list.elements("header").collect::<Vec<_>>());
    list.filter_map(|header| Some((header.attribute("name")?.to_owned(), header.attribute("value")?.to_owned())))
        .collect()
}

/// A request as a mock service sees it.
pub struct MockRequest<'a> {
    /// Its method.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Its headers.
    pub headers: &'a Headers,
    /// Its body.
    pub body: &'a str,
}

/// The answer of the first mock service that has one.
pub fn answer(mocks: &[Mock], port: u16, request: &MockRequest<'_>) -> Option<Message> {
    let here = || mocks.iter().filter(|mock| mock.port == port);
    let found = here().flat_map(|mock| mock.resources.iter().map(move |resource| (mock, resource)));
    // Resources with more requirements have precedence.
    let mut fitting: Vec<&Resource> =
        found.filter(|(mock, resource)| resource.fits(&mock.context, request)).map(|(_, resource)| resource).collect();
    fitting.sort_by_key(|resource| std::cmp::Reverse(resource.request.as_ref().map_or(0, Expected::weight)));
    let resource = fitting.first()?;
    let mut headers = Headers::new();
    for (name, value) in &resource.headers {
        headers.append(name, value);
    }
    let body = if resource.payload.is_empty() { Body::empty() } else { Body::bytes(resource.payload.clone()) };
    Some(Message { status: resource.status, headers, body, ..Message::default() })
}

impl Expected {
    fn weight(&self) -> usize {
        usize::from(self.payload.is_some()) * 1000 + self.headers.len()
    }

    fn fits(&self, request: &MockRequest<'_>) -> bool {
        let header =
            |(name, value): &(String, String)| request.headers.get(name).is_some_and(|got| got.trim() == value.trim());
        self.headers.iter().all(header)
            && self.payload.as_ref().is_none_or(|payload| compare::same(payload, request.body))
    }
}

impl Resource {
    fn fits(&self, context: &str, request: &MockRequest<'_>) -> bool {
        if !self.method.is_empty() && self.method != request.method {
            return false;
        }
        let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
        let (wanted, wanted_query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let wanted = format!("{context}/{}", wanted.trim_start_matches('/'));
        let same_path = wanted.trim_end_matches('/') == path.trim_end_matches('/');
        let mut left: Vec<&str> = wanted_query.split('&').filter(|part| !part.is_empty()).collect();
        let mut right: Vec<&str> = query.split('&').filter(|part| !part.is_empty()).collect();
        left.sort_unstable();
        right.sort_unstable();
        same_path
            && (left.is_empty() || left == right)
            && self.request.as_ref().is_none_or(|expected| expected.fits(request))
    }
}

/// Sends what an endpoint would send to a mock service instead: the same path on another host.
pub struct Redirected {
    inner: Box<dyn Leaf>,
    authority: Arc<str>,
    context: String,
}

impl Redirected {
    /// Replaces an address by the mock service.
    pub fn new(inner: Box<dyn Leaf>, mock: &Mock) -> Redirected {
        let authority = format!("http://localhost:{}", mock.port).into();
        Redirected { inner, authority, context: mock.context.clone() }
    }
}

impl Leaf for Redirected {
    fn target(&self, exchange: &mut Exchange) -> Result<Target, Fault> {
        let mut target = self.inner.target(exchange)?;
        let rest = target.url.split_once("://").map_or(&*target.url, |(_, rest)| rest);
        let path = rest.find(['/', '?']).map_or("", |start| &rest[start..]);
        let context = if path.starts_with(&self.context) { "" } else { self.context.as_str() };
        target.url = format!("{}{context}{path}", self.authority).into();
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const ORDERS: &str = "<mock-service><service-name>E</service-name><port>9090</port><context>/shop</context><resources>
        <resource><sub-context>/orders?open=1&amp;page=2</sub-context><method>GET</method><response><payload>open</payload></response></resource>
        <resource><sub-context>/orders</sub-context><method>POST</method><response><status-code>400 Bad Request</status-code></response></resource>
        <resource><sub-context>/orders</sub-context><method>POST</method><request><payload>{\"id\": 1}</payload>
          <headers><header name='X-Key' value='k'/></headers></request><response><payload>one</payload></response></resource>
        </resources></mock-service>";

    #[test]
    fn a_request_gets_the_answer_that_asks_for_the_most() {
        let source = super::super::parse::source(Path::new("m.xml"), ORDERS.into()).unwrap();
        let mocks = [mock(&source).unwrap()];
        let mut headers = Headers::new();
        headers.set("X-Key", "k");
        let none = Headers::new();
        let text = |message: Message| (message.status, String::from_utf8_lossy(&message.body.available()).into_owned());
        for (method, target, headers, body, expected) in [
            ("GET", "/shop/orders?page=2&open=1", &none, "", Some((200, "open"))),
            ("GET", "/shop/orders", &none, "", None),
            ("POST", "/shop/orders", &headers, "{\"id\":1}", Some((200, "one"))),
            ("POST", "/shop/orders", &none, "{\"id\":1}", Some((400, ""))),
            ("PUT", "/shop/orders", &none, "", None),
        ] {
            let got = answer(&mocks, 9090, &MockRequest { method, target, headers, body }).map(text);
            let expected = expected.map(|(status, body)| (status, body.to_owned()));
            assert_eq!(got, expected, "{method} {target}");
        }
    }
}
