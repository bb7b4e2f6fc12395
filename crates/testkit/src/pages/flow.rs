//! A configuration that runs in this process, with a scripted backend.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use crate::REGISTRY;
use penstock_compile::{Compilation, CompileOptions, Input, InputKind, compile};
use penstock_engine::ports::{
    Client, Environment, Level, LocalFuture, LogSink, Outbound, Outgoing, Record, Request, Service,
};
use penstock_engine::{Core, Current, Dispatcher, Fault, Metrics, Program, Registry, Side, Users, codes};
use penstock_message::{Body, Form, Headers, Message, Method, RequestLine};
use penstock_sql::{Mapping, Sql};
use penstock_transports::store::MessageStores;
use regex::Regex;

use super::parse::{Block, Kind};

/// What came of a request.
pub struct Outcome {
    /// What the client got.
    pub response: Shown,
    /// What the backend got.
    pub received: Vec<Shown>,
    /// What was logged.
    pub log: Vec<String>,
}

/// A message as a page shows it.
pub struct Shown {
    first_line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Shown {
    fn of(first_line: String, message: &Message) -> Shown {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let headers = message.headers.iter().map(|(name, value)| (text(name), text(value))).collect();
        let body = match message.body.form() {
            Form::Bytes(bytes) => text(bytes),
            Form::Empty => String::new(),
            other => format!("{other:?}"),
        };
        Shown { first_line, headers, body }
    }

    /// As text, with the headers that `before` shows and the Content-Type.
    pub fn shown(&self, before: &str) -> String {
        let head = before.split("\n\n").next().unwrap_or_default();
        let named: Vec<&str> =
            head.lines().skip(1).filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
        let mut out = self.first_line.clone();
        for (name, value) in &self.headers {
            if name.eq_ignore_ascii_case("content-type") || named.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
            {
                out.push_str(&format!("\n{name}: {value}"));
            }
        }
        if !self.body.is_empty() {
            out.push_str("\n\n");
            out.push_str(self.body.trim_end());
        }
        settled(&out)
    }
}

/// Identifiers made in this run are not part of what a page says.
fn settled(text: &str) -> String {
    let uuid = Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("a constant pattern");
    uuid.replace_all(text, "…").into_owned()
}

/// The name in configurations for the folder of a section.
const FOLDER_NAME: &str = "page.folder";

/// The running configuration of one section.
pub struct Flow {
    compilation_text: String,
    errors: bool,
    current: Arc<Current>,
    databases: Arc<Sql>,
    stores: Arc<MessageStores>,
    registry: Arc<Registry>,
    folder: Option<Folder>,
}

/// What files of a section are in; it is removed with the section.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let name = format!("penstock-page-{:016x}", penstock_engine::clock::random());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("the folder for temporary files can be written");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Flow {
    /// Compiles the configurations of a section.
    pub fn new(blocks: &[Block]) -> Flow {
        let inputs: Vec<Input> = blocks.iter().filter_map(input).collect();
        let folder = blocks.iter().any(|block| block.text.contains(FOLDER_NAME)).then(Folder::new);
        let configured = folder.iter().map(|folder| (FOLDER_NAME.to_owned(), folder.0.display().to_string()));
        let options = CompileOptions {
            modules: modules(blocks),
            configurables: configured.collect(),
            ..CompileOptions::default()
        };
        Flow { folder, ..Flow::compile(&inputs, &options) }
    }

    /// Compiles these inputs.
    pub fn compile(inputs: &[Input], options: &CompileOptions) -> Flow {
        let Compilation { program, diagnostics, artifacts } = compile(inputs, &REGISTRY, options);
        let errors = artifacts.iter().any(|artifact| !artifact.good)
            || diagnostics.iter().any(|diagnostic| diagnostic.severity == penstock_compile::Severity::Error);
        let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        // Databases of a page are those that stand in for others: they are empty, and gone with the section.
        let databases = Arc::new(Sql::without_tls(Mapping::default()));
        let stores = Arc::new(MessageStores::new(databases.clone(), &[]));
        Flow {
            compilation_text: lines.join("\n"),
            errors,
            current: Current::new(Arc::new(program)),
            databases,
            stores,
            registry: Arc::default(),
            folder: None,
        }
    }

    /// The program that runs.
    pub fn program(&self) -> Arc<Program> {
        self.current.get()
    }

    /// What the compiler said.
    pub fn diagnostics(&self) -> String {
        self.compilation_text.clone()
    }

    /// Whether something cannot be served.
    pub fn has_errors(&self) -> bool {
        self.errors
    }

