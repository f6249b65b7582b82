//! Compares the output of a sample with the expected bytes, so that a wrong loop is not reported as fast.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use crate::axes::Workload;
use crate::error::{Error, Result};
use crate::ffi::{TEXT_LINE, text_at, translated};
use crate::plan::Cell;

const CHUNK: usize = 1 << 16;

/// Compares the first `bytes` of the output with the bytes that `cell` must write. An error names the
/// first byte that differs.
pub fn verify(cell: &Cell, bytes: u64, out_path: &Path) -> Result<()> {
    if !cell.workload.has_output() {
        return Ok(());
    }
    let fail = |error: std::io::Error| Error::system("read", out_path, &error, "");
    let line = if cell.workload == Workload::Log { cell.record_bytes } else { TEXT_LINE };
    let expected = |offset: u64| match cell.workload {
        Workload::Translate => translated(text_at(offset, line)),
        _ => text_at(offset, line),
    };
    let mut out = BufReader::with_capacity(CHUNK, File::open(out_path).map_err(fail)?);
    let mut chunk = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let count = out.read(&mut chunk).map_err(fail)?;
        if count == 0 {
            break;
        }
        if let Some(at) = (0..count).find(|&i| chunk[i] != expected(offset + i as u64)) {
            return Err(wrong(cell, &format!("byte {} is wrong", offset + at as u64)));
        }
        offset += count as u64;
    }
    match offset == bytes {
        true => Ok(()),
        false => Err(wrong(cell, &format!("it has {offset} bytes instead of {bytes}"))),
    }
}

fn wrong(cell: &Cell, what: &str) -> Error {
    Error::Failed(format!("{}: the output is wrong: {what}; this is a bug, please report it", cell.label()))
}
