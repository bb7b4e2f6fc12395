//! A template as text, interpolations and tags.

use super::{Place, TemplateError};

/// A piece of a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    /// What stands between `${` and `}`.
    Interpolation(String, Place),
    /// `<#name content>`.
    Open {
        name: String,
        content: String,
        at: Place,
    },
    /// `</#name>`.
    Close {
        name: String,
        at: Place,
    },
    /// `<@name content>`; `self_closing` when it ends with `/>`.
    Call {
        content: String,
        self_closing: bool,
        at: Place,
    },
    /// `</@name>`.
    CallEnd(Place),
    Comment,
}

impl Piece {
    /// Whether a line of its own goes without a trace.
    fn vanishes(&self) -> bool {
        matches!(self, Piece::Open { .. } | Piece::Close { .. } | Piece::Comment)
    }
}

struct Scanner<'t> {
    text: &'t str,
    at: usize,
    pieces: Vec<Piece>,
}

pub(super) fn scan(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut scanner = Scanner { text, at: 0, pieces: Vec::new() };
    scanner.run()?;
    Ok(without_tag_lines(scanner.pieces))
}

impl Scanner<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn place(&self, at: usize) -> Place {
        let before = &self.text[..at];
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        Place { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
    }

    fn run(&mut self) -> Result<(), TemplateError> {
        let mut from = self.at;
        while self.at < self.text.len() {
            let start = self.at;
            let rest = self.rest();
            let found = ["${", "#{", "<#", "</#", "<@", "</@"].iter().any(|open| rest.starts_with(open));
            if !found {
                let next = rest.char_indices().nth(1).map_or(rest.len(), |(next, _)| next);
                self.at += next;
                continue;
            }
            self.text_piece(from, start);
            self.special(start)?;
            from = self.at;
        }
        self.text_piece(from, self.at);
        Ok(())
    }

    fn text_piece(&mut self, from: usize, to: usize) {
        if from < to {
            self.pieces.push(Piece::Text(self.text[from..to].to_owned()));
        }
    }

    fn special(&mut self, start: usize) -> Result<(), TemplateError> {
        let at = self.place(start);
        let rest = self.rest();
        if rest.starts_with("<#--") {
            let Some(end) = rest.find("-->") else { return Err(TemplateError::new(at, "the comment is never closed")) };
            self.at += end + 3;
            self.pieces.push(Piece::Comment);
            return Ok(());
        }
        if rest.starts_with("${") || rest.starts_with("#{") {
            let length = closing(&rest[2..], Until::Brace);
            let Some(length) = length else { return Err(TemplateError::new(at, "the `${` is never closed")) };
            let content = rest[2..2 + length].to_owned();
            self.at += 2 + length + 1;
            self.pieces.push(Piece::Interpolation(content, Place { column: at.column + 2, ..at }));
            return Ok(());
        }
        let (skip, closes) = if rest.starts_with("</") { (3, true) } else { (2, false) };
        let is_call = rest[skip - 1..].starts_with('@');
        let Some(length) = closing(&rest[skip..], Until::Tag) else {
            return Err(TemplateError::new(at, "the tag is never closed"));
        };
        let content = &rest[skip..skip + length];
        let self_closing = content.ends_with('/');
        let content = content.strip_suffix('/').unwrap_or(content);
        let name: String = content.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        let piece = match (is_call, closes) {
            (true, true) => Piece::CallEnd(at),
            (true, false) => Piece::Call { content: content.to_owned(), self_closing, at },
            (false, true) => Piece::Close { name, at },
            (false, false) => {
                let content = content[name.len()..].to_owned();
                let at = Place { column: at.column + 2 + name.chars().count(), ..at };
                Piece::Open { name, content, at }
            }
        };
        self.at += skip + length + 1;
        if let Piece::Open { name, .. } = &piece
            && name == "noparse"
        {
            return self.noparse(at);
        }
        self.pieces.push(piece);
        Ok(())
    }

    fn noparse(&mut self, at: Place) -> Result<(), TemplateError> {
        let Some(end) = self.rest().find("</#noparse>") else {
            return Err(TemplateError::new(at, "<#noparse> is never closed"));
        };
        self.text_piece(self.at, self.at + end);
        self.at += end + "</#noparse>".len();
        Ok(())
    }
}

#[derive(PartialEq)]
enum Until {
    Brace,
    Tag,
}

/// Where the bracket closes that was opened just before; strings and brackets inside do not count.
fn closing(text: &str, until: Until) -> Option<usize> {
    let mut depth = 0usize;
    let mut quote = None;
    let mut letters = text.char_indices();
    while let Some((index, letter)) = letters.next() {
        match (quote, letter) {
            (Some(_), '\\') => drop(letters.next()),
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, '}') if depth == 0 && until == Until::Brace => return Some(index),
            // `->` of a function is no end.
            (None, '>') if depth == 0 && until == Until::Tag && !text[..index].ends_with('-') => return Some(index),
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// A line that holds nothing but tags leaves no white space and no line break behind.
fn without_tag_lines(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut split = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => split.extend(text.split_inclusive('\n').map(|line| Piece::Text(line.to_owned()))),
            other => split.push(other),
        }
    }
    let mut kept = Vec::new();
    let mut line: Vec<Piece> = Vec::new();
    let flush = |line: &mut Vec<Piece>, kept: &mut Vec<Piece>| {
        let blank = |piece: &Piece| matches!(piece, Piece::Text(text) if text.trim().is_empty());
        let only_tags = line.iter().any(Piece::vanishes) && line.iter().all(|piece| piece.vanishes() || blank(piece));
        kept.extend(line.drain(..).filter(|piece| !(only_tags && blank(piece))));
    };
    for piece in split {
        let ends = matches!(&piece, Piece::Text(text) if text.ends_with('\n'));
        line.push(piece);
        if ends {
            flush(&mut line, &mut kept);
        }
    }
    flush(&mut line, &mut kept);
    kept
}
