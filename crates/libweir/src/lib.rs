//! Safe Rust bindings of libweir, the C library of buffered byte streams. The C library is in `libweir/` of
//! the repository; its header `weir.h` is the full reference.
//!
//! ```
//! use std::io::{BufRead, Write};
//! # fn main() -> std::io::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("lines");
//! let mut out = libweir::Options::new().create(&path)?;
//! writeln!(out, "{} bottles", 99)?;
//! out.close()?; // returns errors, which drop cannot
//!
//! let mut lines = libweir::Options::new().open(&path)?;
//! assert_eq!(lines.next_record()?, Some(&b"99 bottles\n"[..]));
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

mod ffi;
mod options;
mod stream;

pub use options::{Options, Recovered, StreamDurability, StreamMode, recover};
pub use stream::{CloseError, Stats, Stream};
