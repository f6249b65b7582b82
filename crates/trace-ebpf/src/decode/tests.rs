//! Unit tests of the decoding of events.

use super::*;

/// Returns a zeroed event of this kind.
fn event<T>(kind: u32, (pid, tid): (u32, u32), ns: u64) -> Vec<u8> {
    let mut bytes =
        [&ns.to_le_bytes()[..], &kind.to_le_bytes(), &pid.to_le_bytes(), &tid.to_le_bytes()].concat();
    bytes.resize(size_of::<T>(), 0);
    bytes
}

#[test]
fn an_execve_of_another_thread_does_not_hide_its_snapshot() {
    let (mut decoder, mut sent) = (Decoder::default(), Vec::new());
    let buffer = |tid, ns| event::<BufferEvent>(shared_types::KIND_BUFFER, (7, tid), ns);
    let exec = event::<LifecycleEvent>(shared_types::KIND_EXEC, (7, 7), 4);
    for bytes in
        [buffer(9, 3), buffer(8, 2), event::<BufferEvent>(shared_types::KIND_BUFFER, (5, 5), 1), exec]
    {
        decoder.decode(&bytes, &mut |raw| {
            sent.push((raw.ns, raw.pid, matches!(raw.kind, RawEventKind::Exec { .. })))
        });
    }
    assert_eq!(sent, [(2, 7, false), (3, 7, false), (4, 7, true)], "that of process 5 is not complete");
}

#[test]
fn a_path_begins_at_the_root() {
    let names = b"sub\0home\0rest of an earlier event";
    let bytes = event::<DirectoryEvent>(shared_types::KIND_DIRECTORY, (7, 7), 1);
    let mut event: DirectoryEvent = shared_types::read(&bytes).unwrap();
    (event.ino, event.dev, event.name_bytes, event.complete) = (7, 8 << 20 | 1, 9, 1);
    event.names[..names.len()].copy_from_slice(names);
    let dev = rustix::fs::makedev(8, 1);
    let directory = |path: Option<&str>| WorkingDirectory { dev, ino: 7, path: path.map(Untrusted::from) };
    assert_eq!(working_directory(&event), directory(Some("/home/sub")));
    event.name_bytes = 0;
    assert_eq!(working_directory(&event), directory(Some("/")));
    event.name_bytes = u32::MAX;
    event.complete = 0;
    assert_eq!(working_directory(&event), directory(None), "the path is too long for the event");
}

#[test]
fn times_are_exact_in_sum_and_shared_by_ticks() {
    assert_eq!(cpu_times(30, 10, 400), (300, 100));
    assert_eq!(cpu_times(0, 0, 7), (0, 7));
    assert_eq!(cpu_times(u64::MAX, u64::MAX, 9), (4, 5));
}

#[test]
fn a_pipe_has_as_many_bytes_as_its_pages() {
    let bytes = event::<CallEvent>(shared_types::KIND_CALL, (7, 7), 1);
    let mut event: CallEvent = shared_types::read(&bytes).unwrap();
    (event.file.key, event.file.pipe_pages) = (1, 16);
    let page = rustix::param::page_size() as u64;
    assert_eq!(file(&event.file).unwrap().pipe_bytes, Some(16 * page));
    event.file.pipe_pages = 0;
    assert_eq!(file(&event.file).unwrap().pipe_bytes, None);
}

/// A process can write anything into its streams.
#[test]
fn forged_pending_bytes_do_not_overflow() {
    let bytes = event::<BufferEvent>(shared_types::KIND_BUFFER, (7, 7), 1);
    let mut event: BufferEvent = shared_types::read(&bytes).unwrap();
    (event.pending, event.wide) = (u64::MAX - 1, 5);
    assert_eq!(buffer(&event).pending_bytes, u64::MAX);
}
