//! The report as text, JSON and HTML.

use std::fmt::Write;

use penstock_xml::escaped;
use serde_json::{Value, json};

use super::{Report, Verdict};

impl Verdict {
    /// The word of the report.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Exact => "exact",
            Verdict::Differs => "differs",
            Verdict::NotSupported => "not supported",
        }
    }
}

const VERDICTS: [Verdict; 3] = [Verdict::Exact, Verdict::Differs, Verdict::NotSupported];

impl Report {
    fn summary(&self) -> String {
        let counts = VERDICTS.map(|verdict| format!("{} {}", self.count(verdict), verdict.word()));
        let ignored = self.keys.iter().filter(|key| key.verdict == Verdict::NotSupported).count();
        format!(
            "{} artifacts: {}; {} keys of the configuration, {ignored} without effect",
            self.entries.len(),
            counts.join(", "),
            self.keys.len()
        )
    }

    /// For a terminal: what is exact is only counted.
    pub fn as_text(&self) -> String {
        let mut out = String::new();
        // Writing to a `String` cannot fail.
        for entry in self.entries.iter().filter(|entry| entry.verdict != Verdict::Exact) {
            let _ = writeln!(out, "{:13}  {} {}  {}", entry.verdict.word(), entry.kind, entry.name, entry.at.file);
            for reason in &entry.reasons {
                let _ = writeln!(out, "               {reason}");
            }
        }
        for key in self.keys.iter().filter(|key| key.verdict != Verdict::Exact) {
            let _ = writeln!(out, "{:13}  key {}", key.verdict.word(), key.name);
        }
        for line in &self.configuration {
            let _ = writeln!(out, "configuration  {line}");
        }
        out.push_str(&self.summary());
        out.push('\n');
        out
    }

    /// For programs.
    pub fn as_json(&self) -> String {
        let entries = self.entries.iter().map(|entry| {
            json!({
                "kind": entry.kind, "name": entry.name, "file": *entry.at.file, "line": entry.at.line,
                "verdict": entry.verdict.word(), "reasons": entry.reasons,
            })
        });
        let keys = self.keys.iter().map(|key| json!({ "name": key.name, "verdict": key.verdict.word() }));
        let report = json!({
            "counts": {
                "exact": self.count(Verdict::Exact),
                "differs": self.count(Verdict::Differs),
                "notSupported": self.count(Verdict::NotSupported),
            },
            "artifacts": entries.collect::<Value>(),
            "keys": keys.collect::<Value>(),
            "configuration": self.configuration,
            "refusesToStart": self.refuses_to_start,
        });
        format!("{report:#}\n")
    }

    /// For people: one file without references to others.
    pub fn as_html(&self) -> String {
        const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em;color:#1b1f24}\
            table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:.3em .8em .3em 0;\
            border-bottom:1px solid #d8dee4}.exact{color:#1a7f37}.differs{color:#9a6700}.not{color:#cf222e}\
            ul{margin:0;padding-left:1.2em}code{font-size:.9em}";
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Migration report</title><style>{STYLE}</style>\n\
             <h1>Migration report</h1>\n<p>{}</p>\n",
            escaped(&self.summary())
        );
        if self.refuses_to_start {
            out.push_str("<p class=\"not\">The configuration has errors; the server does not start with it.</p>\n");
        }
        out.push_str("<table><tr><th>Result<th>Kind<th>Name<th>File<th>What differs, or why and what instead\n");
        for entry in &self.entries {
            let reasons: String = entry.reasons.iter().map(|reason| format!("<li>{}</li>", escaped(reason))).collect();
            let reasons = if reasons.is_empty() { String::new() } else { format!("<ul>{reasons}</ul>") };
            let _ = writeln!(
                out,
                "<tr><td class=\"{}\">{}<td>{}<td>{}<td><code>{}:{}</code><td>{reasons}",
                class(entry.verdict),
                entry.verdict.word(),
                escaped(&entry.kind),
                escaped(&entry.name),
                escaped(&entry.at.file),
                entry.at.line
            );
        }
        out.push_str("</table>\n<h2>Configuration</h2>\n<table><tr><th>Result<th>Key\n");
        for key in &self.keys {
            let word = if key.verdict == Verdict::Exact { "applies" } else { "no effect" };
            let _ =
                writeln!(out, "<tr><td class=\"{}\">{word}<td><code>{}</code>", class(key.verdict), escaped(&key.name));
        }
        out.push_str("</table>\n<ul>\n");
        for line in &self.configuration {
            let _ = writeln!(out, "<li>{}</li>", escaped(line));
        }
        out.push_str("</ul></html>\n");
        out
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Exact => "exact",
        Verdict::Differs => "differs",
        Verdict::NotSupported => "not",
    }
}
