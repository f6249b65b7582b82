//! R: writes through the C library's stdio.

use weir_model::SourceLanguage;

use crate::{ProgramDetection, RuntimeEntry};

pub(crate) static RUNTIME: RuntimeEntry =
    RuntimeEntry::stdio("r", "R", 130, ProgramDetection::ProgramNames(&["R", "Rscript"]))
        .of_language(SourceLanguage::Other);
