//! Entry points of fuzz/ into the parsers of /proc texts, which contain names that any user chooses.

use procfs::FromBufRead;
use procfs::process::Status;

use crate::{maps, mount_table, open_files, proc, process_stat, process_status};

/// Parses a text as each file of /proc that weir reads.
pub fn proc_texts(text: &[u8]) {
    let regions = maps::parse_regions(text);
    for region in regions.iter().take(16) {
        if let maps::MappingKind::File(path) = &region.kind {
            let ranges = maps::writable_ranges(&regions, path);
            assert!(ranges.len() <= regions.len() && region.name().len() <= path.as_os_str().len());
        }
    }
    let _ticks = process_stat::parse(text).map(|stat| stat.cpu_ticks());
    let _name = process_stat::name(text);
    let _status = process_status::parse(text);
    let _totals = proc::parse_io(text);
    assert!(proc::split_nul(text).len() <= text.len() + 1);
    let text = String::from_utf8_lossy(text);
    let _stat = process_stat::parse_all(&text);
    let _status = Status::from_buf_read(text.as_bytes());
    let _info = open_files::parse(&text);
    assert!(mount_table::parse(text.as_bytes()).len() <= text.lines().count());
}
