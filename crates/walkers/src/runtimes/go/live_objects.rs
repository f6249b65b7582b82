//! The objects that are in use: variables, objects on the stacks of goroutines, and allocated objects of the heap. An object
//! elsewhere is in memory that was freed, for example a stack that has grown or ended.

use std::ops::Range;

use weir_sys::maps::{MappedRegion, MappingKind};
use weir_sys::memory::Memory;

use super::stacks::{self, Goroutine};
use crate::copied_memory::{int, structure, word};
use crate::heap_search::{touched_outside, touched_part};

/// The page of Go's heap.
const PAGE: u64 = 8192;
/// Bounds the size of a span.
const MAX_PAGES: u64 = 1 << 20;
/// Bounds the time for crafted memory: each object is in one span, and few other data look like a span of one.
const MAX_SPANS: usize = 65_536;
/// Offset of `startAddr` in `mspan`, and the size up to `limit`.
const SPAN_START: u64 = 24;
const SPAN_BYTES: usize = 160;
/// The distance from the state of a span to the size of its objects, and the state of a span with objects. A span that
/// was freed keeps its other fields.
const STATE_BEFORE_SIZE: usize = 5;
/// The distance from `sweepgen` of a span to the size of its objects.
const SWEPT_BEFORE_SIZE: usize = 16;
const IN_USE: u8 = 1;
/// Bounds the time of the search.
const MAX_SEARCH: u64 = 256 << 20;

/// Whether an object is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Used,
    Freed,
    Unknown,
}

/// A structure that can be an `mspan`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownSpan {
    address: u64,
    /// The memory of its objects when it was found: only its own objects need a read of it.
    memory: Range<u64>,
}

/// The goroutines and the spans of a process.
#[derive(Debug, Default)]
pub(super) struct LiveObjects {
    pub goroutines: Vec<Goroutine>,
    /// All goroutines are known.
    pub is_complete: bool,
    spans: Vec<KnownSpan>,
    /// All spans that contain one of the objects are known.
    has_all_spans: bool,
    variables: Vec<(u64, u64)>,
    /// The code of the vDSO, which runs on another stack than that of the goroutine that calls it.
    vdso: Vec<(u64, u64)>,
}

impl LiveObjects {
    /// Returns the goroutines of the list, and no spans.
    fn without_spans(pid: u32, memory: &dyn Memory, list: Option<u64>) -> LiveObjects {
        let is_variable = |one: &&MappedRegion| one.writable && matches!(one.kind, MappingKind::File(_));
        let mappings = memory.mappings(pid);
        let variables = mappings.iter().filter(is_variable).map(|one| (one.start, one.end)).collect();
        let is_vdso = |one: &&MappedRegion| one.executable && one.kind == MappingKind::Other;
        let vdso = mappings.iter().filter(is_vdso).map(|one| (one.start, one.end)).collect();
        let goroutines = stacks::read(memory, list);
        LiveObjects { goroutines, variables, vdso, ..LiveObjects::default() }
    }

    /// Reads the goroutines again, and keeps the spans, without a search of the memory. None if the list of goroutines is not
    /// known. A span that is gone, or has another purpose now, has other fields, so it contains none of the objects.
    pub fn read_again(&self, pid: u32, memory: &dyn Memory, list: Option<u64>) -> Option<LiveObjects> {
        let now = LiveObjects::without_spans(pid, memory, list);
        if now.goroutines.is_empty() || self.spans.is_empty() {
            return None;
        }
        // A span can be new.
        let mut now =
            LiveObjects { spans: self.spans.clone(), has_all_spans: false, is_complete: true, ..now };
        now.sort();
        Some(now)
    }

    fn sort(&mut self) {
        self.goroutines.sort_by_key(|one| one.address);
        self.goroutines.dedup();
        self.spans.sort_by_key(|one| one.address);
        self.spans.dedup();
    }

    /// Searches the memory for the spans that contain some objects, and for the goroutines if their list is not known.
    pub fn search(pid: u32, memory: &dyn Memory, list: Option<u64>, objects: &[u64]) -> LiveObjects {
        let mut found = LiveObjects::without_spans(pid, memory, list);
        let mut objects = objects.to_vec();
        objects.sort_unstable();
        let objects = objects.as_slice();
        let is_listed = !found.goroutines.is_empty();
        // The spans are not in the heap that has the objects. A search of a heap of 100 MB would not reach them in time.
        let mut rest = None;
        if is_listed {
            let left = touched_outside(pid, memory, objects, MAX_SEARCH, |start, data| {
                found.add_spans(objects, start, data);
            });
            found.has_all_spans = left.is_none() && (1..MAX_SPANS).contains(&found.spans.len());
        }
        if found.spans.is_empty() {
            rest = touched_part(pid, memory, 0, MAX_SEARCH, |start, data| {
                found.add_spans(objects, start, data);
                if !is_listed {
                    found.add_goroutines(memory, start, data);
                }
            });
        }
        found.is_complete = is_listed || rest.is_none();
        found.sort();
        found
    }

