//! An HTTP server for metrics. It has a thread of its own, so that a slow client never stops the collector.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::BorrowedFd;

use crate::error::{Error, io_error};

/// How long a client, or the collector, may take.
const DEADLINE: Duration = Duration::from_secs(2);

/// The longest request that is read.
const REQUEST: usize = 8 << 10;

/// The server. Its descriptor is readable when a client wants the metrics.
pub(crate) struct MetricsServer {
    requests: Receiver<Sender<String>>,
    event: Arc<OwnedFd>,
}

impl MetricsServer {
    /// Listens, and starts the thread. It ends with the process.
    ///
    /// # Errors
    /// The address is in use, or not of this machine.
    pub(crate) fn open(address: SocketAddr) -> Result<Self, Error> {
        let name = format!("http:{address}");
        let failed =
            |error: &std::io::Error| Error::call("bind", &name, error, "choose another port or address");
        let listener = TcpListener::bind(address).map_err(|error| failed(&error))?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| failed(&io_error(errno)))?;
        let event = Arc::new(event);
        let waker = Arc::clone(&event);
        let (outgoing, requests) = channel();
        let work = move || {
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) => drop(serve(stream, &outgoing, &waker)),
                    Err(_) => std::thread::sleep(Duration::from_millis(200)),
                }
            }
        };
        std::thread::Builder::new()
            .name("weir-log-http".into())
            .spawn(work)
            .map_err(|error| failed(&error))?;
        Ok(Self { requests, event })
    }

    /// Gives the metrics to each client that waits for them.
    pub(crate) fn answer(&self, text: impl FnOnce() -> String) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.event, &mut count);
        let waiting: Vec<Sender<String>> = self.requests.try_iter().collect();
        if !waiting.is_empty() {
            let text = text();
            waiting.into_iter().for_each(|client| drop(client.send(text.clone())));
        }
    }
}

impl AsFd for MetricsServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// Reads one request and answers it: the metrics, or a status that says why not.
fn serve(mut stream: TcpStream, requests: &Sender<Sender<String>>, waker: &OwnedFd) -> std::io::Result<()> {
    stream.set_write_timeout(Some(DEADLINE))?;
    let request = read_request(&mut stream)?;
    let (status, body) = match path(&request) {
        None => ("400 Bad Request", "weir log answers GET /metrics\n".to_string()),
        Some("/metrics") => {
            let (client, answer) = channel();
            let _ = requests.send(client);
            let _ = rustix::io::write(waker, &1u64.to_ne_bytes());
            match answer.recv_timeout(DEADLINE) {
                Ok(text) => ("200 OK", text),
                Err(_) => ("503 Service Unavailable", "the collector does not answer\n".to_string()),
            }
        }
        Some(_) => ("404 Not Found", "the metrics are at /metrics\n".to_string()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Reads until the empty line behind the headers, so that closing the socket resets nothing.
fn read_request(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let deadline = Instant::now() + DEADLINE;
    let (mut request, mut block) = (Vec::new(), [0; 1024]);
    while request.len() < REQUEST && !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut block)? {
            0 => break,
            count => request.extend_from_slice(&block[..count]),
        }
    }
    Ok(request)
}

/// Returns the path of a GET request, without its query.
pub(crate) fn path(request: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(request.split(|&byte| byte == b'\r').next()?).ok()?;
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    (method == "GET" && version.starts_with("HTTP/1.")).then(|| target.split('?').next().unwrap_or(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_parsed() {
        assert_eq!(path(b"GET /metrics?a=b HTTP/1.1\r\nHost: x\r\n\r\n"), Some("/metrics"));
        assert_eq!(path(b"GET / HTTP/1.0\r\n\r\n"), Some("/"));
        for wrong in [&b"POST /metrics HTTP/1.1\r\n\r\n"[..], b"GET /metrics\r\n", b"", b"\xff\r\n"] {
            assert_eq!(path(wrong), None);
        }
    }
}
