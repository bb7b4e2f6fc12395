//! Starting the gateways of a plan, waiting until they listen, and ending them.
use crate::error::Error;
use crate::http::url::Url;
use crate::plan::Target;
use std::fs::File;
use std::io::Read;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for a gateway to end after SIGTERM, before it is killed.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// How often a starting or ending gateway is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A gateway that answers connections. Ends with this value if it was started by us.
#[derive(Debug)]
pub struct Running {
    /// Name in tables and charts.
    pub name: String,
    /// Address without path.
    pub url: Url,
    /// Process to measure.
    pub pid: Option<u32>,
    /// Scenarios it can do; `None` is all.
    pub scenarios: Option<Vec<String>>,
    /// How it was started, for messages.
    pub command_line: String,
    child: Option<Child>,
}

/// Why a gateway is not there.
#[derive(Debug)]
pub enum NotRunning {
    /// Its program is not installed.
    NotInstalled(String),
    /// It could not be started.
    Failed(Error),
}

/// Values for `{name}` in arguments and addresses.
pub type Placeholders = Vec<(&'static str, String)>;

/// Starts a gateway, or finds the one that runs already, and waits until it listens. Its output goes to `log`.
pub fn start(target: &Target, placeholders: &Placeholders, log: &Path) -> Result<Running, NotRunning> {
    let fill = |text: &str| placeholders.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
    let url = Url::parse(&fill(&target.url)).map_err(NotRunning::Failed)?;
    let mut running = Running {
        name: target.name.clone(),
        url,
        pid: target.pid,
        scenarios: target.scenarios.clone(),
        command_line: String::new(),
        child: None,
    };
    let arguments: Vec<String> = target.start.iter().map(|argument| fill(argument)).collect();
    let Some((program, arguments)) = arguments.split_first() else {
        if !listens(&running.url) {
            let why = format!("no server listens at `{}` for target `{}`", running.url, target.name);
            return Err(NotRunning::Failed(Error::Environment(why)));
        }
        return Ok(running);
    };
    let program_path = find_program(program).ok_or_else(|| NotRunning::NotInstalled(program.clone()))?;
    if listens(&running.url) {
        // Measuring another server at the port would give figures of the wrong program.
        let why = format!("port {} is taken, target `{}` cannot start there", running.url.port, target.name);
        let why = format!("{why}; choose another with `--port {}=PORT`", target.name);
        return Err(NotRunning::Failed(Error::Environment(why)));
    }
    running.command_line = std::iter::once(program).chain(arguments).cloned().collect::<Vec<_>>().join(" ");
    let failed = |error: std::io::Error| {
        NotRunning::Failed(Error::Environment(format!("cannot start `{}`: {error}", running.command_line)))
    };
    let output = File::create(log).map_err(failed)?;
    let child = Command::new(&program_path)
        .args(arguments)
        // Ctrl-C is for us: the gateway must not end before the requests to it do.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(failed)?)
        .stderr(output)
        .spawn()
        .map_err(failed)?;
    running.pid = Some(child.id());
    running.child = Some(child);
    wait_until_listening(&mut running, target.start_timeout, log).map_err(NotRunning::Failed)?;
    Ok(running)
}

fn wait_until_listening(running: &mut Running, timeout: Duration, log: &Path) -> Result<(), Error> {
    let begun = Instant::now();
    loop {
        let ended = running.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        if let Some(status) = ended {
            let why = format!("`{}` ended with {status} before it listened", running.command_line);
            return Err(Error::Environment(format!("{why}{}", tail(log))));
        }
        if listens(&running.url) {
            return Ok(());
        }
        if begun.elapsed() > timeout {
            let why = format!("`{}` does not listen on port {}", running.command_line, running.url.port);
            return Err(Error::Environment(format!("{why} after {} s{}", timeout.as_secs(), tail(log))));
        }
        std::thread::sleep(LOOK);
    }
}

/// The last lines a program wrote.
fn tail(log: &Path) -> String {
    const LINES: usize = 12;
    let mut bytes = Vec::new();
    let read = File::open(log).and_then(|file| file.take(1024 * 1024).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    if read.is_err() || lines.is_empty() {
        return String::new();
    }
    let shown = &lines[lines.len().saturating_sub(LINES)..];
    format!("; it wrote:\n    {}", shown.join("\n    "))
}

fn listens(url: &Url) -> bool {
    let addresses = (url.host.as_str(), url.port).to_socket_addrs();
    addresses
        .is_ok_and(|mut all| all.any(|address| TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok()))
}

/// The program with this name, as a shell would find it. Daemons are often outside of a user's path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Path::new(name).exists().then(|| PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let daemons = ["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(daemons).map(|directory| directory.join(name)).find(|program| program.is_file())
}

impl Running {
    /// Whether it still runs, if it was started by us.
    pub fn alive(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Whether it can do a scenario.
    pub fn can_do(&self, scenario: &str) -> bool {
        self.scenarios.as_ref().is_none_or(|all| all.iter().any(|name| name == scenario))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let begun = Instant::now();
        while begun.elapsed() < END_TIMEOUT {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(start: &[&str], timeout_ms: u64) -> Target {
        Target {
            name: "t".into(),
            start: start.iter().map(ToString::to_string).collect(),
            url: "http://127.0.0.1:1".into(),
            start_timeout: Duration::from_millis(timeout_ms),
            ..Target::default()
        }
    }

    fn message(start: &[&str], timeout_ms: u64) -> String {
        let log = std::env::temp_dir().join(format!("penstock-target-{}-{timeout_ms}.log", std::process::id()));
        let outcome = super::start(&target(start, timeout_ms), &Vec::new(), &log);
        let _ = std::fs::remove_file(log);
        match outcome {
            Ok(_) => "running".to_owned(),
            Err(NotRunning::NotInstalled(program)) => format!("not installed: {program}"),
            Err(NotRunning::Failed(error)) => error.to_string(),
        }
    }

    #[test]
    fn a_target_that_does_not_come_up_says_why() {
        assert_eq!(message(&["no-such-program-here"], 1), "not installed: no-such-program-here");
        assert_eq!(message(&["sleep", "10"], 50), "`sleep 10` does not listen on port 1 after 0 s");
        let ended = message(&["sh", "-c", "echo oh no; exit 3"], 5000);
        assert!(ended.contains("ended with exit status: 3 before it listened; it wrote:\n    oh no"), "{ended}");
        assert_eq!(message(&[], 2), "no server listens at `http://127.0.0.1:1/` for target `t`");
    }
}
