//! The header is what cbindgen makes of the crate.
//!
//! `PARLOR_WRITE_HEADER=1 cargo test -p parlor-capi --test header` makes it anew.

use std::path::Path;

#[test]
fn the_header_is_what_cbindgen_makes_of_the_crate() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).expect("it is in the repository");
    let config = cbindgen::Config { header: Some(read("include/preamble.txt")), ..toml_config(folder) };
    let bindings = cbindgen::Builder::new().with_crate(folder).with_config(config).generate();
    let mut made = Vec::new();
    bindings.expect("cbindgen reads the crate").write(&mut made);
    let made = String::from_utf8(made).expect("it is text");
    if std::env::var_os("PARLOR_WRITE_HEADER").is_some() {
        std::fs::write(folder.join("include/parlor.h"), &made).expect("the folder can be written");
    }
    let stands = read("include/parlor.h");
    let differs = made.lines().zip(stands.lines()).position(|(made, stands)| made != stands);
    assert!(
        made == stands,
        "include/parlor.h differs from what cbindgen makes, from line {} on: \
         run `PARLOR_WRITE_HEADER=1 cargo test -p parlor-capi --test header`",
        differs.unwrap_or_else(|| made.lines().count().min(stands.lines().count())) + 1
    );
}

fn toml_config(folder: &Path) -> cbindgen::Config {
    cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("the configuration is right")
}
