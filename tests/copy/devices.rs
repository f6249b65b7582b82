//! Block devices as targets: they are read back, and their end is named.

use std::path::Path;

use serde_json::Value;

use crate::common::{WEIR, disk_dir, has, is_root, run, skip, text};
use crate::{failed_copy, shell};

/// A loop device of 4 MiB on the file `image`. Detached at the end of the test.
struct LoopDevice(String);

impl LoopDevice {
    fn new(dir: &Path) -> Option<Self> {
        if !is_root() || !has("losetup") {
            return None;
        }
        let script = "truncate -s 4M image; losetup -f --show image || true";
        Some(Self(shell(dir, script).trim().into())).filter(|device| !device.0.is_empty())
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _detached = std::process::Command::new("losetup").args(["-d", &self.0]).status();
    }
}

#[test]
fn a_block_device_is_read_back() {
    const NAME: &str = "a_block_device_is_read_back";
    let dir = disk_dir();
    let Some(device) = LoopDevice::new(dir.path()) else { return skip(NAME, "needs root and a loop device") };
    // The last block of the device is not full, and the device has bytes behind the copy; then exactly the device's size.
    for bytes in [3_000_001, 4 << 20] {
        shell(dir.path(), &format!("head -c {bytes} /dev/urandom > s"));
        let output = run(
            dir.path(),
            &["copy", "--device", "--verify", "--sync", "full", "--summary", "--json", "-", "s", &device.0],
        );
        let error = text(&output.stderr);
        assert!(output.status.success(), "{error}");
        let sum = shell(dir.path(), "sha256sum < s | cut -d' ' -f1");
        assert!(error.contains("reread from the device, equal") && error.contains(sum.trim()), "{error}");
        assert!(
            error.contains("power cut now costs nothing"),
            "the node is on devtmpfs, not the bytes: {error}"
        );
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(document["verified_bytes"], bytes, "{document}");
    }
}

/// The image is changed after the sync, before the copy is read back.
#[test]
fn what_a_device_did_not_keep_is_found() {
    const NAME: &str = "what_a_device_did_not_keep_is_found";
    let dir = disk_dir();
    let Some(device) = LoopDevice::new(dir.path()).filter(|_| has("strace")) else {
        return skip(NAME, "needs root, a loop device and strace");
    };
    let script = format!(
        "head -c 4000000 /dev/zero | tr '\\0' a > s; \
         strace -f -qq -o trace -e trace=fdatasync -e inject=fdatasync:delay_exit=3000000 \
             {WEIR} copy --device --verify s {} 2> error & \
         for i in $(seq 100); do cmp -s -n 4000000 s image && break; sleep 0.02; done; \
         printf b | dd of=image bs=1 seek=2097153 conv=notrunc status=none; wait $! || echo $?; cat error",
        device.0
    );
    let seen = shell(dir.path(), &script);
    assert!(seen.starts_with("1\n") && seen.contains("differs from 's' at byte 2097153"), "{seen}");
}

#[test]
fn a_target_that_cannot_be_read_back_is_refused() {
    let dir = disk_dir();
    shell(dir.path(), "echo text > s; mkfifo fifo; exec 9<>fifo");
    for target in ["/dev/null", "/dev/full"] {
        let error = failed_copy(dir.path(), &["--verify", "s", target]);
        assert!(error.contains("--verify needs a file or a block device"), "{error}");
    }
    let script = format!("exec 9<>fifo; timeout 20 {WEIR} copy --verify s fifo 2>&1 || echo $?");
    let seen = shell(dir.path(), &script);
    assert!(seen.contains("--verify needs a file") && seen.ends_with("\n1\n"), "{seen}");
}

#[test]
fn a_device_that_is_too_small_is_named() {
    const NAME: &str = "a_device_that_is_too_small_is_named";
    let dir = disk_dir();
    let Some(device) = LoopDevice::new(dir.path()) else { return skip(NAME, "needs root and a loop device") };
    shell(dir.path(), "head -c 5000000 /dev/zero > s");
    let of_stream = shell(dir.path(), &format!("cat s | {WEIR} copy --device - {} 2>&1 || true", device.0));
    for error in [failed_copy(dir.path(), &["--device", "s", &device.0]), of_stream] {
        assert!(error.contains("the device is smaller than the source"), "{error}");
        assert!(
            error.contains("first 4194304 bytes are overwritten") && !error.contains("free space"),
            "{error}"
        );
    }
}
