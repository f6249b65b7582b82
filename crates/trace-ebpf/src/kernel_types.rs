//! Reads the types that bpf/kernel.h names from the kernel's BTF (kernel documentation: bpf/btf.rst).
//!
//! The BTF has five megabytes. One pass finds the wanted types and copies them; decoding all of it would take longer than the
//! rest of the start.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use aya_obj::btf::Btf;

use crate::btf_file;
use crate::btf_types::{BtfSubset, BtfTypes, FUNC, STRUCT, TYPEDEF, VAR};
use crate::test_settings;

/// The structs of bpf/kernel.h.
const STRUCTS: &[&str] = &[
    "super_block",
    "inode",
    "pipe_inode_info",
    "file",
    "path",
    "dentry",
    "vfsmount",
    "mount",
    "qstr",
    "fdtable",
    "files_struct",
    "fs_struct",
    "mm_struct",
    "task_io_accounting",
    "signal_struct",
    "sched_entity",
    "sched_info",
    "task_struct",
    "linux_binprm",
    "pt_regs",
    "user_pt_regs",
];
/// The typedef of a tracepoint's handler: `btf_trace_` and its name.
const TRACEPOINT: &[u8] = b"btf_trace_";
/// The state of the SRCU domain that guards tracepoints (DEFINE_SRCU(tracepoint_srcu) in kernel/tracepoint.c).
const TRACEPOINT_SRCU: &[u8] = b"tracepoint_srcu_srcu_data";

/// The state of the allocator for maps that are not preallocated (Linux 6.1; kernel/bpf/memalloc.c).
const MAP_ALLOCATOR: &[u8] = b"bpf_mem_alloc";

/// The kernel's types that the BPF programs need.
pub(super) struct KernelTypes {
    /// The structs and all types that they contain by value. Pointers point to void.
    pub structs: Btf,
    /// Numbers of the tracepoints' `btf_trace_` typedefs, and the number of their handlers' arguments.
    tracepoints: HashMap<String, (u32, usize)>,
    /// Numbers of kernel functions. Searched only if a tracepoint is missing or has too few arguments.
    functions: HashMap<String, u32>,
    /// SRCU guards the tracepoints, so their programs may be preempted.
    pub preemptible_tracepoints: bool,
    /// BPF programs may allocate the entries of maps wherever they run.
    pub allocates_entries: bool,
    /// Names of BPF programs that must not be selected.
    skipped: Vec<String>,
}

impl KernelTypes {
    /// Reads the types of the running kernel ([`btf_file::open`] says where), and the numbers of these tracepoints and functions.
    /// Searches the functions only if `needs_functions` returns true for the other types, because most types are functions.
    pub fn of_this_kernel(
        btf: Option<&Path>,
        tracepoints: &[&str],
        functions: &[&str],
        needs_functions: impl Fn(&Self) -> bool,
    ) -> io::Result<Self> {
        let file = btf_file::open(btf)?;
        let mut types = Self::parse(&file, tracepoints);
        if let Some(types) = &mut types {
            types.skipped = test_settings::skipped_programs();
        }
        if let Some(types) = types.as_mut().filter(|types| needs_functions(types)) {
            types.functions = find_functions(&file, functions);
        }
        types.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its format is unknown"))
    }

    /// Returns whether a BPF program must not be selected.
    pub fn skips(&self, program: &str) -> bool {
        self.skipped.iter().any(|name| name == program)
    }

    /// Returns the number of a tracepoint's typedef and the number of its handler's arguments; None if the kernel has no
    /// such tracepoint.
    pub fn tracepoint(&self, name: &str) -> Option<(u32, usize)> {
        self.tracepoints.get(name).copied()
    }

    /// Returns the number of a function; None if the kernel has no such function, or its functions were not searched.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.functions.get(name).copied()
    }

    pub fn parse(bytes: &[u8], tracepoints: &[&str]) -> Option<Self> {
        let all = BtfTypes::parse(bytes)?;
        let mut subset = BtfSubset::new(&all);
        let mut found = HashMap::new();
        let (mut preemptible_tracepoints, mut allocates_entries) = (false, false);
        for number in 1..all.starts.len() as u32 {
            match all.kind(number) {
                STRUCT if STRUCTS.iter().any(|name| all.is_named(number, name.as_bytes())) => {
                    subset.number(number);
                }
                STRUCT if all.is_named(number, MAP_ALLOCATOR) => allocates_entries = true,
                TYPEDEF if all.begins(number, TRACEPOINT) => {
                    let name = &all.name(number)[TRACEPOINT.len()..];
                    if let Some(&tracepoint) = tracepoints.iter().find(|known| known.as_bytes() == name) {
                        found.entry(tracepoint.to_owned()).or_insert((number, all.handler_arguments(number)));
                    }
                }
                VAR if all.is_named(number, TRACEPOINT_SRCU) => preemptible_tracepoints = true,
                _ => {}
            }
        }
        let structs = Btf::parse(&subset.finish(), Default::default()).ok()?;
        Some(Self {
            structs,
            tracepoints: found,
            functions: HashMap::new(),
            preemptible_tracepoints,
            allocates_entries,
            skipped: Vec::new(),
        })
    }
}

/// Returns the numbers of these functions in the kernel's BTF.
fn find_functions(bytes: &[u8], names: &[&str]) -> HashMap<String, u32> {
    let Some(all) = BtfTypes::parse(bytes) else { return HashMap::new() };
    let numbers = (1..all.starts.len() as u32).filter(|&number| all.kind(number) == FUNC);
    let named = numbers.filter_map(|number| {
        let name = names.iter().find(|name| all.is_named(number, name.as_bytes()))?;
        Some(((*name).to_owned(), number))
    });
    named.collect()
}

