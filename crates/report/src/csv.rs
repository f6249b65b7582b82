//! CSV by RFC 4180: a header line, then one line for each record.

/// Returns `records` as CSV under the header `head`.
pub fn text(head: &[&str], records: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    let mut write = |record: Vec<String>| {
        writer.write_record(record).expect("a flexible writer into memory does not fail");
    };
    write(head.iter().map(|name| name.to_string()).collect());
    records.into_iter().for_each(write);
    let bytes = writer.into_inner().expect("flushing into memory does not fail");
    String::from_utf8(bytes).expect("made of strings")
}

#[cfg(test)]
mod tests {
    #[test]
    fn cells_are_quoted_where_necessary() {
        let text = super::text(&["a", "b"], [vec!["x,y".into(), "say \"no\"\nnow".into()]]);
        assert_eq!(text, "a,b\n\"x,y\",\"say \"\"no\"\"\nnow\"\n");
    }
}
