//! Finds the running kernel's BTF: in /sys, in the file that the user names, or in a kernel image with debug information.
//!
//! A file helps where /sys/kernel/btf is hidden, as in some containers. A kernel without BTF of its own cannot check the programs,
//! even if weir reads BTF from a file.

use std::path::{Path, PathBuf};
use std::{fs, io};

use object::{Object, ObjectSection};

use crate::kernel_file::KernelFile;

/// The file with the kernel's BTF.
const PATH: &str = "/sys/kernel/btf/vmlinux";
/// The section of a kernel image with its BTF.
const SECTION: &str = ".BTF";

/// Opens the kernel's BTF. `given`: the file to read, BTF or an ELF file with it; it must be that of the running kernel.
pub(super) fn open(given: Option<&Path>) -> io::Result<KernelFile> {
    let own = KernelFile::open(PATH);
    let Some(given) = given else {
        return own.or_else(|error| from_images(&release()).ok_or_else(|| none(&error)));
    };
    let bytes =
        read(given).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", given.display())))?;
    match own {
        Ok(own) if own[..] != bytes[..] => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: this is not the BTF of the running kernel, which is in {PATH}", given.display()),
        )),
        _ => Ok(KernelFile::Read(bytes)),
    }
}

fn none(error: &io::Error) -> io::Error {
    let text = format!(
        "{PATH}: {error}; no kernel image in /boot, /lib/modules or /usr/lib/debug has BTF: install a kernel with \
         CONFIG_DEBUG_INFO_BTF (Debian's has it, Raspberry Pi OS's does not), or give a copy of {PATH} by --btf if it is only \
         hidden here"
    );
    io::Error::new(error.kind(), text)
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Returns the BTF of the first kernel image that has it.
fn from_images(release: &str) -> Option<KernelFile> {
    images(release).iter().find_map(|path| read(path).ok()).map(KernelFile::Read)
}

/// Returns the paths at which libbpf searches (btf__load_vmlinux_btf).
fn images(release: &str) -> [PathBuf; 7] {
    [
        format!("/boot/vmlinux-{release}"),
        format!("/lib/modules/{release}/vmlinux-{release}"),
        format!("/lib/modules/{release}/build/vmlinux"),
        format!("/usr/lib/modules/{release}/kernel/vmlinux"),
        format!("/usr/lib/debug/boot/vmlinux-{release}"),
        format!("/usr/lib/debug/boot/vmlinux-{release}.debug"),
        format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
    ]
    .map(PathBuf::from)
}

/// Reads BTF from a file that is BTF or an ELF file with it.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(bytes);
    }
    let invalid = |text: &str| io::Error::new(io::ErrorKind::InvalidData, text.to_owned());
    let file = object::File::parse(&*bytes).map_err(|error| invalid(&error.to_string()))?;
    let section = file.section_by_name(SECTION).ok_or_else(|| invalid("it has no section .BTF"))?;
    section.data().map(<[u8]>::to_vec).map_err(|error| invalid(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn btf_is_read_as_it_is_and_from_an_elf_file() {
        let directory = tempfile::tempdir().unwrap();
        let (raw, elf) = (directory.path().join("btf"), directory.path().join("image"));
        fs::write(&raw, b"\x9f\xeb\x01\0").unwrap();
        assert_eq!(read(&raw).unwrap(), b"\x9f\xeb\x01\0");
        let object = include_bytes!(concat!(env!("OUT_DIR"), "/trace.bpf.o"));
        fs::write(&elf, object).unwrap();
        assert!(read(&elf).unwrap().starts_with(b"\x9f\xeb\x01\0"));
        fs::write(&elf, &object[..64]).unwrap();
        assert!(read(&elf).is_err());
    }

    #[test]
    fn another_kernels_btf_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"\x9f\xeb\x01\0").unwrap();
        let opened = open(Some(file.path()));
        assert_eq!(opened.is_err(), Path::new(PATH).exists());
        assert!(
            open(Some(Path::new("/absent/btf")))
                .is_err_and(|error| error.to_string().starts_with("/absent/btf: "))
        );
    }
}