    /// Sends a request through it.
    pub fn ask(&mut self, request: &str, answers: Vec<String>) -> Result<Outcome, String> {
        let (line, headers, body) = head(request)?;
        let (method, target) = line.split_once(' ').ok_or("a request begins with `METHOD PATH`")?;
        let (target, secure) = match target.trim().strip_prefix("https:") {
            Some(target) => (target, true),
            None => (target.trim(), false),
        };
        let method = Method::parse(method);
        let line = RequestLine { method: method.clone(), target: target.to_owned().into(), secure };
        let message = Message { headers, body, method, ..Message::default() };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(|error| error.to_string())?;
        let replies: Result<VecDeque<Message>, String> = answers.iter().map(|answer| reply(answer)).collect();
        let backend = Rc::new(Backend { replies: RefCell::new(replies?), received: RefCell::default() });
        let log = Arc::new(Lines::default());
        let environment = Environment {
            users: Users::from([("anna".to_owned(), "secret".to_owned())])
                .with_roles([("managers".to_owned(), vec!["anna".to_owned()])].into()),
            registry: self.registry.clone(),
            host: "localhost".into(),
            http_port: 8290,
            https_port: 8253,
            ..Environment::default()
        };
        let core = Core::new(
            backend.clone(),
            log.clone(),
            Arc::new(environment),
            Arc::new(Metrics::default()),
            self.current.clone(),
        );
        core.set_databases(self.databases.clone());
        core.set_stores(self.stores.clone());
        let service = Dispatcher::new(core);
        let local: SocketAddr = ([127, 0, 0, 1], if secure { 8253 } else { 8290 }).into();
        let client = Rc::new(Client {
            line,
            address: [192, 0, 2, 1].into(),
            peer: ([192, 0, 2, 1], 50_000).into(),
            local,
            protocol: "HTTP/1.1",
            certificate: None,
        });
        let tasks = tokio::task::LocalSet::new();
        let answer = tasks.block_on(&runtime, service.answer(Request { client, message }));
        // Branches may outlive the answer; what they log and send belongs to the outcome.
        runtime.block_on(async { tokio::time::timeout(std::time::Duration::from_secs(2), tasks).await.ok() });
        let mut first_line = answer.status.to_string();
        if let Some(reason) = &answer.reason {
            first_line.push(' ');
            first_line.push_str(reason);
        }
        let mut response = Shown::of(first_line, &answer);
        if let Some(Folder(path)) = &self.folder {
            response.body = response.body.replace(&*path.to_string_lossy(), "FOLDER");
        }
        let log =
            log.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).iter().map(|line| settled(line)).collect();
        let received = backend.received.take();
        Ok(Outcome { response, received, log })
    }
}

/// The modules of a section, by the classes they stand for.
fn modules(blocks: &[Block]) -> HashMap<String, bytes::Bytes> {
    let module = |block: &Block| {
        let class = block.info.strip_prefix("wat ")?.trim().to_owned();
        // Text that is not WebAssembly is passed unchanged: the compiler reports it at the element that names the class.
        let bytes = wat::parse_str(&block.text).unwrap_or_else(|_| block.text.clone().into_bytes());
        Some((class, bytes.into()))
    };
    blocks.iter().filter_map(module).collect()
}

fn input(block: &Block) -> Option<Input> {
    let (file, text) = match block.kind {
        Kind::Configuration => ("configuration.xml", block.text.clone()),
        // On one line with the first mediator, so that places in diagnostics are those of the page's block.
        Kind::Mediators => (
            "mediators.xml",
            format!(
                "<api xmlns=\"http://ws.apache.org/ns/synapse\" name=\"page\" context=\"/page\"><resource methods=\"GET POST PUT DELETE\" \
                 url-mapping=\"/*\"><inSequence>{}</inSequence></resource></api>",
                block.text
            ),
        ),
        _ => return None,
    };
    Some(Input { file: file.into(), bytes: text.into(), kind: InputKind::Artifact })
}

/// The first line, the headers and the body of a block.
fn head(text: &str) -> Result<(&str, Headers, Body), String> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let first = lines.next().ok_or("the block is empty")?;
    let mut headers = Headers::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| format!("`{line}` is not a header"))?;
        headers.append(name.trim(), value.trim());
    }
    Ok((first, headers, Body::bytes(body.to_owned())))
}

fn reply(text: &str) -> Result<Message, String> {
    let (first, headers, body) = head(text)?;
    let status = first
        .split(' ')
        .next()
        .and_then(|status| status.parse().ok())
        .ok_or_else(|| format!("`{first}` is not a status"))?;
    Ok(Message { headers, body, status, ..Message::default() })
}

/// Responds as the page has it, in order; afterwards connections are refused.
struct Backend {
    replies: RefCell<VecDeque<Message>>,
    received: RefCell<Vec<Shown>>,
}

impl Outbound for Backend {
    fn send<'a>(&'a self, outgoing: Outgoing) -> LocalFuture<'a, Result<Message, Fault>> {
        let line = format!("{} {}", outgoing.method.as_str(), outgoing.url);
        self.received.borrow_mut().push(Shown::of(line, &outgoing.message));
        let reply = self.replies.borrow_mut().pop_front();
        let refused = || {
            Fault::coded(
                codes::CONNECTION_FAILED,
                Side::Backend,
                format!("connecting to `{}` failed: connection refused", outgoing.url),
            )
        };
        let reply = reply.ok_or_else(refused);
        Box::pin(async move { reply })
    }
}

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl LogSink for Lines {
    fn write(&self, record: &Record<'_>) {
        let level = format!("{:?}", record.level).to_uppercase();
        let line = format!("{level} {} {} {}", record.logger, record.service, record.text);
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(line);
    }

    fn enabled(&self, level: Level) -> bool {
        level >= Level::Info
    }
}
