//! The caches of measured prices: files of `weir/` in the user's cache directory.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{major, minor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weir_sys::file_system::{is_private, last_status};
use weir_sys::proc;

/// Age at which prices are measured again. 30 days: firmware updates and other guests of the host change them.
const STALE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Largest number of entries in a file; the oldest are dropped. The full file has about 32 KiB for `weir trace`.
const MAX_ENTRIES: usize = 64;

/// Identifies the machine, kernel and file system on which prices were measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PriceKey {
    machine: String,
    kernel: String,
    device: String,
}

/// An entry of the file; `at_s` is in seconds since the epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PriceEntry<T> {
    key: PriceKey,
    at_s: u64,
    prices: T,
}

impl PriceKey {
    /// Returns the key of this machine, its kernel and the device of `directory`; `None` if one of them is unknown.
    pub(crate) fn of(directory: &Path) -> Option<Self> {
        let device = last_status(directory).ok()?.dev;
        let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_string());
        Some(Self {
            machine: read("/etc/machine-id").or_else(|| read("/proc/sys/kernel/hostname"))?,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            device: format!("{}:{}", major(device), minor(device)),
        })
    }
}

/// Returns `$XDG_CACHE_HOME/weir/FILE`, or the same below `$HOME/.cache`; None if another user can write to that directory, or if
/// its file system does not answer.
fn path(file: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let directory = cache.join("weir");
    is_private(&directory).then(|| directory.join(file))
}

/// Returns the prices of `key` in a cache file; `None` if there are none, or if they are stale or not `is_sane`.
pub(crate) fn load<T: DeserializeOwned>(
    file: &str,
    key: &PriceKey,
    is_sane: impl Fn(&T) -> bool,
) -> Option<T> {
    load_from(&path(file)?, key, now_s(), is_sane)
}

/// Stores `prices` under `key` in a cache file; does nothing under a tracer. Fails if the file cannot be written.
pub(crate) fn store<T: Serialize + DeserializeOwned>(
    file: &str,
    key: &PriceKey,
    prices: T,
) -> io::Result<()> {
    if proc::is_traced() {
        return Ok(());
    }
    let path = path(file).ok_or(io::ErrorKind::NotFound)?;
    store_to(&path, key, prices, now_s())
}

