//! Reads the types that bpf/kernel.h names from the kernel's BTF (kernel documentation: bpf/btf.rst).
//!
//! The BTF has five megabytes. One pass finds the wanted types and copies them; decoding all of it would take longer than the
//! rest of the start.

use std::collections::HashMap;
use std::io;

use aya_obj::btf::Btf;

use crate::kernel_file::KernelFile;

/// The file with the kernel's BTF.
pub(super) const PATH: &str = "/sys/kernel/btf/vmlinux";

/// The structs of bpf/kernel.h.
const STRUCTS: &[&str] = &[
    "super_block",
    "inode",
    "pipe_inode_info",
    "file",
    "path",
    "dentry",
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

/// Kinds of types, from linux/btf.h.
const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FWD: u32 = 7;
const TYPEDEF: u32 = 8;
const RESTRICT: u32 = 11;
const FUNC: u32 = 12;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const FLOAT: u32 = 16;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;
/// BTF_INFO_VLEN: the number of members in a type's second word.
const COUNT: u32 = 0xffff;

const HEADER_BYTES: u32 = 24;
const TYPE_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;
const MAGIC: u32 = 0x0001_eb9f;

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
}

impl KernelTypes {
    /// Reads the types of the running kernel, and the numbers of these tracepoints and functions. The functions are searched
    /// only if `needs_functions` says so of the rest, because they are most of the types.
    pub fn of_this_kernel(
        tracepoints: &[&str],
        functions: &[&str],
        needs_functions: impl Fn(&Self) -> bool,
    ) -> io::Result<Self> {
        let file = KernelFile::open(PATH)?;
        let mut types = Self::parse(&file, tracepoints);
        if let Some(types) = types.as_mut().filter(|types| needs_functions(types)) {
            types.functions = find_functions(&file, functions);
        }
        types.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its format is unknown"))
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
        let mut preemptible_tracepoints = false;
        for number in 1..all.starts.len() as u32 {
            match all.kind(number) {
                STRUCT if STRUCTS.iter().any(|name| all.is_named(number, name.as_bytes())) => {
                    subset.number(number);
                }
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
        Some(Self { structs, tracepoints: found, functions: HashMap::new(), preemptible_tracepoints })
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

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// BTF in its binary form, with the offset of each type.
struct BtfTypes<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// By type number; number 0 is void.
    starts: Vec<u32>,
}

impl<'a> BtfTypes<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        if word(bytes, 0)? & 0xff_ffff != MAGIC & 0xff_ffff {
            return None;
        }
        let header = word(bytes, 4)? as usize;
        let part = |at| {
            let start = header.checked_add(word(bytes, at)? as usize)?;
            bytes.get(start..start.checked_add(word(bytes, at + 4)? as usize)?)
        };
        let (types, strings) = (part(8)?, part(16)?);
        let mut starts = Vec::with_capacity(types.len() / 24);
        starts.push(0);
        let mut at = 0;
        while at < types.len() {
            starts.push(at as u32);
            at += TYPE_BYTES + extra_bytes(word(types, at + 4)?)?;
        }
        (at == types.len()).then_some(Self { types, strings, starts })
    }

    fn word(&self, number: u32, at: usize) -> u32 {
        let start = self.starts[number as usize] as usize;
        word(self.types, start + at).unwrap_or(0)
    }

    fn kind(&self, number: u32) -> u32 {
        self.word(number, 4) >> 24 & 0x1f
    }

    fn name(&self, number: u32) -> &'a [u8] {
        self.string(self.word(number, 0))
    }

    /// Returns the number of arguments of a tracepoint's handler, without the first one, which is the same for all. `typedef` is
    /// that of a pointer to a function.
    fn handler_arguments(&self, typedef: u32) -> usize {
        let referent = |number| Some(self.word(number, 8)).filter(|&of| (of as usize) < self.starts.len());
        let handler = referent(typedef).and_then(referent).filter(|&number| self.kind(number) == FUNC_PROTO);
        handler.map_or(0, |number| (self.word(number, 4) & COUNT) as usize).saturating_sub(1)
    }

    fn begins(&self, number: u32, with: &[u8]) -> bool {
        self.strings.get(self.word(number, 0) as usize..).is_some_and(|rest| rest.starts_with(with))
    }

    /// Compares without a search for the end of the name, because it is called for every type.
    fn is_named(&self, number: u32, name: &[u8]) -> bool {
        let rest = self.strings.get(self.word(number, 0) as usize..).unwrap_or_default();
        rest.starts_with(name) && rest.get(name.len()) == Some(&0)
    }

    fn string(&self, at: u32) -> &'a [u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        &rest[..rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len())]
    }
}

