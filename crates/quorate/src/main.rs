//! quorate
fn main() {}
