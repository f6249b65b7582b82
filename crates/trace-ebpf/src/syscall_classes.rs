//! Maps each system call number to the class by which the BPF program handles the call (`enum syscall_class`).

use weir_model::trace::Op;

use super::shared_types::*;

const NUMBERS: usize = SYSCALL_NUMBERS as usize;

/// Returns the number of a system call by its name; None if this architecture has no such call.
fn number(name: &str) -> Option<usize> {
    let number = match name {
        // Not an operation of a recording: the BPF program itself needs the call.
        "mprotect" => Some(libc::SYS_mprotect),
        _ => Op::ALL.iter().find(|op| op.name() == name)?.number(),
    };
    usize::try_from(number?).ok()
}

/// Returns the class of each number, 0 for system calls that are ignored.
pub fn table() -> [u8; NUMBERS] {
    let mut table = [0; NUMBERS];
    for (name, class) in CLASSIFIED_CALLS {
        let name = name.strip_prefix("CALL_").unwrap_or(name);
        if let Some(entry) = number(name).and_then(|number| table.get_mut(number)) {
            *entry = *class as u8;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_that_this_machine_has_is_classed_but_exec() {
        let table = table();
        for &op in Op::ALL {
            let Some(number) = op.number() else { continue };
            let classed = table[number as usize] != 0;
            assert_eq!(classed, !matches!(op, Op::Execve | Op::Execveat), "{}", op.name());
        }
    }

    #[test]
    fn every_name_in_the_header_is_a_traced_call() {
        for (name, _) in CLASSIFIED_CALLS {
            let name = name.strip_prefix("CALL_").expect("the prefix of the enum");
            assert!(name == "mprotect" || Op::ALL.iter().any(|op| op.name() == name), "{name}");
        }
    }
}
