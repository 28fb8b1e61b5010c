// main returns an error. build: rustc -g; class: exit-code
fn port(text: &str) -> Result<u16, std::num::ParseIntError> {
    let number = text.trim_end_matches('8'); // ROOT
    number.parse::<u16>()
}
fn main() -> Result<(), std::num::ParseIntError> {
    println!("{}", port("80")?);
    println!("{}", port("8")?);
    Ok(())
}
