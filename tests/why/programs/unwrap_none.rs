// An option that is None. build: rustc -g; class: rust-panic
use std::collections::HashMap;
fn find(prices: &HashMap<String, u32>, name: &str) -> Option<u32> {
    if name.len() > 3 { // ROOT
        return None;
    }
    prices.get(name).copied()
}
fn price(prices: &HashMap<String, u32>, name: &str) -> u32 {
    find(prices, name).unwrap()
}
fn main() {
    let mut prices = HashMap::new();
    prices.insert("tea".to_string(), 3);
    prices.insert("coffee".to_string(), 4);
    println!("{}", price(&prices, "tea"));
    println!("{}", price(&prices, "coffee"));
}
