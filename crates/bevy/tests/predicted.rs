//! The predicted example does what its documentation says.

#[path = "../examples/predicted/play.rs"]
mod play;

#[test]
fn the_skater_is_predicted_corrected_and_agreed_on() {
    let mut lines = Vec::new();
    play::play(&mut |line| lines.push(line)).unwrap();
    let number_before = |word: &str| -> u32 {
        let line = lines.iter().find(|line| line.contains(word)).expect("it is told");
        let before = line.split(word).next().unwrap();
        before.split(' ').next_back().unwrap().parse().unwrap()
    };
    assert!(number_before(" confirmed") > 100, "{lines:?}");
    assert!(number_before(" corrections") >= 1, "nobody can know the wind: {lines:?}");
    assert!(number_before(" steps were run again") >= 1, "{lines:?}");
    assert!(lines.last().unwrap().starts_with("ada and bob agree"), "{lines:?}");
}