    /// Adds the possible spans that contain one of the objects, which are in ascending order.
    fn add_spans(&mut self, objects: &[u64], start: u64, data: &[u8]) {
        let (lowest, highest) = (objects.first(), objects.last());
        let (lowest, highest) = (lowest.copied().unwrap_or(u64::MAX), highest.copied().unwrap_or(0));
        let words = data.as_chunks().0;
        for (index, value) in words.iter().map(|value| u64::from_le_bytes(*value)).enumerate() {
            if value % PAGE == 0 && value <= highest && value + PAGE * MAX_PAGES > lowest {
                let pages = words.get(index + 1).map_or(0, |word| u64::from_le_bytes(*word));
                let memory = value..value + PAGE * pages.min(MAX_PAGES);
                let next = objects.get(objects.partition_point(|object| *object < value));
                let has_object = pages <= MAX_PAGES && next.is_some_and(|object| memory.contains(object));
                if has_object && self.spans.len() < MAX_SPANS {
                    self.spans.push(KnownSpan { address: start + 8 * index as u64 - SPAN_START, memory });
                }
            }
        }
    }

    /// Adds possible goroutines: structures that contain their own address.
    fn add_goroutines(&mut self, memory: &dyn Memory, start: u64, data: &[u8]) {
        for (index, value) in data.as_chunks().0.iter().map(|value| u64::from_le_bytes(*value)).enumerate() {
            if value.checked_add(stacks::OWN_ADDRESS) == Some(start + 8 * index as u64) {
                self.goroutines.extend(Goroutine::read(memory, value));
            }
        }
    }

    /// Returns whether an address is code of the vDSO.
    pub fn is_vdso(&self, address: u64) -> bool {
        self.vdso.iter().any(|(start, end)| (*start..*end).contains(&address))
    }

    /// Returns how an object is used.
    pub fn use_of(&self, memory: &dyn Memory, object: u64) -> Use {
        if self.is_variable(object) || self.goroutines.iter().any(|one| one.has_on_stack(object)) {
            return Use::Used;
        }
        self.use_in_heap(memory, object)
    }

    /// Returns whether an object is an allocated object of the heap, so that it is on no stack.
    pub fn is_in_heap(&self, memory: &dyn Memory, object: u64) -> bool {
        self.use_in_heap(memory, object) == Use::Used
    }

    /// Returns whether an object is a variable or an allocated object of the heap, which nothing moves.
    pub fn is_fixed(&self, memory: &dyn Memory, object: u64) -> bool {
        self.is_variable(object) || self.is_in_heap(memory, object)
    }

    /// Returns whether a Writer in the heap certainly still has its buffer. A Writer that nothing refers to any more can look
    /// allocated until its span is swept, while its buffer is in use for something else already. So the Writer's span
    /// must have been swept as late as the buffer's, or the garbage collector has reached the Writer.
    pub fn owns_buffer(&self, memory: &dyn Memory, writer: u64, buffer: u64) -> bool {
        let used = |object| {
            let mut found: Vec<HeapObject> = self.in_heap(memory, object).collect();
            // Other data can look like a span, but does not have the fields of one.
            found.retain(|one| one.use_now == Use::Used);
            found
        };
        let (writers, buffers) = (used(writer), used(buffer));
        let is_later = |writer: &HeapObject| {
            let is_later = |buffer: &HeapObject| writer.swept.wrapping_sub(buffer.swept) as i32 >= 0;
            writer.is_marked || buffers.iter().all(is_later)
        };
        !writers.is_empty() && !buffers.is_empty() && writers.iter().all(is_later)
    }

    fn in_heap<'a>(&'a self, memory: &'a dyn Memory, object: u64) -> impl Iterator<Item = HeapObject> + 'a {
        let spans = self.spans.iter().filter(move |span| span.memory.contains(&object));
        spans.filter_map(move |span| object_in_span(memory, span.address, object))
    }

    fn is_variable(&self, object: u64) -> bool {
        self.variables.iter().any(|(start, end)| (*start..*end).contains(&object))
    }

    fn use_in_heap(&self, memory: &dyn Memory, object: u64) -> Use {
        let spans: Vec<Use> = self.in_heap(memory, object).map(|one| one.use_now).collect();
        match spans.as_slice() {
            // A large stack is a span of its own, which the runtime frees when the stack grows.
            [] if self.has_all_spans => Use::Freed,
            [] => Use::Unknown,
            all if all.contains(&Use::Used) => Use::Used,
            all if all.contains(&Use::Unknown) => Use::Unknown,
            _ => Use::Freed,
        }
    }
}

