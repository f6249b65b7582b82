//! Random layouts of holes, copied by every method: the bytes are equal, and holes stay holes.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::prelude::*;

use super::{ContentJob, copy_content};
use crate::buffer::AlignedBuffer;
use crate::control::CopyControl;
use crate::file_stat::FileStat;
use crate::options::{CopyMethod, CopyOptions, HoleSearch, Tristate};
use crate::tally::CopyTally;

/// A file as a list of parts: length, and whether it has data, NUL bytes or is a hole.
fn layouts() -> impl Strategy<Value = Vec<(u32, u8)>> {
    let length = prop_oneof![1..200_u32, 4000..4200_u32, 60_000..140_000_u32];
    prop::collection::vec((length, 0..3_u8), 0..12)
}

fn write_layout(file: &File, layout: &[(u32, u8)]) -> u64 {
    let mut at = 0;
    for (number, (length, kind)) in layout.iter().enumerate() {
        let byte = if *kind == 0 { number as u8 + 1 } else { 0 };
        if *kind < 2 {
            file.write_all_at(&vec![byte; *length as usize], at).expect("written");
        }
        at += u64::from(*length);
    }
    file.set_len(at).expect("a length");
    at
}

fn copied(dir: &Path, source: &File, options: &CopyOptions) -> Vec<u8> {
    let stat = FileStat::from(rustix::fs::fstat(source).expect("fstat"));
    copied_as(dir, source, stat, options).expect("copied").0
}

/// Copies a source that had another state when it was opened. Returns the copy, and whether the source has grown.
fn copied_as(
    dir: &Path,
    source: &File,
    stat: FileStat,
    options: &CopyOptions,
) -> Result<(Vec<u8>, bool), crate::CopyError> {
    let path = dir.join("target");
    let _ = std::fs::remove_file(&path);
    let target = File::create_new(&path).expect("a target");
    let job = ContentJob {
        source: source.as_fd(),
        source_path: Path::new("source"),
        stat,
        target: target.as_fd(),
        target_path: &path,
        may_share: true,
        same_device: true,
    };
    let control = CopyControl::new(None);
    let (mut buffer, mut tally) = (AlignedBuffer::new(4096), CopyTally::default());
    let result = copy_content(&job, options, &control, &mut buffer, &mut tally)?;
    Ok((std::fs::read(&path).expect("the copy"), result.has_grown))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_method_copies_every_layout(layout in layouts(), buffer in prop::option::of(1..100_000_usize)) {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
        let source = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a source");
        let length = write_layout(&source, &layout);
        let mut wanted = vec![0; length as usize];
        source.read_exact_at(&mut wanted, 0).expect("read");
        for (method, name) in CopyMethod::ALL {
            for (sparse, holes) in [
                (Tristate::Auto, HoleSearch::Seek),
                (Tristate::Never, HoleSearch::Seek),
                (Tristate::Always, HoleSearch::Seek),
                (Tristate::Auto, HoleSearch::Scan),
            ] {
                let options = CopyOptions { method, sparse, holes, buffer_bytes: buffer, ..CopyOptions::default() };
                let got = copied(dir.path(), &source, &options);
                prop_assert!(got == wanted, "{name} {sparse:?} {holes:?} buffer {buffer:?}: bytes differ");
            }
        }
    }
}

#[test]
fn a_file_of_procfs_is_copied_to_its_end_by_every_method() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let wanted = std::fs::read("/proc/filesystems").expect("procfs");
    for (method, name) in CopyMethod::ALL {
        let source = File::open("/proc/filesystems").expect("procfs");
        let options = CopyOptions { method, ..CopyOptions::default() };
        assert!(copied(dir.path(), &source, &options) == wanted, "{name}");
    }
}

#[test]
fn a_copy_continues_where_the_kernel_refused() {
    // The two files are on different file systems, which copy_file_range(2) refuses with EXDEV.
    let dir = tempfile::tempdir_in("/dev/shm").expect("tmpfs");
    let source = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a source");
    let wanted: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    source.write_all_at(&wanted, 0).expect("written");
    for method in [CopyMethod::CopyFileRange, CopyMethod::Direct, CopyMethod::Reflink] {
        let options = CopyOptions { method, ..CopyOptions::default() };
        assert!(copied(dir.path(), &source, &options) == wanted, "{}", method.name());
    }
}

#[test]
fn a_source_that_grew_or_shrank_since_it_was_opened_is_noticed() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let source = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a source");
    let wanted: Vec<u8> = (0..600_000_u32).map(|number| (number % 251) as u8).collect();
    source.write_all_at(&wanted, 0).expect("written");
    let now = FileStat::from(rustix::fs::fstat(&source).expect("fstat"));
    for (method, name) in CopyMethod::ALL {
        let options = CopyOptions { method, reflink: Tristate::Never, ..CopyOptions::default() };
        let shorter = FileStat { size: 400_000, ..now };
        let (copy, has_grown) = copied_as(dir.path(), &source, shorter, &options).expect("copied");
        assert!(copy == wanted && has_grown, "{name}");
        let longer = FileStat { size: 700_000, ..now };
        let error =
            copied_as(dir.path(), &source, longer, &options).map(drop).expect_err("shorter").to_string();
        assert!(error.contains("became shorter"), "{name}: {error}");
    }
}

#[test]
fn a_cache_is_dropped_at_the_cost_of_the_data_and_not_of_the_holes() {
    const BYTES: u64 = 1 << 60;
    let [source, target] = ["source", "target"].map(|_| tempfile::tempfile_in("/dev/shm").expect("tmpfs"));
    source.set_len(BYTES).expect("a hole");
    source.write_all_at(b"a", 0).expect("written");
    source.write_all_at(b"z", BYTES - 1).expect("written");
    let job = ContentJob {
        source: source.as_fd(),
        source_path: Path::new("source"),
        stat: FileStat::from(rustix::fs::fstat(&source).expect("fstat")),
        target: target.as_fd(),
        target_path: Path::new("target"),
        may_share: false,
        same_device: true,
    };
    let options = CopyOptions { drop_cache: true, ..CopyOptions::default() };
    let (mut buffer, mut tally) = (AlignedBuffer::new(4096), CopyTally::default());
    let control = CopyControl::new(None);
    let result = copy_content(&job, &options, &control, &mut buffer, &mut tally).expect("copied");
    assert_eq!((result.bytes, target.metadata().expect("a length").len()), (BYTES, BYTES));
    let mut ends = [0; 2];
    target.read_exact_at(&mut ends[..1], 0).expect("read");
    target.read_exact_at(&mut ends[1..], BYTES - 1).expect("read");
    assert_eq!(&ends, b"az");
}
