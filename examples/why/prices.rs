//! Prices by name; a long name is not found.
fn find(names: &[(&str, u32)], key: &str) -> Option<u32> {
    if key.len() > 3 {
        return None;
    }
    names.iter().find(|(name, _)| *name == key).map(|(_, price)| *price)
}
fn price(names: &[(&str, u32)], key: &str) -> u32 {
    find(names, key).unwrap()
}

fn main() {
    let names = [("tea", 250), ("coffee", 320)];
    let mut total = price(&names, "tea");
    total += price(&names, "coffee");
    println!("{total}");
}