/// An object of the heap, by its span.
#[derive(Debug, Clone, Copy)]
struct HeapObject {
    use_now: Use,
    /// The garbage collection after which the span was swept last: a number that grows by 2 with each.
    swept: u32,
    /// The last or the present garbage collection has reached the object.
    is_marked: bool,
}

/// Reads an object of a span; None if there is no span at this address, or it does not contain the object. The fields have
/// other sizes and offsets in each version. They must agree with each other: the end is the start and the number of objects
/// times their size.
fn object_in_span(memory: &dyn Memory, span: u64, object: u64) -> Option<HeapObject> {
    let bytes = structure::<SPAN_BYTES>(memory, span)?;
    let (start, pages) = (word(&bytes, 24), word(&bytes, 32));
    let offset = object.checked_sub(start).filter(|offset| pages <= MAX_PAGES && offset / PAGE < pages)?;
    let short = |at: usize| int(&bytes, at) as u32 as u64 & 0xffff;
    // Go 1.22 and later: freeindex and nelems have 2 bytes. Before: 8 bytes.
    let layouts = [(short(48), short(50), 64), (word(&bytes, 48), word(&bytes, 56), 72)];
    for (first_free, objects, bits_at) in layouts {
        let agree = |at: &usize| {
            let (size, end) = (word(&bytes, *at), word(&bytes, at + 8));
            let Some(room) = end.checked_sub(start).filter(|room| size > 0 && *room <= pages * PAGE) else {
                return false;
            };
            // Go 1.22 does not subtract the span's bits from the end: one for each word.
            let bits = size.checked_mul(objects).and_then(|used| room.checked_sub(used));
            objects > 0 && room % size == 0 && bits.is_some_and(|bits| bits <= pages * PAGE / 64 + size)
        };
        let Some(at) = (88..SPAN_BYTES - 8).step_by(8).find(agree) else { continue };
        if bytes[at - STATE_BEFORE_SIZE] != IN_USE {
            return None;
        }
        let index = offset / word(&bytes, at);
        let bit =
            |bits: u64| Some(memory.bytes(bits.checked_add(index / 8)?, 1).first()? >> (index % 8) & 1 == 1);
        let is_marked = bit(word(&bytes, bits_at + 8)).unwrap_or(false);
        // A sweep sets the index to 0 some instructions before the marks replace the bits of the allocated objects.
        let is_allocated = index < first_free || is_marked || bit(word(&bytes, bits_at))?;
        let use_now = if index < objects && is_allocated { Use::Used } else { Use::Freed };
        let swept = swept(int(&bytes, at - SWEPT_BEFORE_SIZE) as u32);
        return Some(HeapObject { use_now, swept, is_marked });
    }
    // Each span has its end in a field. Other data can have an address of the heap before a small number.
    let is_end = |at: usize| (start + 1..=start + pages * PAGE).contains(&word(&bytes, at));
    if !(88..SPAN_BYTES).step_by(8).any(is_end) {
        return None;
    }
    // A span of stacks has no objects.
    let use_now = if short(50) == 0 { Use::Freed } else { Use::Unknown };
    Some(HeapObject { use_now, swept: 0, is_marked: false })
}

