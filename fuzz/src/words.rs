//! A mutation of crafted memory: pointers, small numbers and magic numbers at aligned addresses. Bytes at random positions
//! seldom make a pointer.

use libfuzzer_sys::fuzzer_mutate;
use weir_walkers::fuzzing::{BASE, HEADER_BYTES};

const MAGIC: [u64; 8] = [
    0xfbad_0800,
    0xfbad_2288,
    0x6d72_7473_7269_6577,
    0x6461_6568_7269_6577,
    0x7970_6775_6265_6478,
    224,
    0x0b,
    1024,
];

/// Changes one to four words, or lets libFuzzer change the bytes. Returns the new size.
pub fn mutate_words(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    let mut random = Random(u64::from(seed) + 1);
    let words = size.saturating_sub(HEADER_BYTES) / 8;
    if words == 0 || random.below(3) == 0 {
        let size = fuzzer_mutate(data, size, most);
        limit_copies(data, random.below(64) == 0);
        return size;
    }
    limit_copies(data, random.below(64) == 0);
    for _ in 0..=random.below(4) {
        let any = random.below(words as u64) as usize;
        let word = HEADER_BYTES + 8 * any;
        let value = match random.below(8) {
            0..=2 => BASE + 8 * random.below(words as u64),
            3 => random.below(64),
            4 => MAGIC[random.below(MAGIC.len() as u64) as usize],
            5 => random.next() >> random.below(64),
            6 => u64::MAX - random.below(16),
            _ => {
                let from = HEADER_BYTES + 8 * random.below(words as u64) as usize;
                u64::from_le_bytes(data[from..from + 8].try_into().unwrap_or_default())
            }
        };
        data[word..word + 8].copy_from_slice(&value.to_le_bytes());
    }
    size
}

/// Makes the input one that is repeated, which takes a hundred times as long, or one that is not.
fn limit_copies(data: &mut [u8], many: bool) {
    if let Some(first) = data.first_mut() {
        *first = if many { 255 } else { *first & 127 };
    }
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
