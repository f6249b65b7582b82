//! The control socket beside the log: `weir log status` connects, and gets a JSON document.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;
use rustix::net::{SocketFlags, SocketType, accept_with};
use weir_model::log::{LogDocument, LogSource, Overflow, SCHEMA};

use crate::error::Error;
use crate::intake::{Intake, IntakeCounts};
use crate::sink::LogSink;
use crate::source::{OwnName, bind_socket};

/// A listening socket that only the owner of the collector may use.
pub(crate) struct ControlSocket {
    socket: OwnedFd,
    log: PathBuf,
    _name: OwnName,
}

/// The parts of a status document.
pub(crate) struct StatusInput<'a> {
    pub(crate) sink: &'a LogSink,
    pub(crate) ended: IntakeCounts,
    pub(crate) connections: usize,
    pub(crate) elapsed: Duration,
    pub(crate) overflow: Overflow,
}

/// The most sources in a document.
const SOURCES: usize = 1000;

/// The send buffer of a connection in bytes: more than a document with all its sources.
const SEND_BUFFER: usize = 1 << 20;

/// How long a peer of the control socket may take.
const DEADLINE: Duration = Duration::from_secs(2);

impl ControlSocket {
    /// Opens the socket. A file system without sockets (vfat) has none; the collector works without it.
    pub(crate) fn open(log: &Path) -> Option<Self> {
        let (socket, name) = bind_socket(&control_path(log), SocketType::STREAM, 0o600).ok()?;
        Some(Self { socket, log: log.to_path_buf(), _name: name })
    }

    /// Sends a document to each peer that has connected.
    pub(crate) fn answer<'a>(&self, input: &StatusInput, sources: impl Iterator<Item = &'a Intake>) {
        let mut document = None;
        let mut sources = Some(sources);
        while let Ok(peer) = accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            if let Some(sources) = sources.take() {
                document = serde_json::to_vec(&document_of(Some(&self.log), input, sources)).ok();
            }
            // The buffer takes a whole document, so that the collector never waits for a peer.
            let _ = rustix::net::sockopt::set_socket_send_buffer_size(&peer, SEND_BUFFER);
            let _ = UnixStream::from(peer).write_all(document.as_deref().unwrap_or_default());
        }
    }
}

/// Returns the present state of the collector and its sources.
pub(crate) fn document_of<'a>(
    log: Option<&Path>,
    input: &StatusInput,
    sources: impl Iterator<Item = &'a Intake>,
) -> LogDocument {
    let mut totals = input.ended;
    let mut shown = Vec::new();
    for intake in sources {
        totals.add(intake.counts);
        if shown.len() < SOURCES {
            shown.push(LogSource {
                name: intake.name.as_str().into(),
                held_bytes: intake.held_bytes() as u64,
                counts: intake.counts.into(),
            });
        }
    }
    let counts = input.sink.counts();
    LogDocument {
        schema: SCHEMA.into(),
        log: log.map(weir_model::Untrusted::of_os),
        pid: std::process::id(),
        elapsed_s: input.elapsed.as_secs_f64(),
        totals: totals.into(),
        log_bytes: counts.bytes,
        pending_bytes: input.sink.pending_bytes(),
        syncs: counts.syncs,
        last_sync_s: input.sink.last_sync().map(|at| at.elapsed().as_secs_f64()),
        sync_error: input.sink.sync_error().map(String::from),
        rotations: counts.rotations,
        stalls: counts.stalls,
        stalled: input.sink.is_stalled(),
        overflow: Some(input.overflow),
        connections: input.connections as u64,
        sources: shown,
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the path of the control socket of a log: .LOG.control in its directory.
fn control_path(log: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(log.file_name().unwrap_or_default());
    name.push(".control");
    log.with_file_name(name)
}

/// Asks the collector that writes `log` for its status.
///
/// # Errors
/// No collector writes the log, or it does not answer within two seconds.
pub fn ask(log: &Path) -> Result<LogDocument, Error> {
    let path = control_path(log);
    let name = crate::error::shown(&path);
    let failed = |error: std::io::Error| {
        let advice = match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
                "no weir log writes this file"
            }
            std::io::ErrorKind::WouldBlock => "the collector does not answer; it may wait for its device",
            _ => "use the user of the collector, or root",
        };
        Error::call("connect", &name, &error, advice)
    };
    let mut stream = UnixStream::connect(&path).map_err(failed)?;
    let mut text = Vec::new();
    let deadline = Instant::now() + DEADLINE;
    let mut block = vec![0; 64 << 10];
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).map_err(failed)?;
        match stream.read(&mut block).map_err(failed)? {
            0 => break,
            count => text.extend_from_slice(&block[..count]),
        }
    }
    serde_json::from_slice(&text).map_err(|error| Error::text(format!("{name}: no status document: {error}")))
}
