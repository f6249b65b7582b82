//! putc_unlocked at full speed while weir writes the pending bytes every millisecond.

use std::io::Read;
use std::process::Stdio;

use crate::BoxError;
use crate::bench_dir::BenchDir;
use crate::targets::Target;

const SECONDS: usize = 60;
/// The multiplier of the generator in programs/putc.c.
const STEP: u32 = 1_664_525;

/// Compares the received bytes with the pseudo-random series that the program writes.
struct Series {
    state: u32,
    bytes: u64,
    /// Index of the first wrong byte.
    wrong: Option<u64>,
}

impl Series {
    fn check(&mut self, byte: u8) {
        self.state = self.state.wrapping_mul(STEP).wrapping_add(1_013_904_223);
        if byte != (self.state >> 24) as u8 {
            self.wrong.get_or_insert(self.bytes);
        }
        self.bytes += 1;
    }
}

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let seconds = bench.pick(SECONDS, 5);
    let mut command = bench.command(&["weir", "--max-delay", "1ms"], "putc");
    let mut child = command.arg(seconds.to_string()).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().ok_or("no pipe")?;
    let (mut series, mut tail) = (Series { state: 1, bytes: 0, wrong: None }, Vec::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = pipe.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        // The last eight bytes are the length of the series, not part of it.
        tail.extend(&buffer[..read]);
        let ready = tail.len().saturating_sub(8);
        tail.drain(..ready).for_each(|byte| series.check(byte));
    }
    let status = child.wait()?;
    let written = tail.try_into().map_or(0, u64::from_le_bytes);
    let Series { bytes, wrong, .. } = series;
    rows.push(Target {
        name: format!("putc_unlocked for {seconds} s, --max-delay 1ms"),
        target: "every byte, once, in order".into(),
        measured: match wrong {
            None if written != bytes => format!("{bytes} bytes of {written}"),
            None => format!("{:.1} GB right", bytes as f64 / 1e9),
            Some(at) => format!("wrong from byte {at} on"),
        },
        reached: wrong.is_none() && status.success() && bytes > 0 && written == bytes,
    });
    Ok(())
}
