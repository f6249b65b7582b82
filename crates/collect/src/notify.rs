//! Tells the service manager that weir is ready, or ends: sd_notify(3), which runit and s6 adapters understand too.

use std::os::unix::ffi::OsStrExt as _;

use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with};

/// All sources are open.
pub(crate) fn ready() {
    send("READY=1");
}

/// weir reads what is left, and ends.
pub(crate) fn stopping() {
    send("STOPPING=1");
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
