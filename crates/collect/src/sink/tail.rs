//! The end of a log that a crash left: a torn record, or NUL bytes that a power cut left behind the last synced byte.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;

use super::SinkOptions;
use super::log_file::sync_directory;
use crate::error::Error;
use crate::framing::Framing;
use weir_model::number::counted;

/// The treatment of a torn record at the end of an existing log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TornTail {
    /// Its bytes stay, and a delimiter ends it. Without a delimiter as for [`TornTail::Cut`].
    #[default]
    Keep,
    /// Its bytes move to the file LOG.torn.
    Cut,
}

/// Makes an existing log end with a whole record. Returns whether its last record still needs a delimiter.
///
/// # Errors
/// The file cannot be read, shortened, or copied from.
pub(super) fn repair(
    fd: &OwnedFd,
    path: &Path,
    options: &SinkOptions,
    messages: &mut Vec<String>,
) -> Result<bool, Error> {
    let name = crate::error::shown(path);
    let failed = |error: io::Error| {
        Error::call("repair the end of", &name, &error, "move the file away, or make it writable")
    };
    let file = File::from(fd.try_clone().map_err(failed)?);
    let stat = file.metadata().map_err(failed)?;
    if !stat.is_file() || stat.len() == 0 {
        return Ok(false);
    }
    let length = match options.framing {
        Framing::Delimiter(0) | Framing::Length(_) | Framing::Prefix(_) => stat.len(),
        Framing::Delimiter(_) => cut_nuls(&file, stat.len(), &name, messages).map_err(failed)?,
    };
    let torn_at = after_last_record(&file, length, options.framing).map_err(failed)?;
    if torn_at == length {
        return Ok(false);
    }
    let torn = length - torn_at;
    let torn_bytes = counted(torn, "byte");
    if matches!(options.framing, Framing::Delimiter(_)) && options.torn == TornTail::Keep {
        messages.push(format!(
            "{name} ended in an unfinished record of {torn_bytes}; it is kept, and a delimiter ends it"
        ));
        return Ok(true);
    }
    let saved = save_torn(&file, path, torn_at, torn).map_err(failed)?;
    sync_directory(&saved)?;
    file.set_len(torn_at).map_err(failed)?;
    let saved = crate::error::shown(&saved);
    messages.push(format!("{name} ended in a torn record of {torn_bytes}, which is now in {saved}"));
    Ok(false)
}

/// Returns the offset after the last whole record of the first `length` bytes.
pub(super) fn after_last_record(file: &File, length: u64, framing: Framing) -> io::Result<u64> {
    match framing {
        Framing::Delimiter(delimiter) => after_last_delimiter(file, length, delimiter),
        Framing::Length(record) => Ok(length - length % record as u64),
        Framing::Prefix(width) => after_last_prefixed(file, length, width),
    }
}

/// Cuts the NUL bytes at the end, and returns the new length.
fn cut_nuls(file: &File, length: u64, name: &str, messages: &mut Vec<String>) -> io::Result<u64> {
    let end = end_of_last(file, length, |byte| byte != 0)?;
    if end < length {
        file.set_len(end)?;
        let nuls = counted(length - end, "NUL byte");
        messages.push(format!("{name} ended in {nuls}, as after a power cut, and is cut there"));
    }
    Ok(end)
}

fn after_last_delimiter(file: &File, length: u64, delimiter: u8) -> io::Result<u64> {
    end_of_last(file, length, |byte| byte == delimiter)
}

