//! Logs for `weir log check`.
#![no_main]

use std::os::fd::AsRawFd;

use weir_collect::Framing;
use weir_collect::check::{CheckOptions, check};

weir_fuzz::target!(|input: &[u8]| {
    let Some((kind, bytes)) = input.split_first() else { return };
    let file = weir_fuzz::file(bytes);
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let framing = [Framing::Delimiter(b'\n'), Framing::Length(3), Framing::Prefix(2), Framing::Prefix(4)];
    let options =
        CheckOptions { framing: framing[usize::from(kind % 4)], pattern: None, uniform: kind & 4 != 0 };
    let _document = check(path.as_ref(), &options);
});
