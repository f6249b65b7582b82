//! Decodes as much of BTF (kernel documentation: bpf/btf.rst) as it takes to find types by name and to copy some of them.

use std::collections::HashMap;

/// Kinds of types, from linux/btf.h.
pub(super) const INT: u32 = 1;
pub(super) const PTR: u32 = 2;
const ARRAY: u32 = 3;
pub(super) const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FWD: u32 = 7;
pub(super) const TYPEDEF: u32 = 8;
const RESTRICT: u32 = 11;
pub(super) const FUNC: u32 = 12;
pub(super) const FUNC_PROTO: u32 = 13;
pub(super) const VAR: u32 = 14;
const DATASEC: u32 = 15;
const FLOAT: u32 = 16;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;
/// BTF_INFO_VLEN: the number of members in a type's second word.
const COUNT: u32 = 0xffff;

pub(super) const HEADER_BYTES: u32 = 24;
const TYPE_BYTES: usize = 12;
const MEMBER_BYTES: usize = 12;
pub(super) const MAGIC: u32 = 0x0001_eb9f;

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// BTF in its binary form, with the offset of each type.
pub(super) struct BtfTypes<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// By type number; number 0 is void.
    pub starts: Vec<u32>,
}

impl<'a> BtfTypes<'a> {
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
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

    pub fn kind(&self, number: u32) -> u32 {
        self.word(number, 4) >> 24 & 0x1f
    }

    pub fn name(&self, number: u32) -> &'a [u8] {
        self.string(self.word(number, 0))
    }

    /// Returns the number of arguments of a tracepoint's handler, without the first one, which is the same for all. `typedef` is
    /// that of a pointer to a function.
    pub fn handler_arguments(&self, typedef: u32) -> usize {
        let referent = |number| Some(self.word(number, 8)).filter(|&of| (of as usize) < self.starts.len());
        let handler = referent(typedef).and_then(referent).filter(|&number| self.kind(number) == FUNC_PROTO);
        handler.map_or(0, |number| (self.word(number, 4) & COUNT) as usize).saturating_sub(1)
    }

    /// Returns whether a FUNC_PROTO has a pointer among its arguments.
    fn takes_pointer(&self, prototype: u32) -> bool {
        let arguments = 0..(self.word(prototype, 4) & COUNT) as usize;
        arguments
            .map(|index| self.word(prototype, TYPE_BYTES + index * 8 + 4))
            .any(|of| self.kind(self.unqualified(of)) == PTR)
    }

    /// Returns the type behind typedefs and qualifiers. Follows at most 8 of them, which bounds a circular chain.
    fn unqualified(&self, mut number: u32) -> u32 {
        for _ in 0..8 {
            if !matches!(self.kind(number), TYPEDEF..=RESTRICT)
                || self.word(number, 8) as usize >= self.starts.len()
            {
                break;
            }
            number = self.word(number, 8);
        }
        number
    }

    pub fn begins(&self, number: u32, with: &[u8]) -> bool {
        self.strings.get(self.word(number, 0) as usize..).is_some_and(|rest| rest.starts_with(with))
    }

    /// Compares without a search for the end of the name, because it is called for every type.
    pub fn is_named(&self, number: u32, name: &[u8]) -> bool {
        let rest = self.strings.get(self.word(number, 0) as usize..).unwrap_or_default();
        rest.starts_with(name) && rest.get(name.len()) == Some(&0)
    }

    fn string(&self, at: u32) -> &'a [u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        &rest[..rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len())]
    }
}

/// Makes the functions that have a pointer among their arguments static (BTF_FUNC_STATIC), so that the verifier checks them at each
/// call. Changes nothing in BTF that it cannot decode.
pub(super) fn make_pointer_functions_static(btf: &mut [u8]) {
    let Some(all) = BtfTypes::parse(btf) else { return };
    let numbers = 1..all.starts.len() as u32;
    let of_pointers =
        numbers.filter(|&number| all.kind(number) == FUNC && all.takes_pointer(all.word(number, 8)));
    let starts: Vec<usize> = of_pointers.map(|number| all.starts[number as usize] as usize).collect();
    let (Some(header), Some(types)) = (word(btf, 4), word(btf, 8)) else { return };
    for start in starts {
        // The linkage is the lower half of a function's second word; 0 is BTF_FUNC_STATIC.
        let linkage = header as usize + types as usize + start + 4;
        btf[linkage..linkage + 2].fill(0);
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
pub(super) struct BtfSubset<'a> {
    all: &'a BtfTypes<'a>,
    types: Vec<u8>,
    strings: Vec<u8>,
    /// From old to new.
    numbers: HashMap<u32, u32>,
    /// The old numbers in the order of the new ones.
    order: Vec<u32>,
}

impl<'a> BtfSubset<'a> {
    pub fn new(all: &'a BtfTypes<'a>) -> Self {
        Self { all, types: Vec::new(), strings: vec![0], numbers: HashMap::new(), order: Vec::new() }
    }

    /// Returns the new number of a type, and adds the type to those that [`Self::finish`] copies.
    pub fn number(&mut self, old: u32) -> u32 {
        if old == 0 || old as usize >= self.all.starts.len() {
            return 0;
        }
        *self.numbers.entry(old).or_insert_with(|| {
            self.order.push(old);
            self.order.len() as u32
        })
    }

    /// Copies the types, and the types that they contain, and returns them as BTF.
    pub fn finish(mut self) -> Vec<u8> {
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
