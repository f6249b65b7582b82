//! Chooses the image to which the calls of a gap are attributed, if the process executed another one within the gap.

use weir_model::trace::Image;

/// An earlier image gets the calls only if it ran at least this many times as long as the image at the end of the gap: the kernel's
/// totals do not show which of the two made the calls.
const MIN_RATIO: f64 = 10.0;
/// The least time in seconds that such an image ran: a child that only prepares its execve(2) runs for some milliseconds, and makes
/// few calls.
const MIN_S: f64 = 0.02;

/// Returns the index of the image that probably made most of the calls in a gap: the one at its end, unless an earlier one ran for
/// much longer. Times are in seconds since the start of the recording.
pub(super) fn image_of_gap(images: &[Image], end_image: u32, from_s: f64, to_s: f64) -> u32 {
    let ran_s = |image: usize| {
        let end_s = images.get(image + 1).map_or(to_s, |next| next.started_s.min(to_s));
        images.get(image).map_or(0.0, |one| end_s - one.started_s.max(from_s))
    };
    let end_image = end_image as usize;
    let longest = (0..end_image).max_by(|&a, &b| ran_s(a).total_cmp(&ran_s(b)));
    let earlier = longest.filter(|&image| ran_s(image) >= (ran_s(end_image) * MIN_RATIO).max(MIN_S));
    earlier.unwrap_or(end_image) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_a_gap_belong_to_the_program_that_ran_for_most_of_it() {
        let images = [0.0, 2.0].map(|started_s| Image { started_s, ..Image::default() });
        assert_eq!(image_of_gap(&images, 1, 1.0, 2.01), 0);
        assert_eq!(image_of_gap(&images, 1, 1.99, 2.01), 1, "a child that prepares its execve(2)");
        assert_eq!(image_of_gap(&images, 1, 1.0, 3.0), 1, "both ran for long");
        assert_eq!(image_of_gap(&images, 1, 2.5, 3.0), 1);
        assert_eq!(image_of_gap(&images[..1], 0, 0.5, 3.0), 0);
    }
}
