//! The file connector: `<file.read>`, `<file.write>`, `<file.listFiles>`, … on a connection that a local entry with
//! `<file.init>` defines: the file system of this machine, SFTP, FTP or FTPS.
//!
//! With `responseVariable` a result is JSON, as in version 5 of the connector of Micro Integrator; without it the result is
//! XML in the body or in a property, as in version 4.

mod connection;
mod files;
mod outcome;
mod read;
mod task;
mod tree;

use penstock_compile::connector::{Arguments, Connection, Output, current};
use penstock_compile::{AlwaysFaults, Compiler, ConnectorKind, Element};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume};

use connection::Declared;
use files::Files;
use outcome::{Failure, Target};
use task::Task;

/// The kind.
pub(super) const KIND: ConnectorKind = ConnectorKind {
    name: NAME,
    operations: &[
        "init",
        "read",
        "write",
        "copy",
        "move",
        "rename",
        "delete",
        "listFiles",
        "checkExist",
        "createDirectory",
        "mergeFiles",
        "splitFile",
        "compress",
        "unzip",
        "exploreZipFile",
        "fetchDirectoryContent",
    ],
    compile,
    connection: connection::declare,
};

const NAME: &str = "file";

/// Operations of the connector of Micro Integrator that are faults here.
const NOT_SUPPORTED: [&str; 5] = ["splitFile", "compress", "unzip", "exploreZipFile", "fetchDirectoryContent"];

struct Operation {
    name: &'static str,
    connection: Connection<Declared>,
    arguments: Arguments,
    output: Output,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let name = el.name().strip_prefix("file.").unwrap_or_default();
    if name == "init" {
        return connection::init(el, cx);
    }
    if NOT_SUPPORTED.contains(&name) {
        el.accept_all();
        cx.warn(el.place(), format!("the operation `file.{name}` is not supported; it is a fault"));
        return Some(Box::new(AlwaysFaults::missing("connector operation that can run", el.name())));
    }
    let name = KIND.operations.iter().find(|known| **known == name)?;
    let connection = Connection::compile(el, cx, NAME)?;
    let arguments = Arguments::compile(el, cx, task::PARAMETERS)?;
    for ignored in task::IGNORED {
        if let Some(child) = el.child(ignored).filter(|child| !task::is_default(ignored, &child.text())) {
            cx.warn(child.place(), format!("<{ignored}> is not supported and is ignored"));
        }
    }
    Some(Box::new(Operation { name, connection, arguments, output: Output::compile(el, cx)? }))
}

impl Operation {
    /// What is done, and where.
    fn prepare(&self, exchange: &mut Exchange) -> Result<Result<(Task, Files), Failure>, Fault> {
        let declared = match self.connection.of(exchange)? {
            Some(declared) => declared,
            None => current(exchange, NAME)?,
        };
        let files = match declared.files(exchange)? {
            Ok(files) => files,
            Err(failure) => return Ok(Err(failure)),
        };
        Ok(Task::read(self.name, &self.arguments, exchange)?.map(|task| (task, files)))
    }
}

impl Mediator for Operation {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let name = self.name;
        let target = Target::read(&self.output, &self.arguments, exchange)?;
        let (task, files) = match self.prepare(exchange)? {
            Ok(prepared) => prepared,
            Err(failure) => return failure.report(name, &target, exchange),
        };
        let limit_bytes = exchange.program().limits.body_bytes_max;
        let keeps_stream = target.takes_streams();
        Ok(Flow::Wait(Box::pin(async move {
            let done = files.perform(task, keeps_stream, limit_bytes).await;
            Resume::new(move |exchange: &mut Exchange, ()| match done {
                Ok(done) => done.put(name, &target, exchange).map(|()| Flow::Next),
                Err(failure) => failure.report(name, &target, exchange),
            })
        })))
    }

    fn needs(&self) -> Needs {
        let candidates = self.connection.candidates();
        let connection = candidates.iter().map(|declared| declared.needs()).max().unwrap_or_default();
        let parameters = self.arguments.needs().max(self.connection.needs()).max(self.output.needs()).max(connection);
        let writes_body = self.name == "write" && !self.arguments.has("contentOrExpression");
        if writes_body || parameters != Needs::Nothing { Needs::Whole } else { Needs::Nothing }
    }
}
