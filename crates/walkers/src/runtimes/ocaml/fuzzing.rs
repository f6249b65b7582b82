//! The entry point of fuzz/ into the channels of OCaml.

use super::OcamlChannels;
use crate::fuzzing::BASE;

/// Returns a walker whose list begins at the first word.
pub(crate) fn channels() -> OcamlChannels {
    OcamlChannels { list: BASE }
}
