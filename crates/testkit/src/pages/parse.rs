//! A page as blocks, and back.

/// What a fenced block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Mediators.
    Mediators,
    /// Artifacts.
    Configuration,
    /// A WebAssembly module that stands for a class.
    Module,
    /// A request.
    Request,
    /// What the backend answers.
    BackendAnswers,
    /// What the backend got.
    BackendReceives,
    /// What the client got.
    Response,
    /// Log lines.
    Log,
    /// What the compiler said.
    Diagnostics,
    /// For the reader only.
    Other,
}

impl Kind {
    fn of(info: &str) -> Kind {
        match info.trim() {
            info if info.starts_with("wat ") => Kind::Module,
            "xml mediators" => Kind::Mediators,
            "xml configuration" => Kind::Configuration,
            "http request" => Kind::Request,
            "http backend answers" => Kind::BackendAnswers,
            "http backend receives" => Kind::BackendReceives,
            "http response" => Kind::Response,
            "text log" => Kind::Log,
            "text diagnostics" => Kind::Diagnostics,
            _ => Kind::Other,
        }
    }
}

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    /// What it is.
    pub kind: Kind,
    /// What stands after the opening fence.
    pub info: String,
    /// What stands in it, without the last line break.
    pub text: String,
    /// The line of its opening fence, 1-based.
    pub line: usize,
    /// Which heading it stands under.
    pub section: usize,
    /// Where its text lies, in lines.
    lines: std::ops::Range<usize>,
}

/// The blocks of a page in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut section = 0;
    let mut open: Option<(&str, usize)> = None;
    let lines: Vec<&str> = page.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        match (open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info, index)),
            (Some((info, start)), Some("")) => {
                let text = lines[start + 1..index].join("\n");
                let (kind, info) = (Kind::of(info), info.trim().to_owned());
                blocks.push(Block { kind, info, text, line: start + 1, section, lines: start + 1..index });
                open = None;
            }
            (None, None) if line.starts_with('#') => section += 1,
            _ => {}
        }
    }
    blocks
}

/// The page with the texts its blocks have now.
pub fn rewritten(page: &str, blocks: &[Block]) -> String {
    let lines: Vec<&str> = page.lines().collect();
    let mut out = String::with_capacity(page.len());
    let mut next = 0;
    let mut push = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    for block in blocks {
        lines[next..block.lines.start].iter().for_each(|line| push(line));
        if !block.text.is_empty() {
            push(&block.text);
        }
        next = block.lines.end;
    }
    lines[next..].iter().for_each(|line| push(line));
    out
}
