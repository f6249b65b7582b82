//! Creates the file of the arena's memory.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Creates memory of a fixed size. Fails with EFBIG if RLIMIT_FSIZE, which counts for it as for any file, is lower and cannot
/// be raised.
pub(super) fn create(bytes: u64) -> io::Result<OwnedFd> {
    let file = memfd_create("weir-arena", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let limit = getrlimit(Resource::Fsize);
    if limit.current.is_some_and(|current| current < bytes) {
        raise(bytes, &limit)?;
        let sized = ftruncate(&file, bytes);
        // The command inherits the limit.
        setrlimit(Resource::Fsize, limit)?;
        sized?;
    } else {
        ftruncate(&file, bytes)?;
    }
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Raises the soft limit, and the hard limit where root can. Beyond the limit ftruncate(2) would end weir with SIGXFSZ.
fn raise(bytes: u64, limit: &Rlimit) -> io::Result<()> {
    let maximum = limit.maximum.map(|maximum| maximum.max(bytes));
    setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), maximum }).map_err(|_| Errno::FBIG.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_stays_as_it_was() {
        let before = getrlimit(Resource::Fsize);
        let file = create(3 << 20).unwrap();
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, 3 << 20);
        assert_eq!(getrlimit(Resource::Fsize), before);
    }
}
