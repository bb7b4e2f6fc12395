//! Documentation pages as tests.
//!
//! A page is Markdown. Fenced blocks with these words run; everything else is for the reader:
//!
//! | block | what it is |
//! |---|---|
//! | `xml mediators` | mediators, run as the in sequence of an API at `/page` |
//! | `xml configuration` | whole artifacts, beside the mediators or alone |
//! | `http request` | a request: `METHOD PATH`, headers, an empty line, the body |
//! | `http backend answers` | what the backend answers next: a status, headers, an empty line, the body |
//! | `http backend receives` | what the backend got: `METHOD URL`, headers, body |
//! | `http response` | what the client got: a status, headers, body |
//! | `text log` | the lines the flow logged |
//! | `text diagnostics` | what the compiler said |
//!
//! `$SYSTEM:page.folder` in a configuration is a folder of the section, which outcomes show as `FOLDER`.
//!
//! Configurations hold from their block to the next heading. Blocks that show an outcome are
//! computed anew and compared: of headers those that stand there, and the Content-Type. Identifiers
//! that differ from run to run read `…`.

mod flow;
mod parse;

pub use flow::{Flow, Outcome, Shown};
use parse::{Block, Kind};

/// Runs a page and returns it with every outcome as it is now. The page passes when nothing changed.
pub fn run(page: &str) -> Result<String, String> {
    let mut blocks = parse::blocks(page);
    let mut start = 0;
    while start < blocks.len() {
        let section = blocks[start].section;
        let end = blocks[start..]
            .iter()
            .position(|block| block.section != section)
            .map_or(blocks.len(), |length| start + length);
        run_section(&mut blocks[start..end])?;
        start = end;
    }
    Ok(parse::rewritten(page, &blocks))
}

/// How many requests a page makes.
pub fn requests(page: &str) -> usize {
    parse::blocks(page).iter().filter(|block| block.kind == Kind::Request).count()
}

fn run_section(blocks: &mut [Block]) -> Result<(), String> {
    let mut flow = Flow::new(blocks);
    if let Some(block) = blocks.iter_mut().find(|block| block.kind == Kind::Diagnostics) {
        block.text = flow.diagnostics();
    } else if flow.has_errors() && blocks.iter().any(|block| block.kind != Kind::Other) {
        return Err(format!("a configuration of this page has errors:\n{}", flow.diagnostics()));
    }
    let starts: Vec<usize> = (0..blocks.len()).filter(|index| blocks[*index].kind == Kind::Request).collect();
    for (position, start) in starts.iter().enumerate() {
        let end = starts.get(position + 1).copied().unwrap_or(blocks.len());
        let (request, rest) = blocks[*start..end].split_first_mut().ok_or("a request is there")?;
        let answers =
            rest.iter().filter(|block| block.kind == Kind::BackendAnswers).map(|block| block.text.clone()).collect();
        let outcome = flow.ask(&request.text, answers).map_err(|error| format!("line {}: {error}", request.line))?;
        show(rest, &outcome)?;
    }
    Ok(())
}

/// Writes an outcome into the blocks that show it.
fn show(blocks: &mut [Block], outcome: &Outcome) -> Result<(), String> {
    let mut received = outcome.received.iter();
    for block in blocks {
        match block.kind {
            Kind::Response => block.text = outcome.response.shown(&block.text),
            Kind::BackendReceives => {
                let got =
                    received.next().ok_or_else(|| format!("line {}: the backend got no such request", block.line))?;
                block.text = got.shown(&block.text);
            }
            Kind::Log => block.text = outcome.log.join("\n"),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn outcomes_are_filled_in() {
        let page = "# x\n\n## a\n\n```xml mediators\n<respond/>\n```\n\n```http request\nPOST /page\nContent-Type: text/plain\n\nhello\n```\n\n\
                    ```http response\n```\n";
        let run = super::run(page).unwrap();
        assert!(run.ends_with("```http response\n200\nContent-Type: text/plain\n\nhello\n```\n"), "{run}");
        assert_eq!(super::run(&run).unwrap(), run);
    }
}