/// Returns the number of bytes after the fixed part of a type; None for an unknown kind.
fn extra_bytes(info: u32) -> Option<usize> {
    let count = (info & COUNT) as usize;
    Some(match info >> 24 & 0x1f {
        PTR | FWD | TYPEDEF..=FUNC | FLOAT | TYPE_TAG => 0,
        INT | VAR | DECL_TAG => 4,
        ARRAY => 12,
        ENUM | FUNC_PROTO => count * 8,
        STRUCT | UNION | DATASEC | ENUM64 => count * MEMBER_BYTES,
        _ => return None,
    })
}

/// A copy of some types, renumbered.
struct BtfSubset<'a> {
    all: &'a BtfTypes<'a>,
    types: Vec<u8>,
    strings: Vec<u8>,
    /// From old to new.
    numbers: HashMap<u32, u32>,
    /// The old numbers in the order of the new ones.
    order: Vec<u32>,
}

impl<'a> BtfSubset<'a> {
    fn new(all: &'a BtfTypes<'a>) -> Self {
        Self { all, types: Vec::new(), strings: vec![0], numbers: HashMap::new(), order: Vec::new() }
    }

    /// Returns the new number of a type, and adds the type to those that [`Self::finish`] copies.
    fn number(&mut self, old: u32) -> u32 {
        if old == 0 || old as usize >= self.all.starts.len() {
            return 0;
        }
        *self.numbers.entry(old).or_insert_with(|| {
            self.order.push(old);
            self.order.len() as u32
        })
    }

    /// Copies the types, and the types that they contain, and returns them as BTF.
    fn finish(mut self) -> Vec<u8> {
        let mut copied = 0;
        while let Some(&old) = self.order.get(copied) {
            self.copy(old);
            copied += 1;
        }
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let header = [MAGIC, HEADER_BYTES, 0, types, types, strings];
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.append(&mut self.types);
        bytes.append(&mut self.strings);
        bytes
    }

    fn copy(&mut self, old: u32) {
        let (name, info, size_or_type) =
            (self.all.word(old, 0), self.all.word(old, 4), self.all.word(old, 8));
        let name = self.name(name);
        match self.all.kind(old) {
            // The targets of pointers would be most of the kernel's types.
            PTR => self.put(&[name, info, 0]),
            TYPEDEF..=RESTRICT | TYPE_TAG => {
                let of = self.number(size_or_type);
                self.put(&[name, info, of]);
            }
            INT => self.put(&[name, info, size_or_type, self.all.word(old, 12)]),
            ARRAY => {
                let (of, by) = (self.number(self.all.word(old, 12)), self.number(self.all.word(old, 16)));
                self.put(&[name, info, size_or_type, of, by, self.all.word(old, 20)]);
            }
            STRUCT | UNION => {
                self.put(&[name, info, size_or_type]);
                (0..info & COUNT).for_each(|member| self.copy_member(old, member as usize));
            }
            // An enum without its constants: CO-RE needs only its size. Other kinds are not in structs.
            _ => self.put(&[name, info & !COUNT, size_or_type]),
        }
    }

    fn copy_member(&mut self, of: u32, member: usize) {
        let at = TYPE_BYTES + member * MEMBER_BYTES;
        let name = self.name(self.all.word(of, at));
        let member_type = self.number(self.all.word(of, at + 4));
        self.put(&[name, member_type, self.all.word(of, at + 8)]);
    }

    fn name(&mut self, at: u32) -> u32 {
        let name = self.all.string(at);
        if name.is_empty() {
            return 0;
        }
        let new = self.strings.len() as u32;
        self.strings.extend_from_slice(name);
        self.strings.push(0);
        new
    }

    fn put(&mut self, words: &[u32]) {
        self.types.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
}

#[cfg(test)]
impl KernelTypes {
    /// A kernel with these tracepoints, by their number of arguments, and functions.
    pub fn with(tracepoints: &[(&str, usize)], functions: &[&str], preemptible_tracepoints: bool) -> Self {
        let tracepoints = tracepoints.iter().map(|&(name, arguments)| (name.to_owned(), (1, arguments)));
        let functions = functions.iter().map(|&name| (name.to_owned(), 2));
        let header = [MAGIC, HEADER_BYTES, 0, 0, 0, 1];
        let mut empty: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        empty.push(0);
        let structs = Btf::parse(&empty, Default::default()).expect("empty BTF");
        Self {
            structs,
            tracepoints: tracepoints.collect(),
            functions: functions.collect(),
            preemptible_tracepoints,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn invalid_btf_is_rejected() {
        let whole = sample();
        assert!(KernelTypes::parse(b"", &[]).is_none());
        assert!(KernelTypes::parse(&whole[..whole.len() - 1], &[]).is_none());
        let mut newer = whole.clone();
        newer[24 + 7] = 31;
        assert!(KernelTypes::parse(&newer, &[]).is_none());
    }
}
