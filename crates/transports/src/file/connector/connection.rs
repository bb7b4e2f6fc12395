//! A connection: `<file.init>`.

use std::sync::Arc;

use penstock_compile::connector::{Arguments, set_current};
use penstock_compile::{Compiler, Element};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};

use super::NAME;
use super::files::Files;
use super::outcome::{Code, Failure};
use crate::file::location::{Protocol, Remote, SystemAddress};

const PARAMETERS: &[&str] = &[
    "connectionType",
    "workingDir",
    "host",
    "port",
    "username",
    "password",
    "isPassive",
    "implicitModeEnabled",
    "userDirIsRoot",
    "privateKeyFilePath",
    "privateKeyPassword",
    "trustStorePath",
    "trustStorePassword",
];

/// Parameters that choose nothing here: a server is connected for each operation, without a cache, and a key of an SFTP
/// server that differs from the known one is always refused.
const WITHOUT_EFFECT: [&str; 19] = [
    "name",
    "fileLockScheme",
    "maxFailureRetryCount",
    "retryCount",
    "setAvoidPermission",
    "encodePassword",
    "cacheFileStats",
    "strictHostKeyChecking",
    "ftpConnectionTimeout",
    "ftpSocketTimeout",
    "sftpConnectionTimeout",
    "sftpSessionTimeout",
    "sftpPoolConnectionAgedTimeout",
    "maxActiveConnections",
    "maxIdleConnections",
    "maxWaitTime",
    "minEvictionTime",
    "evictionCheckInterval",
    "exhaustedAction",
];

/// Options of a connection, as addresses of files have them.
const OPTIONS: [(&str, &str); 7] = [
    ("isPassive", "vfs.passive"),
    ("implicitModeEnabled", "vfs.implicit"),
    ("userDirIsRoot", "transport.vfs.SFTPUserDirIsRoot"),
    ("privateKeyFilePath", "transport.vfs.SFTPIdentities"),
    ("privateKeyPassword", "transport.vfs.SFTPIdentityPassPhrase"),
    ("trustStorePath", "vfs.ssl.truststore"),
    ("trustStorePassword", "vfs.ssl.tspassword"),
];

/// A connection that was declared.
pub(super) struct Declared {
    /// `None` is the file system of this machine.
    protocol: Option<Protocol>,
    arguments: Arguments,
}

struct Init(Arc<Declared>);

/// Compiles the connection of a local entry.
pub(super) fn declare(key: &str, el: &Element<'_>, cx: &mut Compiler<'_>) {
    if let Some(declared) = read(el, cx) {
        cx.declare_connection(key, Arc::new(declared));
    }
}

/// Compiles `<file.init>` as a step of a flow.
pub(super) fn init(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    Some(Box::new(Init(Arc::new(read(el, cx)?))))
}

fn read(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Declared> {
    for name in WITHOUT_EFFECT {
        el.child(name);
    }
    let arguments = Arguments::compile_configured(el, cx, PARAMETERS)?;
    let kind = arguments.constant("connectionType").unwrap_or_else(|| "LOCAL".to_owned());
    let protocol = match kind.trim().to_ascii_uppercase().as_str() {
        "LOCAL" => None,
        "SFTP" => Some(Protocol::Sftp),
        "FTP" => Some(Protocol::Ftp),
        "FTPS" => Some(Protocol::Ftps),
        "SMB" | "SMB2" => {
            cx.error(el.place(), format!("files over `{kind}` are not supported; mount the share and use LOCAL"));
            return None;
        }
        _ => {
            cx.error(el.place(), format!("the `connectionType` `{kind}` is not one of LOCAL, SFTP, FTP, FTPS"));
            return None;
        }
    };
    if let Some(protocol) = protocol.filter(|protocol| !protocol.is_built()) {
        cx.error(el.place(), format!("this build has no `{}`", protocol.scheme()));
        return None;
    }
    if protocol.is_some() && !arguments.has("host") {
        cx.error(el.place(), format!("<file.init> with the `connectionType` `{kind}` needs <host>"));
        return None;
    }
    Some(Declared { protocol, arguments })
}

impl Declared {
    /// The file system and the folder for a message.
    pub(super) fn files(&self, exchange: &mut Exchange) -> Result<Result<Files, Failure>, Fault> {
        let arguments = &self.arguments;
        let folder = arguments.text("workingDir", exchange)?.unwrap_or_default();
        let Some(protocol) = self.protocol else { return Ok(Ok(Files::new(SystemAddress::Local, &folder))) };
        let port = match arguments.number("port", exchange)? {
            Ok(port) => port,
            Err(text) => return Ok(Err(Failure::new(Code::InvalidConfiguration, format!("`{text}` is not a port")))),
        };
        let mut options = Vec::new();
        for (name, option) in OPTIONS {
            options.extend(arguments.text(name, exchange)?.map(|value| (option.to_owned(), value)));
        }
        let remote = Remote {
            protocol,
            user: arguments.text("username", exchange)?.unwrap_or_default(),
            password: arguments.text("password", exchange)?.unwrap_or_default(),
            host: arguments.text("host", exchange)?.unwrap_or_default(),
            port,
            options,
        };
        Ok(Ok(Files::new(SystemAddress::Remote(Box::new(remote)), &folder)))
    }

    pub(super) fn needs(&self) -> Needs {
        self.arguments.needs()
    }
}

impl Mediator for Init {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        set_current(exchange, NAME, self.0.clone());
        Ok(Flow::Next)
    }
}
