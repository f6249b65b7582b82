//! Shells: most write at once or through the C library's stdio; the programs that they run have their own runtimes.

use weir_model::SourceLanguage;

use crate::{ProgramDetection, RuntimeEntry};

pub(crate) static RUNTIME: RuntimeEntry = RuntimeEntry::stdio(
    "shell",
    "shell",
    150,
    ProgramDetection::ProgramNames {
        names: &["sh", "ash", "hush", "dash", "bash", "rbash", "mksh", "ksh", "zsh", "fish", "yash"],
        marks: &["OPTIND", "fish_", "BusyBox", "toybox"],
    },
)
.of_language(SourceLanguage::Shell);
