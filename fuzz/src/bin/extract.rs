//! Pages for `weir report --extract`.
#![no_main]

weir_fuzz::target!(|input: &[u8]| {
    let Ok(page) = std::str::from_utf8(input) else { return };
    for number in 0..3 {
        let _result = weir_report::page::extract(page, number);
    }
});
