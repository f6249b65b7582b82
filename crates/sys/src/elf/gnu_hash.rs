//! The hash table of a dynamic image's exported symbols (DT_GNU_HASH).

use object::read::elf::Sym;
use object::{LittleEndian, ReadRef, U32, U64, elf};

use super::{Data, SYMBOL_BYTES, Symbol, is_defined};

/// The most symbols that are compared in one bucket. Linkers make about as many buckets as symbols, so a longer chain is
/// broken.
const MAX_CHAIN: u64 = 256;

/// The exported symbols of a dynamic image. All fields but `header` and `count` are offsets in the file.
///
/// The hash table consists of a header, a Bloom filter, the buckets, and the hashes of all symbols from `symbol_base` on,
/// with the lowest bit set at the end of a bucket.
pub(super) struct ExportedSymbols<'data> {
    pub data: Data<'data>,
    pub hashes: u64,
    pub header: &'data elf::GnuHashHeader<LittleEndian>,
    pub symbols: u64,
    pub count: u64,
    pub strings: u64,
}

impl<'data> ExportedSymbols<'data> {
    /// Looks up a symbol. Returns `Some(None)` if the image does not export it, and None if the table is broken.
    pub fn find(&self, name: &[u8]) -> Option<Option<&'data Symbol>> {
        let hash = elf::gnu_hash(name);
        let words = u64::from(self.header.bloom_count.get(LittleEndian));
        let buckets = u64::from(self.header.bucket_count.get(LittleEndian));
        let filter = self.hashes + size_of_val(self.header) as u64;
        let word: &U64<LittleEndian> = self.read(filter + u64::from(hash / 64).checked_rem(words)? * 8)?;
        let shifted = hash.checked_shr(self.header.bloom_shift.get(LittleEndian))?;
        let bits = 1 << (hash % 64) | 1 << (shifted % 64);
        if word.get(LittleEndian) & bits != bits {
            return Some(None);
        }
        let first = filter + words * 8;
        let bucket: &U32<LittleEndian> = self.read(first + u64::from(hash).checked_rem(buckets)? * 4)?;
        let base = u64::from(self.header.symbol_base.get(LittleEndian));
        let begin = u64::from(bucket.get(LittleEndian));
        if begin < base || begin >= self.count {
            return Some(None); // 0: the bucket is empty
        }
        for at in begin..begin + MAX_CHAIN {
            let link: &U32<LittleEndian> = self.read(first + (buckets + at - base) * 4)?;
            let link = link.get(LittleEndian);
            if link | 1 == hash | 1 {
                let symbol: &Symbol = self.read(self.symbols.checked_add(at * SYMBOL_BYTES)?)?;
                if is_defined(symbol) && self.is_named(symbol, name) {
                    return Some(Some(symbol));
                }
            }
            if link & 1 != 0 {
                return Some(None);
            }
        }
        None
    }

    fn read<T: object::Pod>(&self, offset: u64) -> Option<&'data T> {
        self.data.read_at(offset).ok()
    }

    fn is_named(&self, symbol: &Symbol, name: &[u8]) -> bool {
        let at = self.strings.checked_add(symbol.st_name(LittleEndian).into());
        let text = at.and_then(|at| self.data.read_bytes_at(at, name.len() as u64 + 1).ok());
        text.is_some_and(|text| text.strip_prefix(name) == Some(b"\0"))
    }
}
