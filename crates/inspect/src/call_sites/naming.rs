//! Turns samples into the call sites of a recording: unwinds their stacks and names the frames.

use std::collections::HashMap;
use std::sync::Arc;

use weir_model::Untrusted;
use weir_model::trace::{CallSite, Frame, WriteSite};
use weir_sys::maps::MappedRegion;

use super::library::{is_library, is_outermost};
use super::stack_sample::StackSample;
use super::unwind::unwind;
use crate::call_sites::ObservedWrite;
use crate::call_sites::image::{ImageCache, LoadedImage};

/// Limit of named writes, of which the newest are taken: each may need another image to be read.
pub(super) const MAX_NAMED_WRITES: usize = 256;
/// Limit of frames in a call site: a report shows the innermost of the program.
const MAX_FRAMES: usize = 16;

/// Returns the call site of each write. `began_ns` is time 0 of the recording.
pub(super) fn named(writes: &[ObservedWrite], began_ns: u64) -> Vec<WriteSite> {
    let mut newest: Vec<&ObservedWrite> = writes.iter().collect();
    newest.sort_by_key(|one| std::cmp::Reverse(one.sample.ns));
    newest.truncate(MAX_NAMED_WRITES);
    let mut names = SampleNames::new(began_ns);
    let wrote = newest.into_iter().map(|one| {
        let call_site = names.call_site(one.pid, &one.code, &one.sample, one.last);
        let until_s = one.until_ns.map(|ns| names.seconds(ns));
        WriteSite { pid: one.pid, stream: one.stream, until_s, call_site }
    });
    wrote.collect()
}

/// Names samples; reads each image once.
pub(super) struct SampleNames {
    began_ns: u64,
    images: ImageCache,
    /// The images of each list of code mappings, by its address.
    loaded: HashMap<*const MappedRegion, Vec<LoadedImage>>,
}

impl SampleNames {
    /// `began_ns` is time 0 of the recording.
    pub fn new(began_ns: u64) -> SampleNames {
        SampleNames { began_ns, images: ImageCache::default(), loaded: HashMap::new() }
    }

    fn seconds(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.began_ns) as f64 / 1e9
    }

    /// Returns the call site of a sample. The caller keeps `code` for as long as it names samples.
    pub fn call_site(
        &mut self,
        pid: u32,
        code: &Arc<[MappedRegion]>,
        sample: &StackSample,
        last: bool,
    ) -> CallSite {
        let loaded = self.loaded.entry(code.as_ptr()).or_insert_with(|| self.images.loaded(pid, code));
        let frames = frames(sample, loaded);
        CallSite { at_s: self.seconds(sample.ns), last, frames }
    }
}

/// Returns the frames of a sample. An address in no image has one frame without a name.
fn frames(sample: &StackSample, loaded: &[LoadedImage]) -> Vec<Frame> {
    let mut found: Vec<Frame> =
        unwind(sample, loaded).into_iter().flat_map(|at| frames_at(at, loaded)).collect();
    let outermost =
        found.iter().position(|frame| is_outermost(frame.function.as_ref().map(Untrusted::exact)));
    found.iter_mut().skip(outermost.unwrap_or(usize::MAX)).for_each(|frame| frame.library = true);
    // The innermost library frames are dropped first.
    let inner = found.iter().take_while(|frame| frame.library).count();
    let too_many = found.len().saturating_sub(MAX_FRAMES).min(inner);
    found.drain(..too_many);
    found.truncate(MAX_FRAMES);
    found
}

fn exact(text: &Option<Untrusted>) -> Option<&str> {
    text.as_ref().map(Untrusted::exact)
}

fn frames_at(address: u64, loaded: &[LoadedImage]) -> Vec<Frame> {
    let Some(one) = loaded.iter().find(|one| one.range.contains(&address)) else {
        return vec![Frame { offset: address, ..Frame::default() }];
    };
    let (module, offset) = (one.image.path.to_string_lossy().into_owned(), address.wrapping_sub(one.bias));
    let frame = |name: crate::call_sites::symbols::SymbolName| Frame {
        library: is_library(&module, exact(&name.function), exact(&name.file)),
        function: name.function,
        file: name.file,
        line: name.line,
        module: module.clone().into(),
        offset,
    };
    one.image.symbols().names(offset).into_iter().map(frame).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::channel;

    use super::*;
    use crate::call_sites::code;
    use crate::call_sites::watchpoint::Watchpoint;

    static WORD: AtomicU64 = AtomicU64::new(0);

    #[inline(never)]
    fn writes(value: u64) -> u64 {
        WORD.swap(value, Ordering::SeqCst) + 1
    }

    #[inline(never)]
    fn calls(value: u64) -> u64 {
        writes(value) + 1
    }

    /// Returns a sample of a store in this test program.
    fn sample() -> Option<StackSample> {
        let (send_tid, tid) = channel();
        let (go, begin) = channel();
        let writer = std::thread::spawn(move || {
            // SAFETY: gettid(2) has no arguments and cannot fail.
            send_tid.send(unsafe { libc::gettid() } as u32).unwrap();
            begin.recv().unwrap();
            calls(7)
        });
        let point = Watchpoint::set(tid.recv().unwrap(), WORD.as_ptr() as u64);
        go.send(()).unwrap();
        writer.join().unwrap();
        Some(point.ok()?.take_events().expect("a store").sample.expect("a sample"))
    }

    /// Returns whether this test program has line tables.
    fn has_lines() -> bool {
        let own = weir_sys::elf::ElfFile::open(std::path::Path::new("/proc/self/exe")).unwrap();
        own.sections().unwrap().address_and_size(".debug_line").is_some_and(|(_, bytes)| bytes > 0)
    }

    #[test]
    fn a_store_of_this_program_is_named_with_its_callers() {
        let Some(sample) = sample() else {
            let name = "a_store_of_this_program_is_named_with_its_callers";
            return crate::call_sites::tests::skip(name, "no watchpoints of the processor");
        };
        let code = code(std::process::id());
        let write =
            ObservedWrite { pid: std::process::id(), stream: 1, sample, code, last: true, until_ns: None };
        let later =
            ObservedWrite { code: Arc::from([]), until_ns: Some(write.sample.ns + 1), ..write.clone() };
        let named = named(&[write.clone(), later], write.sample.ns - 1_000_000_000);
        assert_eq!((named.len(), named[0].call_site.at_s, named[0].call_site.last), (2, 1.0, true));
        let own: Vec<&Frame> = named[0].call_site.own_frames().collect();
        assert_eq!(own.len(), 2, "{named:#?}");
        let ends = |frame: &Frame, with: &str| {
            frame.function.as_ref().is_some_and(|name| name.exact().ends_with(with))
        };
        assert!(ends(own[0], "naming::tests::writes") && ends(own[1], "naming::tests::calls"), "{named:#?}");
        let source =
            include_str!("naming.rs").lines().position(|line| line.contains("WORD.swap(")).unwrap() + 1;
        // A release build has symbols but no line tables.
        let lines = has_lines();
        assert_eq!(own[0].line, lines.then_some(source as u32));
        let file = own[0].file.as_ref().map(Untrusted::exact);
        assert_eq!(file.is_some_and(|file| file.ends_with("naming.rs")), lines, "{file:?}");
        let unknown = &named[1].call_site.frames;
        assert_eq!(
            (unknown[0].module.exact(), unknown[0].function.as_ref()),
            ("", None),
            "no image is known"
        );
    }
}