/// Returns the collection after which a span was swept, by its `sweepgen`: this number, 3 more while a processor allocates
/// from the span, or 3 more than two collections ago while the span is being swept.
fn swept(generation: u32) -> u32 {
    generation.wrapping_sub(if generation % 2 == 1 { 3 } else { 0 })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::runtimes::go::functions::GoFunctions;
    use crate::runtimes::go::suspended;
    use crate::tests::{BASE, Counted, TestMemory};

    #[test]
    fn a_span_that_waits_for_its_sweep_counts_as_older() {
        // The heap's number is 20: swept, swept and allocated from, allocated from before, being swept, to be swept.
        assert_eq!([20, 23, 21, 19, 18].map(swept), [20, 20, 18, 16, 18]);
    }

    const START: u64 = 0xc0_0000_0000;
    const OBJECT: u64 = START + 2 * 1024;
    const SPAN: KnownSpan = KnownSpan { address: BASE, memory: START..START + PAGE };

    /// Returns a span at [`BASE`] of 8 objects, with the index of the first free one and the bits of allocated and marked ones.
    fn span(first_free: u64, allocated: u64, marked: u64) -> TestMemory {
        let mut words = vec![0; 40];
        // The state is the fourth byte of word 12.
        (words[3], words[4], words[6]) = (START, 1, first_free | 8 << 16);
        (words[8], words[9]) = (BASE + 8 * 30, BASE + 8 * 31);
        (words[12], words[13], words[14]) = (u64::from(IN_USE) << 24, 1024, START + PAGE);
        (words[30], words[31]) = (allocated, marked);
        TestMemory::of(&words)
    }

    /// A kill can come after a sweep has set the index to 0, and before the marks replace the bits of the allocated objects.
    #[test]
    fn an_object_is_in_use_while_its_span_is_swept() {
        let used = |memory| object_in_span(&memory, BASE, OBJECT).expect("a span").use_now;
        assert_eq!(used(span(0, 0, 0)), Use::Freed);
        assert_eq!([used(span(3, 0, 0)), used(span(2, 0, 0))], [Use::Used, Use::Freed], "not allocated yet");
        assert_eq!(used(span(0, 1 << 2, 0)), Use::Used);
        assert_eq!(used(span(0, 0, 1 << 2)), Use::Used, "the last collection has reached it");
    }

    /// Returns memory at [`BASE`] with spans of one page each, and an object of each.
    fn spans(count: u64) -> (TestMemory, Vec<u64>) {
        let mut bytes = Vec::new();
        for index in 0..count {
            let (mut one, offset) = (span(3, 0, 0), 8 * 40 * index);
            for (word, value) in [(3, START), (8, BASE + 8 * 30), (9, BASE + 8 * 31), (14, START + PAGE)] {
                let moved = value + if value >= START { PAGE * index } else { offset };
                one.0[8 * word..8 * word + 8].copy_from_slice(&moved.to_le_bytes());
            }
            bytes.extend(one.0);
        }
        (TestMemory(bytes), (0..count).map(|index| OBJECT + PAGE * index).collect())
    }

    #[test]
    fn only_the_span_of_an_object_is_read_for_it() {
        const COUNT: usize = 100;
        let (memory, objects) = spans(COUNT as u64);
        let mut live = LiveObjects::default();
        live.add_spans(&objects, BASE, &memory.0);
        assert_eq!(live.spans.len(), COUNT);
        let counted = Counted { memory, reads: Cell::new(0) };
        assert!(objects.iter().all(|object| live.is_in_heap(&counted, *object)));
        // Its fields, and the bits of the object.
        assert!(counted.reads.get() <= 3 * COUNT, "{}", counted.reads.get());
    }

    #[test]
    fn crafted_memory_has_a_limited_number_of_spans() {
        let words: Vec<u64> = [START, 1].repeat(MAX_SPANS + 1);
        let mut live = LiveObjects::default();
        live.add_spans(&[OBJECT], BASE, &TestMemory::of(&words).0);
        assert_eq!(live.spans.len(), MAX_SPANS);
        let mut others = LiveObjects::default();
        others.add_spans(&[OBJECT], BASE, &TestMemory::of(&[START, MAX_PAGES + 1, START, 0]).0);
        assert_eq!(others.spans, [], "no span has so many pages, or none");
    }

    #[test]
    fn other_data_with_an_address_of_the_heap_are_no_span() {
        let mut words = vec![0; 40];
        (words[3], words[4], words[6]) = (START, 1, u64::MAX);
        assert!(object_in_span(&TestMemory::of(&words), BASE, OBJECT).is_none());
        words[14] = START + PAGE;
        let one = object_in_span(&TestMemory::of(&words), BASE, OBJECT).expect("a span");
        assert_eq!(one.use_now, Use::Unknown, "one with other fields");
    }

    /// A stack of more than 32 KiB leaves memory without a span when it grows.
    #[test]
    fn memory_without_a_span_is_in_no_use_if_all_spans_are_known() {
        let (memory, outside) = (span(3, 0, 0), START + 2 * PAGE);
        let use_of = |spans, has_all_spans, object| {
            LiveObjects { spans, has_all_spans, ..LiveObjects::default() }.use_of(&memory, object)
        };
        assert_eq!(use_of(vec![SPAN], true, outside), Use::Freed);
        assert_eq!(use_of(vec![SPAN], false, outside), Use::Unknown);
        assert_eq!(use_of(vec![SPAN], true, OBJECT), Use::Used);
    }

    /// The memory of a thread that has ended still names its stack, whose memory the heap may use.
    #[test]
    fn an_object_of_the_heap_is_on_no_unused_part_of_a_stack() {
        let goroutine = Goroutine {
            address: 1,
            low: START,
            high: START + PAGE,
            stack_pointer: START + PAGE - 64,
            next: 0,
            context: 0,
        };
        let live = LiveObjects {
            goroutines: vec![goroutine],
            is_complete: true,
            spans: vec![SPAN],
            ..LiveObjects::default()
        };
        let functions = GoFunctions::default();
        let freed = |memory| suspended::find(&memory, Some(&functions), &live, &[], &[OBJECT]).freed;
        assert!(freed(span(3, 0, 0)).is_empty());
        assert_eq!(freed(span(0, 0, 0)).len(), 1);
    }
}
