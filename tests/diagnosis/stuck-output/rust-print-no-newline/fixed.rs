use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

fn main() {
    print!("working ");
    for step in 0..8 {
        print!("{step}.");
        std::io::stdout().flush().unwrap();
        sleep(Duration::from_millis(200));
    }
    println!(" done");
    std::io::stdout().flush().unwrap();
}
