//! What shells and `man` are given.

use crate::support::Machine;

/// The commands that `parlor help` lists.
fn commands(machine: &Machine) -> Vec<String> {
    let help = String::from_utf8(machine.run(&["help"]).stdout).expect("help is text");
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn each_shell_completes_each_command() {
    let machine = Machine::new();
    let commands = commands(&machine);
    assert!(commands.iter().any(|name| name == "play") && commands.len() > 10, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = machine.run(&["completions", shell]);
        let script = String::from_utf8(output.stdout).expect("a script is text");
        assert!(output.status.success() && script.contains("spectator-delay"), "{shell}: {script}");
        for name in &commands {
            assert!(script.contains(name.as_str()), "{shell} does not know {name}");
        }
    }
    assert!(!machine.run(&["completions", "tcsh"]).status.success());
}

#[test]
fn each_command_has_a_page() {
    let machine = Machine::new();
    let folder = machine.path("man/man1");
    let made = machine.run(&["man", folder.to_str().expect("a plain path")]);
    assert!(made.status.success(), "{made:?}");
    for name in commands(&machine) {
        let page = folder.join(format!("parlor-{name}.1"));
        let page =
            std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        assert!(page.contains(".TH") && page.contains("SYNOPSIS"), "{name}: {page}");
    }
    let main = std::fs::read_to_string(folder.join("parlor.1")).expect("the command itself has a page");
    assert!(main.contains("parlor\\-play"), "{main}");
    let taken = machine.path("file");
    std::fs::write(&taken, "").expect("a folder of its own");
    let failed = machine.run(&["man", taken.to_str().expect("a plain path")]);
    assert!(
        !failed.status.success() && String::from_utf8_lossy(&failed.stderr).contains("could not be made")
    );
}
