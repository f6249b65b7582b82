//! Writes results as indented JSON.

use serde::Serialize;

/// Returns `value` as indented JSON that ends with a newline. Fails only for a map with keys that are no strings.
pub fn pretty<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn indented_with_one_newline_at_the_end() {
        let text = super::pretty(&[("a", 1)]).unwrap();
        assert!(text.ends_with("]\n") && text.lines().count() > 2, "{text}");
    }
}