#[cfg(test)]
impl KernelTypes {
    /// The same kernel, on which these programs must not be selected.
    pub fn without(mut self, programs: &[&str]) -> Self {
        self.skipped = programs.iter().map(|&name| name.to_owned()).collect();
        self
    }

    /// A kernel with these tracepoints, by their number of arguments, and functions.
    pub fn with(tracepoints: &[(&str, usize)], functions: &[&str], preemptible_tracepoints: bool) -> Self {
        let tracepoints = tracepoints.iter().map(|&(name, arguments)| (name.to_owned(), (1, arguments)));
        let functions = functions.iter().map(|&name| (name.to_owned(), 2));
        let header = [crate::btf_types::MAGIC, crate::btf_types::HEADER_BYTES, 0, 0, 0, 1];
        let mut empty: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        empty.push(0);
        let structs = Btf::parse(&empty, Default::default()).expect("empty BTF");
        Self {
            structs,
            tracepoints: tracepoints.collect(),
            functions: functions.collect(),
            preemptible_tracepoints,
            allocates_entries: true,
            skipped: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btf_types::{FUNC_PROTO, INT, MAGIC, PTR};

    fn btf(types: &[u32], strings: &[u8]) -> Vec<u8> {
        let (bytes, names) = (types.len() as u32 * 4, strings.len() as u32);
        let header = [MAGIC, 24, 0, bytes, bytes, names];
        let words = header.iter().chain(types).flat_map(|word| word.to_le_bytes());
        words.chain(strings.iter().copied()).collect()
    }

    const fn info(kind: u32, count: u32) -> u32 {
        kind << 24 | count
    }

    /// 1: int; 2: struct other with an int; 3: a pointer to it; 4: struct file, an int and the pointer; 5: void
    /// function of two ints; 6: a pointer to that; 7: the typedef of a tracepoint; 8: a function; 9: a variable.
    fn sample() -> Vec<u8> {
        let strings =
            b"\0int\0other\0file\0first\0second\0btf_trace_sys_exit\0run\0tracepoint_srcu_srcu_data\0";
        let at =
            |name: &str| strings.windows(name.len()).position(|part| part == name.as_bytes()).unwrap() as u32;
        let types = [
            vec![at("int"), info(INT, 0), 4, 32],
            vec![at("other"), info(STRUCT, 1), 4, at("first"), 1, 0],
            vec![0, info(PTR, 0), 2],
            vec![at("file"), info(STRUCT, 2), 16, at("first"), 1, 0, at("second"), 3, 64],
            vec![0, info(FUNC_PROTO, 2), 0, 0, 1, 0, 1],
            vec![0, info(PTR, 0), 5],
            vec![at("btf_trace_sys_exit"), info(TYPEDEF, 0), 6],
            vec![at("run"), info(FUNC, 0), 5],
            vec![at("tracepoint_srcu_srcu_data"), info(VAR, 0), 1, 0],
        ];
        btf(&types.concat(), strings)
    }

    #[test]
    fn a_struct_comes_with_its_members_and_a_tracepoint_with_its_number() {
        let types = KernelTypes::parse(&sample(), &["sys_exit", "sys_enter"]).unwrap();
        assert_eq!((types.tracepoint("sys_exit"), types.tracepoint("sys_enter")), (Some((7, 1)), None));
        assert!(types.preemptible_tracepoints && types.function("run").is_none());
        assert_eq!(find_functions(&sample(), &["run", "stop"]), HashMap::from([("run".to_owned(), 8)]));
        let strings = b"\0file\0first\0second\0int\0";
        let file = vec![1, info(STRUCT, 2), 16, 6, 2, 0, 12, 3, 64];
        let (int, pointer) = (vec![19, info(INT, 0), 4, 32], vec![0, info(PTR, 0), 0]);
        assert_eq!(types.structs.to_bytes(), btf(&[file, int, pointer].concat(), strings));
    }

    #[test]
    fn functions_with_pointer_arguments_become_static() {
        let strings = b"\0int\0of_pointer\0of_typedef\0of_number\0";
        let at =
            |name: &str| strings.windows(name.len()).position(|part| part == name.as_bytes()).unwrap() as u32;
        let global = info(FUNC, 1);
        let types = |of_pointer: u32, of_typedef: u32| {
            let types = [
                vec![at("int"), info(INT, 0), 4, 32],
                vec![0, info(PTR, 0), 1],
                vec![0, info(TYPEDEF, 0), 2],
                vec![0, info(FUNC_PROTO, 2), 1, 0, 1, 0, 2],
                vec![0, info(FUNC_PROTO, 1), 1, 0, 3],
                vec![0, info(FUNC_PROTO, 1), 1, 0, 1],
                vec![at("of_pointer"), of_pointer, 4],
                vec![at("of_typedef"), of_typedef, 5],
                vec![at("of_number"), global, 6],
            ];
            btf(&types.concat(), strings)
        };
        let mut changed = types(global, global);
        crate::btf_types::make_pointer_functions_static(&mut changed);
        assert_eq!(changed, types(info(FUNC, 0), info(FUNC, 0)));
        let mut invalid = b"no BTF".to_vec();
        crate::btf_types::make_pointer_functions_static(&mut invalid);
        assert_eq!(invalid, b"no BTF");
    }

    #[test]
    fn invalid_btf_is_rejected() {
        let whole = sample();
        assert!(KernelTypes::parse(b"", &[]).is_none());
        assert!(KernelTypes::parse(&whole[..whole.len() - 1], &[]).is_none());
        let mut newer = whole.clone();
        newer[24 + 7] = 31;
        assert!(KernelTypes::parse(&newer, &[]).is_none());
    }
}
