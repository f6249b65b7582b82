//! gawk: writes through the C library's stdio.

use weir_model::SourceLanguage;

use crate::{ProgramDetection, RuntimeEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::stdio(
    "gawk",
    "gawk",
    90,
    ProgramDetection::ProgramNames { names: &["gawk"], marks: &["AWKPATH"] },
)
.of_language(SourceLanguage::Awk);
