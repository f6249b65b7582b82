//! A server under test: weir log, or a rival, which writes what a unix socket or a pipe gives to a file.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::BoxError;
use crate::targets::built::weir;

/// How long a server may take to start, or a job to end.
const DEADLINE: Duration = Duration::from_secs(300);

/// A running server, killed on drop.
pub struct Server(pub Child);

/// Returns the command of a weir log that listens on `socket` and writes to `out`.
pub fn weir_log(socket: &Path, out: &Path) -> Command {
    let mut command = Command::new(weir());
    command.args(["log", "--quiet", "-o"]).arg(out).arg("--listen").arg(format!("unix:{}", socket.display()));
    command
}

impl Server {
    /// Starts a server and waits until `socket` exists.
    pub fn start(command: &mut Command, socket: &Path) -> Result<Self, BoxError> {
        let _ = std::fs::remove_file(socket);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let server = Self(command.spawn().map_err(|error| format!("{command:?}: {error}"))?);
        wait_until("the socket of the server", || Ok(socket.exists()))?;
        Ok(server)
    }

    /// Returns the CPU seconds of the server and of its children that have ended: fields 14 to 17 of /proc/PID/stat.
    pub fn cpu_s(&self) -> Result<f64, BoxError> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let fields = stat.rsplit_once(") ").ok_or("no stat")?.1;
        let ticks: u64 =
            fields.split(' ').skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Returns the value of a line of /proc/PID/status, without its unit.
    pub fn status(&self, key: &str) -> Result<u64, BoxError> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
        let digits: String = line.chars().filter(char::is_ascii_digit).collect();
        Ok(digits.parse()?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connects to a server. The name of its socket can exist before it listens.
pub fn connect(socket: &Path) -> Result<UnixStream, BoxError> {
    let mut connected = None;
    wait_until("a server that listens", || match UnixStream::connect(socket) {
        Ok(stream) => Ok(connected.replace(stream).is_none()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(false),
        Err(error) => Err(error.into()),
    })?;
    connected.ok_or_else(|| "no connection".into())
}

/// Polls until `done`, within the deadline.
pub fn wait_until(what: &str, mut done: impl FnMut() -> Result<bool, BoxError>) -> Result<(), BoxError> {
    let end = Instant::now() + DEADLINE;
    while !done()? {
        if Instant::now() > end {
            return Err(format!("waited too long for {what}").into());
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(())
}

/// Returns whether a program can be started.
pub fn has(program: &str) -> bool {
    let found = |directory: std::path::PathBuf| directory.join(program).exists();
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(found))
}
