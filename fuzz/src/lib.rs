//! The parts that all fuzz targets share: the bounds that every input must keep, crafted memory and files, and a mutation that knows
//! words.

mod bounds;
mod files;
mod recordings;
mod words;

pub use bounds::{CountedAllocator, bounded};
pub use files::{file, sparse_file};
pub use recordings::{recording, show};
pub use words::mutate_words;

/// Defines a fuzz target: a function of bytes.
#[macro_export]
macro_rules! target {
    ($run:expr) => {
        #[global_allocator]
        static ALLOCATOR: $crate::CountedAllocator = $crate::CountedAllocator;
        libfuzzer_sys::fuzz_target!(|input: &[u8]| $crate::bounded(|| $run(input)));
    };
}

/// Defines a fuzz target that walks crafted memory.
#[macro_export]
macro_rules! walker_target {
    ($walk:path) => {
        $crate::target!(|input: &[u8]| {
            if let Some(memory) = weir_walkers::fuzzing::CraftedMemory::of(input) {
                $walk(&memory);
            }
        });
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| {
            $crate::mutate_words(data, size, most, seed)
        });
    };
}
