//! R: writes through the C library's stdio.

use weir_model::SourceLanguage;

use crate::{ProgramDetection, RuntimeEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::stdio(
    "r",
    "R",
    130,
    ProgramDetection::ProgramNames { names: &["R", "Rscript"], marks: &["RHOME", "R_HOME", "libR.so"] },
)
.of_language(SourceLanguage::Other);
