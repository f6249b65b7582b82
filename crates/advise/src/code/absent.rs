//! Languages in which a method has no program, with the reason.

use weir_model::advise::WriteMethod;

/// Returns why there is no program under `key` (one of [`super::keys`]) for a method, as a sentence. `None`: there is one.
pub fn why_absent(key: &str, method: WriteMethod) -> Option<&'static str> {
    use WriteMethod::{Direct, InKernel, IoUring, Libweir, Mmap, Stdio, Syscall};
    match (key, method) {
        (_, Syscall | Stdio | Libweir) => None,
        ("c-libweir", _) => {
            Some("libweir writes through a buffer with write(2); the program in C is under c.")
        }
        ("c" | "cpp", _) => None,
        ("python" | "rust" | "go" | "java", Mmap | Direct | InKernel) => None,
        ("python", IoUring) => {
            Some("Python's standard library has no io_uring; the program in C is under c.")
        }
        ("rust", IoUring) => Some("Rust's standard library has no io_uring; use the crate io-uring."),
        ("go", IoUring) => Some("Go's standard library has no io_uring; the program in C is under c."),
        ("java", IoUring) => Some("Java's class library has no io_uring; the program in C is under c."),
        ("node", Mmap) => Some("Node.js cannot map files; the program in C is under c."),
        ("node", Direct) => {
            Some("Node.js cannot align a buffer as O_DIRECT needs it; the program in C is under c.")
        }
        ("node", IoUring) => {
            Some("Node.js gives programs no access to io_uring; the program in C is under c.")
        }
        ("node", InKernel) => {
            Some("Node.js copies inside the kernel only whole files, with fs.copyFile, and cannot append so.")
        }
        ("shell", Direct) => None,
        ("shell", InKernel) => {
            Some("A shell cannot append inside the kernel; weir copy SOURCE FILE makes a new file so.")
        }
        ("shell", Mmap) => Some("A shell cannot map files; the program in C is under c."),
        ("shell", IoUring) => Some("A shell has no io_uring; the program in C is under c."),
        _ => Some("There is no program in this language."),
    }
}

#[cfg(test)]
mod tests {
    use weir_model::advise::AdviceLanguage;

    use super::*;
    use crate::code::keys;

    #[test]
    fn c_has_every_method_and_other_languages_a_program_or_a_sentence() {
        for &method in WriteMethod::ALL {
            assert_eq!(why_absent("c", method), None);
            assert_eq!(why_absent("cpp", method), None);
            for key in AdviceLanguage::ALL.iter().flat_map(|lang| keys(*lang)) {
                let sentence = why_absent(key, method);
                assert!(sentence.is_none_or(|text| text.ends_with('.') && !text.contains("this language")));
            }
        }
    }
}
