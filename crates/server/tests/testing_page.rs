//! `docs/testing.md` and `docs/tutorial.md` run: their files are written, their commands run, and the output is compared.
//! `UPDATE=1` writes the output into the pages.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::path::Path;

use support::{Folder, penstock};

/// What the commands of a console block print now.
fn typed(folder: &Folder, block: &str) -> String {
    let mut out = String::new();
    let mut status = 0;
    for command in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
        out.push_str(&format!("$ {command}\n"));
        if command == "echo $?" {
            out.push_str(&format!("{status}\n"));
        } else {
            let words: Vec<&str> = command.split(' ').skip(1).collect();
            let done = penstock(&folder.0, &words);
            status = done.status;
            out.push_str(&done.stdout);
            out.push_str(&done.stderr);
        }
    }
    out
}

/// Writes the files of a page and runs the commands of its console blocks.
fn check_page(name: &str) -> Folder {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let page = std::fs::read_to_string(&file).unwrap();
    let folder = Folder::new(name);
    let mut now = String::new();
    let mut rest = page.as_str();
    while let Some(start) = rest.find("```") {
        let (before, block) = rest.split_at(start + 3);
        let (info, block) = block.split_once('\n').unwrap();
        let (text, after) = block.split_once("```\n").unwrap();
        now.push_str(before);
        now.push_str(info);
        now.push('\n');
        match info.split_once(' ') {
            Some((_, file)) => {
                folder.write(file, text);
                now.push_str(text);
            }
            None if info == "console" => now.push_str(&typed(&folder, text)),
            None => now.push_str(text),
        }
        now.push_str("```\n");
        rest = after;
    }
    now.push_str(rest);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &now).unwrap();
    }
    assert_eq!(page, now, "UPDATE=1 rewrites the page");
    folder
}

#[test]
fn the_testing_page_is_current() {
    let folder = check_page("testing.md");
    let report = std::fs::read_to_string(folder.0.join("report.xml")).unwrap();
    assert!(report.contains("<failure message=\"all should pass\">$ctx:grade"), "{report}");
}

#[test]
fn the_tutorial_is_current() {
    let folder = check_page("tutorial.md");
    for arguments in [
        vec!["check", "orders"],
        vec!["check", "pets/pets.yaml", "--config", "pets/penstock.toml"],
        vec!["test", "orders/tests/ShopSuite.xml", "--artifacts", "orders"],
    ] {
        let done = penstock(&folder.0, &arguments);
        assert_eq!(done.status, 0, "{arguments:?}: {}{}", done.stdout, done.stderr);
    }
}

#[test]
fn the_example_suite_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let done = penstock(&root, &["test", "examples/test"]);
    assert_eq!(done.status, 0, "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("4 of 4 cases passed") && !done.stdout.contains("warning"), "{}", done.stdout);
}

#[test]
fn statuses_of_a_suite_that_cannot_run() {
    let folder = Folder::new("test-status");
    folder.write("no.xml", "<unit-tests/>");
    folder.write("broken.xml", "<unit-test>");
    for (arguments, status, said) in [
        (vec!["test"], 2, "required"),
        (vec!["test", "nowhere.xml"], 3, "`nowhere.xml` does not exist"),
        (vec!["test", "no.xml"], 1, "no.xml:1:1: <unit-tests> is not a unit-test suite"),
        (vec!["test", "broken.xml"], 1, "not well-formed XML"),
        (vec!["test", "."], 1, "broken.xml"),
    ] {
        let done = penstock(&folder.0, &arguments);
        let all = format!("{}{}", done.stdout, done.stderr);
        assert!(done.status == status && all.contains(said), "{arguments:?}: {} {all}", done.status);
    }
}
