//! The running binary, and a client for it: sockets and text, nothing that could hide a mistake.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod broker;
pub mod ports;
pub mod tls;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Nothing that is waited for here takes longer on any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A folder that is removed when the test ends.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("penstock-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A command of the binary that ends by itself.
pub struct Finished {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the binary in a folder and waits for its end.
pub fn penstock(folder: &Path, arguments: &[&str]) -> Finished {
    let output = Command::new(env!("CARGO_BIN_EXE_penstock")).args(arguments).current_dir(folder).output().unwrap();
    Finished {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A server of the binary.
pub struct Server {
    child: Child,
    log: Arc<Mutex<String>>,
    pub http: u16,
    pub admin: u16,
}

impl Server {
    /// Starts `penstock ARGUMENTS --config FILE` on free ports; `toml` is added to the configuration.
    pub fn start(folder: &Folder, arguments: &[&str], toml: &str) -> Server {
        let text = format!("listener.http_port = 0\nlistener.https_port = 0\nadmin.port = 0\nworkers = 2\n{toml}\n");
        Server::start_with(folder, arguments, &text)
    }

    /// Starts with this configuration.
    pub fn start_with(folder: &Folder, arguments: &[&str], toml: &str) -> Server {
        Server::start_by(folder, Command::new(env!("CARGO_BIN_EXE_penstock")), arguments, toml)
    }

    /// Starts the binary by another program, which gets it and its arguments as its last arguments.
    pub fn start_under(folder: &Folder, starter: &[&str], arguments: &[&str], toml: &str) -> Server {
        let text = format!("listener.http_port = 0\nlistener.https_port = 0\nadmin.port = 0\nworkers = 2\n{toml}\n");
        let mut command = Command::new(starter[0]);
        command.args(&starter[1..]).arg(env!("CARGO_BIN_EXE_penstock"));
        Server::start_by(folder, command, arguments, &text)
    }

    fn start_by(folder: &Folder, mut command: Command, arguments: &[&str], toml: &str) -> Server {
        let config = folder.write("penstock.toml", toml);
        command.args(arguments).arg("--config").arg(config);
        Server::spawn(folder, command)
    }

    /// Starts `penstock ARGUMENTS`, with the configuration that the paths bring.
    pub fn start_plain(folder: &Folder, arguments: &[&str]) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
        command.args(arguments);
        Server::spawn(folder, command)
    }

    fn spawn(folder: &Folder, mut command: Command) -> Server {
        let mut child = command.current_dir(&folder.0).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let lines = log.clone();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut log = lines.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let mut server = Server { child, log, http: 0, admin: 0 };
        server.wait_for_log("health   http://");
        server.http = server.port_after("HTTP     http://localhost:");
        server.admin = server.port_after("health   http://localhost:");
        server
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until the log holds a text. The log is written and read asynchronously: a line may arrive after the
    /// response that it is about.
    pub fn wait_for_log(&mut self, text: &str) {
        self.wait_for_log_times(text, 1);
    }

    /// Waits until the log holds a text at least `times` times.
    pub fn wait_for_log_times(&mut self, text: &str, times: usize) {
        self.wait_until_logged(&format!("`{text}` {times} times"), |log| log.matches(text).count() >= times);
    }

    /// Waits until the log, which the server writes asynchronously, fulfils a condition.
    pub fn wait_until_logged(&mut self, what: &str, logged: impl Fn(&str) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !logged(&self.log()) {
            if let Some(status) = self.child.try_wait().unwrap() {
                // The reader of the log may be behind.
                std::thread::sleep(Duration::from_millis(100));
                assert!(logged(&self.log()), "ended with {status} without {what} in the log:\n{}", self.log());
                return;
            }
            assert!(Instant::now() < end, "the log never had {what}:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn port_after(&self, text: &str) -> u16 {
        let log = self.log();
        let (_, rest) = log.split_once(text).unwrap_or_else(|| panic!("no `{text}` in\n{log}"));
        rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
    }

    pub fn process(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.process(), signal).unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the server did not end:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn get(&self, path: &str) -> Reply {
        Connection::open(self.http).request("GET", path, &[], b"")
    }

    pub fn admin(&self, path: &str) -> Reply {
        Connection::open(self.admin).request("GET", path, &[], b"")
    }

    /// Waits until the metrics have all of these texts: a request is counted after its response.
    pub fn wait_for_metrics(&self, texts: &[&str]) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let metrics = self.admin("/metric-service/metrics").body;
            let missing = texts.iter().find(|text| !metrics.contains(**text));
            let Some(missing) = missing else { return metrics };
            assert!(Instant::now() < end, "no `{missing}` in\n{metrics}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn post(&self, path: &str, content_type: &str, body: &str) -> Reply {
        Connection::open(self.http).request("POST", path, &[("Content-Type", content_type)], body.as_bytes())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// A connection that is kept open.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    pub fn open(port: u16) -> Connection {
        let socket = TcpStream::connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Connection(BufReader::new(socket))
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        self.try_request(method, path, headers, body).unwrap()
    }

    pub fn try_request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Reply> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        let mut bytes = request.into_bytes();
        bytes.extend_from_slice(body);
        self.0.get_mut().write_all(&bytes)?;
        self.read_reply()
    }

    fn read_reply(&mut self) -> std::io::Result<Reply> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let lower = head.to_ascii_lowercase();
        let mut body = Vec::new();
        if lower.contains("transfer-encoding: chunked") {
            loop {
                let mut size = String::new();
                self.0.read_line(&mut size)?;
                let size = usize::from_str_radix(size.trim(), 16).unwrap();
                let mut chunk = vec![0; size + 2];
                self.0.read_exact(&mut chunk)?;
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
            }
        } else if let Some((_, rest)) = lower.split_once("content-length: ") {
            body = vec![0; rest.split("\r\n").next().unwrap().parse().unwrap()];
            self.0.read_exact(&mut body)?;
        }
        Ok(Reply { status, head, body: String::from_utf8_lossy(&body).into_owned() })
    }
}

/// An API at `/a` that answers with a text.
pub fn api(text: &str) -> String {
    format!(
        "<api xmlns='http://ws.apache.org/ns/synapse' name='A' context='/a'><resource methods='GET'><inSequence>\
         <payloadFactory media-type='json'><format>{{\"text\": \"{text}\"}}</format><args/></payloadFactory>\
         <respond/></inSequence></resource></api>"
    )
}
