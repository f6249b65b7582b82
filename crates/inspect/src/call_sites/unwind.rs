//! Unwinds a sampled stack, by the unwind tables of the images or by frame pointers.

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, Module, UnwindRegsNative, Unwinder, UnwinderNative,
};

use crate::call_sites::image::{ImageSection, LoadedImage};
use crate::call_sites::stack_sample::{SampledRegisters, StackSample};

/// Maximum number of frames. A longer stack is a deep recursion or damaged memory.
const MAX_FRAMES: usize = 64;

/// Returns the address of the sampled instruction (a store or a system call), then one call address per caller,
/// innermost first. Each address lies within its instruction.
pub(super) fn unwind(sample: &StackSample, images: &[LoadedImage]) -> Vec<u64> {
    let mut unwinder = UnwinderNative::<Vec<u8>, _>::new();
    images.iter().for_each(|loaded| unwinder.add_module(framehop_module(loaded)));
    let mut cache = CacheNative::<_>::new();
    let mut read_stack = |address: u64| sample.word(address).ok_or(());
    let registers = unwind_registers(&sample.registers);
    let mut frames = unwinder.iter_frames(sample.registers.ip, registers, &mut cache, &mut read_stack);
    let mut found = Vec::new();
    while found.len() < MAX_FRAMES
        && let Ok(Some(frame)) = frames.next()
    {
        let at = match frame {
            FrameAddress::InstructionPointer(at) => store_address(at),
            FrameAddress::ReturnAddress(_) => frame.address_for_lookup(),
        };
        found.push(at);
        if !can_unwind(at, images) {
            break;
        }
    }
    found
}

/// Returns whether the caller of this frame can be found: the function is in the unwind tables, or it is
/// compiled by Go, which keeps frame pointers. Code without a table may use the frame-pointer register for other data.
fn can_unwind(address: u64, images: &[LoadedImage]) -> bool {
    let Some(loaded) = images.iter().find(|loaded| loaded.range.contains(&address)) else { return false };
    loaded.image.go || loaded.image.has_unwind_table(address.wrapping_sub(loaded.bias))
}

/// Returns an address within the storing instruction: on x86-64 the sample's address is that of the next one.
fn store_address(ip: u64) -> u64 {
    if cfg!(target_arch = "x86_64") { ip.saturating_sub(1) } else { ip }
}

#[cfg(target_arch = "x86_64")]
fn unwind_registers(at: &SampledRegisters) -> UnwindRegsNative {
    UnwindRegsNative::new(at.ip, at.sp, at.fp)
}

#[cfg(target_arch = "aarch64")]
fn unwind_registers(at: &SampledRegisters) -> UnwindRegsNative {
    UnwindRegsNative::new(at.link, at.sp, at.fp)
}

fn framehop_module(loaded: &LoadedImage) -> Module<Vec<u8>> {
    let image = &loaded.image;
    let range = |section: &Option<ImageSection>| section.as_ref().map(|one| one.range.clone());
    let bytes = |section: &Option<ImageSection>| section.as_ref().map(|one| one.bytes.clone());
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: Some(image.text.clone()),
        eh_frame_svma: range(&image.eh_frame),
        eh_frame: bytes(&image.eh_frame),
        eh_frame_hdr_svma: range(&image.eh_frame_hdr),
        eh_frame_hdr: bytes(&image.eh_frame_hdr),
        ..Default::default()
    };
    let name = image.path.to_string_lossy().into_owned();
    Module::new(name, loaded.range.clone(), loaded.bias, sections)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::call_sites::code;
    use crate::call_sites::image::ImageCache;

    /// Unwinding random stacks that contain addresses of real code must end.
    #[test]
    fn a_hostile_stack_ends() {
        let own = std::process::id();
        let images = ImageCache::default().loaded(own, &code(own));
        let (start, sp) = (images[0].range.start, 0x7fff_0000_0000);
        let word = |(is_code, number): (bool, u16)| {
            if is_code { start + u64::from(number) } else { sp + u64::from(number) / 16 }
        };
        let words = prop::collection::vec(any::<(bool, u16)>(), 0..512);
        let mut runner = TestRunner::new(ProptestConfig::with_cases(64));
        let ends = runner.run(&(words, any::<u16>(), any::<u16>()), |(words, at, fp)| {
            let stack = words.into_iter().flat_map(|one| word(one).to_le_bytes()).collect();
            let (ip, fp) = (word((true, at)), word((false, fp)));
            let sample = StackSample {
                ns: 0,
                registers: SampledRegisters { argument: 0, ip, sp, fp, link: start },
                stack,
            };
            prop_assert!((1..=MAX_FRAMES).contains(&unwind(&sample, &images).len()));
            Ok(())
        });
        ends.unwrap();
    }
}
