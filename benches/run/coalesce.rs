//! tr2u, which reads and writes single bytes, bare and with --coalesce; tr2b, the fixed program; and tr2u with a library that
//! gathers its calls and checks nothing, the floor for any such library.

use crate::bench_dir::BenchDir;
use crate::figure::{paired, ratio};
use crate::rounds::{pairs, rounds};
use crate::targets::Target;
use crate::{BoxError, process};

const BYTES: usize = 5_000_000;
const MIN_FASTER: f64 = 40.0;
const MAX_RATIO_TO_FIXED: f64 = 1.5;
const MAX_RATIO_TO_FLOOR: f64 = 1.4;

pub fn rows(bench: &BenchDir, rows: &mut Vec<Target>) -> Result<(), BoxError> {
    let bytes = bench.pick(BYTES, BYTES / 10);
    let (input, line) = (bench.path("in"), b"abcdefghijklmnopqrstuvwxyz a banana and an aardvark\n");
    std::fs::write(&input, line.iter().copied().cycle().take(bytes).collect::<Vec<u8>>())?;
    bench.compile("run", "floor", &["-shared", "-fPIC"])?;
    let preload = format!("LD_PRELOAD={}", bench.path("floor").display());
    let floor = ["env", &preload];
    let runs = [(&[][..], "tr2u"), (&["weir", "--coalesce"], "tr2u"), (&[], "tr2b"), (&floor, "tr2u")];
    let output = |which: usize| bench.path(&format!("out-{which}"));
    let times = rounds(bench.pick(9, 3), runs.len(), |which| {
        let (under, program) = runs[which];
        let mut command = bench.command(under, program);
        process::redirect(&mut command, &input, &output(which))?;
        process::seconds(&mut command)
    })?;
    let expected = std::fs::read(output(0))?;
    let same = (1..runs.len()).all(|which| std::fs::read(output(which)).is_ok_and(|bytes| bytes == expected));
    let faster = paired(pairs(&times, 0, 1))?;
    let of_fixed = paired(pairs(&times, 1, 2))?;
    rows.push(Target {
        name: format!("tr2u, {bytes} bytes, --coalesce"),
        target: format!("at least {MIN_FASTER:.0} times faster than bare"),
        measured: ratio(&faster),
        reached: faster.value >= MIN_FASTER,
    });
    rows.push(Target {
        name: "the same beside tr2b".into(),
        target: format!("at most {MAX_RATIO_TO_FIXED} times tr2b"),
        measured: ratio(&of_fixed),
        reached: of_fixed.value <= MAX_RATIO_TO_FIXED,
    });
    let of_floor = paired(pairs(&times, 1, 3))?;
    let floor_of_fixed = paired(pairs(&times, 3, 2))?;
    rows.push(Target {
        name: "the same beside the floor".into(),
        target: format!("at most {MAX_RATIO_TO_FLOOR} times a library that checks nothing"),
        measured: format!("{}; the floor is {} times tr2b", ratio(&of_floor), ratio(&floor_of_fixed)),
        reached: of_floor.value <= MAX_RATIO_TO_FLOOR,
    });
    rows.push(Target {
        name: "the same, its output".into(),
        target: "as bare".into(),
        measured: if same { "the same" } else { "different" }.into(),
        reached: same,
    });
    Ok(())
}
