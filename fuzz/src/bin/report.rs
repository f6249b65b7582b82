//! Documents for `weir report`, and the page of each.
#![no_main]

use weir_report::page;

weir_fuzz::target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(document) = page::parse(text) {
        let (title, body) = page::body(std::slice::from_ref(&document));
        let source = page::PageSource { name: "input.json", text };
        let html = page::page(&title, &body, &[source]);
        assert_eq!(page::extract(&html, 0).map(|(_, text)| text).as_deref(), Ok(text));
    }
});
