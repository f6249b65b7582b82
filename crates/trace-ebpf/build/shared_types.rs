//! Generates Rust structs and constants from the BTF of bpf/shared_types.c (kernel documentation: bpf/btf.rst). The generated
//! code asserts each size and offset, so the compiler checks that Rust's layout is that of C.

use std::fmt::Write;

use object::{Object, ObjectSection};

/// The enum whose names and values are a table in Rust.
const CLASSIFIED_CALL: &str = "classified_call";

const HEADER_BYTES: usize = 24;
const TYPE_BYTES: usize = 12;
/// Size of a struct's member, and of `struct btf_array`.
const MEMBER_BYTES: usize = 12;

/// Kinds of types, from linux/btf.h.
const INT: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const VAR: u32 = 14;
const DATASEC: u32 = 15;

/// Returns the Rust source for all structs and enums in the object's .BTF section.
pub fn generate(object: &[u8]) -> String {
    let object = object::File::parse(object).expect("clang writes ELF");
    let section = object.section_by_name(".BTF").expect("clang -g writes .BTF");
    let btf = Btf::parse(section.data().expect("the section has bytes"));
    let mut source = String::from("// Generated from bpf/events.h by build.rs.\n");
    for id in 1..=btf.types.len() {
        match btf.kind(id) {
            ENUM if btf.string(btf.field(id, 0)) == CLASSIFIED_CALL => btf.table(id, &mut source),
            ENUM => btf.constants(id, &mut source),
            STRUCT => btf.structure(id, &mut source),
            _ => {}
        }
    }
    source
}

struct Btf<'a> {
    bytes: &'a [u8],
    strings: usize,
    /// Offset of each type; the first has number 1.
    types: Vec<usize>,
}

/// A member of a struct, in bytes.
struct Member<'a> {
    name: &'a str,
    id: usize,
    offset: usize,
}

impl<'a> Btf<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        let mut btf = Btf { bytes, strings: 0, types: Vec::new() };
        let start = HEADER_BYTES + btf.word(8) as usize;
        let end = start + btf.word(12) as usize;
        btf.strings = HEADER_BYTES + btf.word(16) as usize;
        let mut at = start;
        while at < end {
            btf.types.push(at);
            let count = btf.count(btf.types.len());
            at += TYPE_BYTES
                + match btf.kind(btf.types.len()) {
                    INT | VAR => 4,
                    ARRAY => MEMBER_BYTES,
                    STRUCT | UNION | DATASEC => count * MEMBER_BYTES,
                    ENUM => count * 8,
                    other => panic!("events.h uses a type of BTF kind {other}"),
                };
        }
        btf
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn field(&self, id: usize, at: usize) -> u32 {
        self.word(self.types[id - 1] + at)
    }

    fn string(&self, offset: u32) -> &'a str {
        let rest = &self.bytes[self.strings + offset as usize..];
        let end = rest.iter().position(|&byte| byte == 0).expect("strings end with NUL");
        std::str::from_utf8(&rest[..end]).expect("C names are ASCII")
    }

    fn kind(&self, id: usize) -> u32 {
        self.field(id, 4) >> 24 & 0x1f
    }

    fn count(&self, id: usize) -> usize {
        (self.field(id, 4) & 0xffff) as usize
    }

    /// The name of a struct in Rust: `stream_key` becomes `StreamKey`.
    fn rust_name(&self, id: usize) -> String {
        let words = self.string(self.field(id, 0)).split('_');
        words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
    }

    fn members(&self, id: usize) -> Vec<Member<'a>> {
        let member = |index| {
            let at = TYPE_BYTES + index * MEMBER_BYTES;
            let name = self.string(self.field(id, at));
            let (id, bits) = (self.field(id, at + 4) as usize, self.field(id, at + 8) as usize);
            Member { name, id, offset: bits / 8 }
        };
        (0..self.count(id)).map(member).collect()
    }

    /// The type in Rust and its size in bytes.
    fn rust_type(&self, id: usize) -> (String, usize) {
        let size = self.field(id, 8) as usize;
        match self.kind(id) {
            INT if size == 1 => ("u8".into(), 1),
            INT => {
                let signed = self.field(id, TYPE_BYTES) >> 24 & 1 != 0;
                (format!("{}{}", if signed { 'i' } else { 'u' }, size * 8), size)
            }
            ARRAY => {
                let count = self.field(id, TYPE_BYTES + 8) as usize;
                let (element, bytes) = self.rust_type(self.field(id, TYPE_BYTES) as usize);
                (format!("[{element}; {count}]"), bytes * count)
            }
            STRUCT => (self.rust_name(id), size),
            other => panic!("a struct of events.h has a member of BTF kind {other}"),
        }
    }

    fn structure(&self, id: usize, source: &mut String) {
        let (name, size) = self.rust_type(id);
        let (mut fields, mut checks, mut sum) = (String::new(), format!("size_of::<{name}>() == {size}"), 0);
        for Member { name: field, id, offset } in self.members(id) {
            let (kind, bytes) = self.rust_type(id);
            assert_eq!(offset, sum, "{name}.{field}: events.h must leave no padding");
            sum += bytes;
            write!(fields, " pub {field}: {kind},").expect("a string grows");
            write!(checks, " && std::mem::offset_of!({name}, {field}) == {offset}").expect("a string grows");
        }
        assert_eq!(size, sum, "{name}: events.h must leave no padding");
        source.push_str(&format!(
            "#[derive(Debug, Clone, Copy)] #[repr(C)] pub struct {name} {{{fields} }}\n\
             const _: () = assert!({checks});\n\
             // SAFETY: repr(C), integers and arrays of them, no padding.\n\
             unsafe impl SharedType for {name} {{}}\n"
        ));
    }

    /// Returns the names of an enum with their values.
    fn values(&self, id: usize) -> impl Iterator<Item = (&'a str, i32)> {
        let offsets = (0..self.count(id)).map(|index| TYPE_BYTES + index * 8);
        offsets.map(move |at| (self.string(self.field(id, at)), self.field(id, at + 4).cast_signed()))
    }

    fn constants(&self, id: usize, source: &mut String) {
        for (name, value) in self.values(id) {
            let kind = if value < 0 { "i32" } else { "u32" };
            source.push_str(&format!("pub const {name}: {kind} = {value};\n"));
        }
    }

    fn table(&self, id: usize, source: &mut String) {
        let name = format!("{}s", self.string(self.field(id, 0))).to_uppercase();
        let entries: Vec<_> = self.values(id).map(|(name, value)| format!("({name:?}, {value})")).collect();
        source.push_str(&format!("pub const {name}: &[(&str, u32)] = &[{}];\n", entries.join(", ")));
    }
}
