//! `docs/transforming.md` runs: its files are written, its commands are carried out, their results are compared.

#![expect(clippy::unwrap_used, reason = "a panic here is the report")]

use std::path::{Path, PathBuf};

use penstock_xslt::command::{parse_arguments, run};

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_page_shows_what_happens() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/transforming.md");
    let page = std::fs::read_to_string(page).unwrap();
    let folder = Folder(std::env::temp_dir().join(format!("penstock-page-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).unwrap();
    let mut results = 0;
    let mut rest = page.as_str();
    while let Some((_, block)) = rest.split_once("```") {
        let (info, block) = block.split_once('\n').unwrap();
        let (text, after) = block.split_once("```\n").unwrap();
        rest = after;
        match info.split_once(' ') {
            Some(("xml", name)) => std::fs::write(folder.0.join(name), text).unwrap(),
            Some(("result", name)) => {
                let written = std::fs::read_to_string(folder.0.join(name)).unwrap();
                assert_eq!(written, text.trim_end_matches('\n'), "{name}");
                results += 1;
            }
            _ => type_commands(&folder.0, text),
        }
    }
    assert!(results > 0, "the page has results");
}

/// Carries out the commands of a block; what stands after a command is what it says.
fn type_commands(folder: &Path, block: &str) {
    let mut lines = block.lines().peekable();
    while let Some(line) = lines.next() {
        let words = line.strip_prefix("$ penstock xslt ").unwrap().split(' ').map(str::to_owned);
        let mut arguments = parse_arguments(words).unwrap();
        let files = [Some(&mut arguments.stylesheet), arguments.source.as_mut(), arguments.output.as_mut()];
        for file in files.into_iter().flatten() {
            *file = folder.join(&*file);
        }
        let mut errors = Vec::new();
        run(&arguments, &mut errors);
        let mut expected = String::new();
        while let Some(said) = lines.next_if(|line| !line.starts_with("$ ")) {
            expected.push_str(said);
            expected.push('\n');
        }
        let said = String::from_utf8(errors).unwrap();
        assert_eq!(said.replace(&format!("{}/", folder.display()), ""), expected, "{line}");
    }
}
