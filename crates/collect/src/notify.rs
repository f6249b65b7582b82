//! Notifies the service manager that weir is ready or ends: sd_notify(3), which adapters of runit and s6 also understand.

use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with};

/// Notifies that all sources are open.
pub(crate) fn ready() {
    send("READY=1");
}

/// Notifies that weir reads the remaining bytes and ends.
pub(crate) fn stopping() {
    send("STOPPING=1");
}

/// The service manager ends weir if it does not hear from it in time (WatchdogSec=).
#[derive(Debug)]
pub(crate) struct Watchdog {
    interval: Duration,
    next: Instant,
}

impl Watchdog {
    /// Returns the watchdog that the service manager asks for with $WATCHDOG_USEC and $WATCHDOG_PID (sd_watchdog_enabled(3)).
    pub(crate) fn from_environment() -> Option<Self> {
        let value = |name| std::env::var(name).ok();
        let other = value("WATCHDOG_PID").is_some_and(|pid| pid != std::process::id().to_string());
        let limit = value("WATCHDOG_USEC")?.parse().ok().filter(|&limit| limit > 0 && !other)?;
        // Half of the limit, as sd_watchdog_enabled(3) recommends.
        Some(Self { interval: Duration::from_micros(limit) / 2, next: Instant::now() })
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.next
    }

    /// Tells the service manager that weir runs, if it is time to.
    pub(crate) fn on_time(&mut self, now: Instant) {
        if self.next <= now {
            send("WATCHDOG=1");
            self.next = now + self.interval;
        }
    }
}

/// Sends a state to the socket that $NOTIFY_SOCKET names. Nothing depends on it, so errors are ignored.
fn send(state: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let bytes = name.as_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddrUnix::new_abstract_name(name),
        None => SocketAddrUnix::new(bytes),
    };
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    if let (Ok(address), Ok(socket)) = (address, socket) {
        let _ = sendto(&socket, state.as_bytes(), SendFlags::NOSIGNAL | SendFlags::DONTWAIT, &address);
    }
}
