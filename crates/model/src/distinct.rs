//! The different words of a list.

/// Returns each word once, in the order of its first occurrence.
pub fn distinct<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for word in words {
        if !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_take_turns_are_there_once() {
        assert_eq!(distinct(["b", "a", "b", "a"]), ["b", "a"]);
    }
}