/// Returns the offset after the last byte that `matches`, in the first `length` bytes; 0 if there is none.
fn end_of_last(file: &File, length: u64, matches: impl Fn(u8) -> bool) -> io::Result<u64> {
    let mut block = vec![0; 64 << 10];
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let bytes = &mut block[..(end - start) as usize];
        file.read_exact_at(bytes, start)?;
        if let Some(at) = bytes.iter().rposition(|&byte| matches(byte)) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Returns the offset after the last whole record with a length prefix.
fn after_last_prefixed(file: &File, length: u64, width: usize) -> io::Result<u64> {
    let mut file = io::BufReader::with_capacity(64 << 10, file);
    file.seek(SeekFrom::Start(0))?;
    let mut at = 0;
    while at + width as u64 <= length {
        let mut prefix = [0; 8];
        file.read_exact(&mut prefix[8 - width..])?;
        let end = at + width as u64 + u64::from_be_bytes(prefix);
        if end > length {
            break;
        }
        file.seek_relative((end - at) as i64 - width as i64)?;
        at = end;
    }
    Ok(at)
}

/// Appends the torn bytes to LOG.torn, durably, before they are cut.
fn save_torn(file: &File, path: &Path, from: u64, bytes: u64) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(".torn");
    let saved = PathBuf::from(name);
    let mut options = File::options();
    options.append(true).create(true).mode(0o600).custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    let mut out = options.open(&saved)?;
    let mut from_file = file.try_clone()?;
    from_file.seek(SeekFrom::Start(from))?;
    io::copy(&mut from_file.take(bytes), &mut out)?;
    out.flush()?;
    out.sync_all()?;
    Ok(saved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Flush, SyncPolicy};

    /// Repairs a log with this content. Returns its content then, the torn bytes, and whether a delimiter is missing.
    fn repaired(content: &[u8], framing: Framing, torn: TornTail) -> (Vec<u8>, Vec<u8>, bool) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        std::fs::write(&path, content).expect("written");
        let options = SinkOptions {
            path: Some(path.clone()),
            flush: Flush::Line,
            sync: SyncPolicy::None,
            buffer_bytes: 4096,
            rotation: Default::default(),
            framing,
            torn,
            ack: false,
            drops: false,
        };
        let file = File::options().read(true).append(true).open(&path).expect("opened");
        let mut messages = Vec::new();
        let open = repair(&file.into(), &path, &options, &mut messages).expect("repaired");
        let saved = std::fs::read(dir.path().join("log.torn")).unwrap_or_default();
        let content = std::fs::read(&path).expect("read");
        (content, saved, open)
    }

    const LINES: Framing = Framing::Delimiter(b'\n');

    #[test]
    fn a_whole_log_stays() {
        for (content, framing) in [
            (&b"a\nb\n"[..], LINES),
            (b"", LINES),
            (b"abcd", Framing::Length(2)),
            (b"\x01a\x02bc", Framing::Prefix(1)),
        ] {
            assert_eq!(repaired(content, framing, TornTail::Cut), (content.to_vec(), vec![], false));
        }
    }

    #[test]
    fn a_torn_record_is_kept_or_cut() {
        assert_eq!(repaired(b"a\nbc", LINES, TornTail::Keep), (b"a\nbc".to_vec(), vec![], true));
        assert_eq!(repaired(b"a\nbc", LINES, TornTail::Cut), (b"a\n".to_vec(), b"bc".to_vec(), false));
        let long = [b"a\n".to_vec(), vec![b'x'; 200_000]].concat();
        assert_eq!(repaired(&long, LINES, TornTail::Cut), (b"a\n".to_vec(), vec![b'x'; 200_000], false));
        assert_eq!(
            repaired(b"abcde", Framing::Length(2), TornTail::Keep),
            (b"abcd".to_vec(), b"e".to_vec(), false)
        );
        let prefixed = b"\0\x01a\0\x05bc";
        assert_eq!(
            repaired(prefixed, Framing::Prefix(2), TornTail::Keep),
            (b"\0\x01a".to_vec(), b"\0\x05bc".to_vec(), false)
        );
    }

    /// A directory that cannot be opened cannot be synced: a power cut could then lose the torn bytes.
    #[test]
    fn torn_bytes_stay_in_the_log_until_their_new_file_is_durable() {
        use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        std::fs::write(&path, b"a\nbc").expect("written");
        let set_mode = |mode| {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(mode)).expect("the mode");
        };
        set_mode(0o300);
        // In this thread root obeys the permissions, too.
        let mut own = capabilities(None).expect("the capabilities");
        own.effective.remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
        set_capabilities(None, own).expect("given up");
        let options = SinkOptions {
            torn: TornTail::Cut,
            ..SinkOptions::of(&crate::options::LogOptions::of_lines(&path))
        };
        let file = File::options().read(true).append(true).open(&path).expect("opened");
        let error = repair(&file.into(), &path, &options, &mut Vec::new()).expect_err("no sync");
        set_mode(0o700);
        assert!(error.to_string().contains("EACCES"), "{error}");
        assert_eq!(std::fs::read(&path).expect("read"), b"a\nbc");
    }

    #[test]
    fn nul_bytes_of_a_power_cut_are_cut() {
        let log = [b"a\nb\n".to_vec(), vec![0; 100_000]].concat();
        assert_eq!(repaired(&log, LINES, TornTail::Keep), (b"a\nb\n".to_vec(), vec![], false));
        assert_eq!(repaired(b"a\nb\0\0", LINES, TornTail::Keep), (b"a\nb".to_vec(), vec![], true));
        let nul_framed = b"a\0b\0\0";
        assert_eq!(
            repaired(nul_framed, Framing::Delimiter(0), TornTail::Keep),
            (nul_framed.to_vec(), vec![], false)
        );
    }
}
