//! Entry points of fuzz/ into the code that names call sites: files and stacks of other processes.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use super::image::{CodeImage, LoadedImage};
use super::stack_sample;
use super::unwind::unwind;

/// Where the image is mapped.
const MAPPED: u64 = 0x5555_0000_0000;

/// Reads the unwind tables and the debug information of a file, and names some of its addresses.
pub fn image(file: File) {
    let Some(image) = CodeImage::read(Path::new("/crafted"), file) else { return };
    for address in [image.text.start, image.text.start.wrapping_add(16), 0x1000, u64::MAX] {
        let _has_table = image.has_unwind_table(address);
        assert!(image.symbols().names(address).len() < 1 << 20);
    }
}

/// Parses a sample of a stack, and unwinds it with the tables of a file.
pub fn stack(file: File, record: &[u8]) {
    let Some(sample) = stack_sample::parse(record) else { return };
    let image = CodeImage::read(Path::new("/crafted"), file).map(Rc::new);
    let loaded =
        image.into_iter().map(|image| LoadedImage { image, range: MAPPED..MAPPED + (1 << 20), bias: MAPPED });
    assert!(unwind(&sample, &loaded.collect::<Vec<_>>()).len() <= 64);
}
