//! Memory layouts of Ruby by version: `rb_io_t` of ruby/io.h and internal/io.h, and where flags and locks differ.

/// The differences between versions.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RubyLayout {
    /// Bytes before `stdio_file` in rb_io_t: Ruby 3 begins with a pointer to the object.
    pub before: usize,
    /// The largest value of an object's flags. From 3.2 on the upper half is the number of the object's shape, of
    /// which there are at most 2^19 (SHAPE_BUFFER_SIZE).
    pub flags_most: u64,
}

const OF_2_7: RubyLayout = RubyLayout { before: 0, flags_most: u32::MAX as u64 };
const OF_3_0: RubyLayout = RubyLayout { before: 8, ..OF_2_7 };
const OF_3_2: RubyLayout = RubyLayout { flags_most: (1 << 51) - 1, ..OF_3_0 };

/// The versions that have a layout, for a sentence.
pub(super) const KNOWN_VERSIONS: &str = "2.7 to 3.4";

impl RubyLayout {
    /// Returns the layout of a version such as "3.1.2"; None if it is not supported.
    pub fn of(version: &str) -> Option<&'static RubyLayout> {
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
        match (numbers.next()??, numbers.next()??) {
            (2, 7) => Some(&OF_2_7),
            (3, 0 | 1) => Some(&OF_3_0),
            (3, 2..=4) => Some(&OF_3_2),
            _ => None,
        }
    }

    /// Returns whether rb_io_t begins with a pointer to its object.
    pub fn has_self(&self) -> bool {
        self.before > 0
    }
}
