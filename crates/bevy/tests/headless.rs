//! The headless example does what its documentation says.

#[path = "../examples/headless/play.rs"]
mod play;

#[test]
fn the_example_plays_to_its_end() {
    let mut lines = Vec::new();
    play::play(&mut |line| lines.push(line)).unwrap();
    let seen = lines.iter().filter(|line| line.starts_with("bob sees a tank at")).count();
    assert_eq!(seen, 4, "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("bob has left"), "{lines:?}");
}