/// Replaces the prices of `key` in a cache file and keeps their age. Without an entry of `key` it does nothing. Fails if
/// the file cannot be written.
pub(crate) fn update<T: Serialize + DeserializeOwned>(
    file: &str,
    key: &PriceKey,
    prices: T,
) -> io::Result<()> {
    update_in(&path(file).ok_or(io::ErrorKind::NotFound)?, key, prices)
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn is_fresh<T>(known: &PriceEntry<T>, now_s: u64) -> bool {
    known.at_s <= now_s && now_s - known.at_s < STALE.as_secs()
}

fn entries<T: DeserializeOwned>(path: &Path) -> Vec<PriceEntry<T>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn load_from<T: DeserializeOwned>(
    path: &Path,
    key: &PriceKey,
    now_s: u64,
    is_sane: impl Fn(&T) -> bool,
) -> Option<T> {
    let known = entries(path).into_iter().find(|known| known.key == *key && is_fresh(known, now_s))?;
    Some(known.prices).filter(is_sane)
}

/// Writes the file with the new entry first, and without stale entries. Replaces it by rename(2), because another
/// process may read it. Of two processes that write at once, one loses its entry and measures again.
fn store_to<T: Serialize + DeserializeOwned>(
    path: &Path,
    key: &PriceKey,
    prices: T,
    now_s: u64,
) -> io::Result<()> {
    let mut known = entries::<T>(path);
    known.retain(|known| known.key != *key && is_fresh(known, now_s));
    known.insert(0, PriceEntry { key: key.clone(), at_s: now_s, prices });
    known.truncate(MAX_ENTRIES);
    replace(path, &known)
}

fn update_in<T: Serialize + DeserializeOwned>(path: &Path, key: &PriceKey, prices: T) -> io::Result<()> {
    let mut known = entries::<T>(path);
    match known.iter_mut().find(|known| known.key == *key) {
        Some(entry) => entry.prices = prices,
        None => return Ok(()),
    }
    replace(path, &known)
}

fn replace<T: Serialize>(path: &Path, known: &[PriceEntry<T>]) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::NotFound)?;
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(serde_json::to_string_pretty(known)?.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use weir_model::trace::Prices;

    use super::*;
    use crate::prices::is_sane;

    fn key(device: &str) -> PriceKey {
        PriceKey { machine: "m".into(), kernel: "6.1".into(), device: device.into() }
    }

    fn priced(call_ns: f64) -> Prices {
        Prices { call_ns, ..Prices::default() }
    }

    #[test]
    fn stored_prices_are_found_by_their_key_until_they_are_stale() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weir/prices.json");
        store_to(&path, &key("8:1"), priced(250.0), 1000).unwrap();
        store_to(&path, &key("8:2"), priced(260.0), 1000).unwrap();
        assert_eq!(load_from(&path, &key("8:1"), 2000, is_sane), Some(priced(250.0)));
        assert_eq!(load_from(&path, &key("8:2"), 2000, is_sane), Some(priced(260.0)));
        assert_eq!(load_from(&path, &key("8:3"), 2000, is_sane), None);
        assert_eq!(load_from(&path, &key("8:1"), 1000 + STALE.as_secs(), is_sane), None);
        assert_eq!(load_from(&path, &key("8:1"), 999, is_sane), None, "from the future");
    }

    #[test]
    fn a_new_measurement_replaces_the_old_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prices.json");
        for call_ns in [1.0, 2.0] {
            store_to(&path, &key("8:1"), priced(call_ns), 1000).unwrap();
        }
        assert_eq!(entries::<Prices>(&path).len(), 1);
        assert_eq!(load_from(&path, &key("8:1"), 1000, is_sane), Some(priced(2.0)));
    }

    #[test]
    fn updated_prices_keep_their_age() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prices.json");
        update_in(&path, &key("8:1"), priced(1.0)).unwrap();
        assert!(!path.exists(), "nothing to update");
        store_to(&path, &key("8:1"), priced(1.0), 1000).unwrap();
        update_in(&path, &key("8:1"), priced(2.0)).unwrap();
        update_in(&path, &key("8:2"), priced(3.0)).unwrap();
        let all = entries::<Prices>(&path);
        assert_eq!(all, [PriceEntry { key: key("8:1"), at_s: 1000, prices: priced(2.0) }]);
    }

    #[test]
    fn an_invalid_file_counts_as_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prices.json");
        fs::write(&path, "{ not json").unwrap();
        assert_eq!(load_from(&path, &key("8:1"), 1000, is_sane), None);
        store_to(&path, &key("8:1"), priced(0.0), 1000).unwrap();
        assert_eq!(load_from(&path, &key("8:1"), 1000, is_sane), None, "a call costs something");
    }

    #[test]
    fn prices_of_an_older_version_are_measured_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("prices.json");
        store_to(&path, &key("8:1"), priced(250.0), 1000).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let kept: Vec<_> = text.lines().filter(|line| !line.contains("\"again_byte_ns\"")).collect();
        fs::write(&path, kept.join("\n")).unwrap();
        assert_eq!(entries::<Prices>(&path).len(), 1, "it can be read");
        assert_eq!(load_from(&path, &key("8:1"), 1000, is_sane), None);
    }

    #[test]
    fn this_machine_has_a_key() {
        let key = PriceKey::of(Path::new("/")).unwrap();
        assert!(!key.machine.is_empty() && key.device.contains(':'), "{key:?}");
        assert_eq!(PriceKey::of(Path::new("/no/such/directory")), None);
    }
}
