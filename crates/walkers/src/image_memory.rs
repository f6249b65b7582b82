//! Searches the memory of an executable or library for streams that no symbol leads to.

use std::path::Path;

use weir_sys::maps::{MappedRegion, MappingKind, writable_ranges};
use weir_sys::memory::Memory;

/// The most bytes of writable memory that are searched: bounds the time that the search adds to a buffer snapshot.
const MAX_SEARCH: u64 = 2 << 20;

/// The address ranges of an image: its writable memory, its code, and all of it.
#[derive(Debug, Clone)]
pub(crate) struct ImageMemory {
    writable: Vec<(u64, u64)>,
    code: Vec<(u64, u64)>,
    image: (u64, u64),
}

impl ImageMemory {
    /// Returns the ranges of the image that was loaded from this file; None if its writable memory is too large.
    pub fn of(regions: &[MappedRegion], path: &Path) -> Option<ImageMemory> {
        let own: Vec<&MappedRegion> = regions
            .iter()
            .filter(|one| matches!(&one.kind, MappingKind::File(file) if file == path))
            .collect();
        let code = own.iter().filter(|one| one.executable).map(|one| (one.start, one.end)).collect();
        let image = (own.first()?.start, own.last()?.end);
        let writable = writable_ranges(regions, path);
        let bytes: u64 = writable.iter().map(|(start, end)| end - start).sum();
        (bytes <= MAX_SEARCH).then_some(ImageMemory { writable, code, image })
    }

    /// Returns made-up ranges, for tests and fuzz/.
    pub fn crafted(writable: (u64, u64), code: (u64, u64)) -> ImageMemory {
        ImageMemory { writable: vec![writable], code: vec![code], image: (code.0, writable.1) }
    }

    /// Returns whether an address is in the image's code.
    pub fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|(start, end)| (*start..*end).contains(&address))
    }

    /// Returns whether an address is in the image.
    pub fn is_own(&self, address: u64) -> bool {
        (self.image.0..self.image.1).contains(&address)
    }

    /// Returns whether a stream can be at an address: outside the image, or in its writable memory.
    fn may_hold_stream(&self, address: u64) -> bool {
        let likely = (0x1000..1 << 56).contains(&address) && !self.is_code(address);
        likely
            && (!self.is_own(address)
                || self.writable.iter().any(|(start, end)| (*start..*end).contains(&address)))
    }

    /// Copies the writable memory. The result reads the rest through `memory`.
    pub fn copy<'a>(&'a self, memory: &'a dyn Memory) -> ImageMemoryCopy<'a> {
        /// More than the writable memory of any runtime. A hostile file can claim any size.
        const MAX_COPIED: u64 = 16 << 20;
        let read = |(start, end): &(u64, u64)| {
            (*start, memory.bytes(*start, (end - start).min(MAX_COPIED) as usize))
        };
        ImageMemoryCopy { area: self, memory, parts: self.writable.iter().map(read).collect() }
    }
}

/// Memory of a process whose writable image memory is copied: reading that part needs no system call.
pub(crate) struct ImageMemoryCopy<'a> {
    area: &'a ImageMemory,
    memory: &'a dyn Memory,
    parts: Vec<(u64, Vec<u8>)>,
}

impl Memory for ImageMemoryCopy<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> usize {
        for (start, data) in &self.parts {
            let at = address.checked_sub(*start).and_then(|at| usize::try_from(at).ok());
            if let Some(part) = at.and_then(|at| data.get(at..)).and_then(|rest| rest.get(..into.len())) {
                into.copy_from_slice(part);
                return into.len();
            }
        }
        self.memory.read(address, into)
    }

    fn mappings(&self, pid: u32) -> Vec<MappedRegion> {
        self.memory.mappings(pid)
    }
}

impl ImageMemoryCopy<'_> {
    /// Returns the address and value of each word of the writable memory that can point to a stream.
    pub fn pointers(&self, align: u64) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        for (start, data) in &self.parts {
            for (index, value) in data.chunks_exact(8).enumerate() {
                let value = u64::from_le_bytes(value.try_into().unwrap_or_default());
                if value != 0 && value % align == 0 && self.area.may_hold_stream(value) {
                    found.push((start + 8 * index as u64, value));
                }
            }
        }
        found
    }

    /// Returns copies of the structures whose first 4 bytes fit, with their addresses.
    pub fn structures<const BYTES: usize>(&self, fits: impl Fn(u32) -> bool) -> Vec<(u64, [u8; BYTES])> {
        let mut found = Vec::new();
        for (start, data) in &self.parts {
            for at in (0..data.len().saturating_sub(BYTES - 1)).step_by(8) {
                let head = data[at..].first_chunk().map(|four| u32::from_le_bytes(*four));
                if let Some(bytes) = data[at..].first_chunk().filter(|_| head.is_some_and(&fits)) {
                    found.push((start + at as u64, *bytes));
                }
            }
        }
        found
    }
}
