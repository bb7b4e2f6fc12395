//! Instructions that go over items.

use super::super::{At, Compiler};
use crate::program::{Analysis, GroupBy, Grouping, Loop, NONE, Op, Select, SortBy, SortKey};

impl Compiler<'_> {
    pub(super) fn for_each(&mut self, at: At) {
        let text = self.attribute(at, "select").unwrap_or("()");
        let select = self.select(text, self.attribute_place(at, "select"));
        let sort = self.sort_keys(at);
        let number = self.program.loops.len();
        self.program.loops.push(Loop { select, sort, end: 0 });
        self.emit(Op::ForEach(number as u32));
        self.target();
        self.body(at);
        self.emit(Op::Next);
        self.program.loops[number].end = self.target();
    }

    pub(super) fn perform_sort(&mut self, at: At) {
        let children = self.sequence_constructor(at);
        if !children.iter().any(|child| self.xsl_name(*child) == Some("sort")) {
            self.error("XTSE0010", "`xsl:perform-sort` needs an `xsl:sort`", at);
        }
        let other = children.iter().find(|child| self.xsl_name(**child) != Some("sort"));
        if let Some(other) = other.filter(|_| self.attribute(at, "select").is_some()) {
            self.error("XTSE1040", "either `select` or content, not both", *other);
        }
        let sort = self.sort_keys(at);
        let select = match self.attribute(at, "select") {
            Some(text) => self.select(text, self.attribute_place(at, "select")),
            None => {
                // The content is a sequence; it is kept in a variable that only the sort sees.
                let slot = self.frame.new_slot();
                self.emit(Op::BeginSequence);
                self.isolated_body(at);
                self.emit(Op::EndSequence { slot, as_type: NONE });
                let name = self.expanded("urn:penstock:internal", "sorted");
                self.frame.visible.push((name, slot));
                let expr = self.internal_variable(at);
                Select::Expr(expr)
            }
        };
        let number = self.program.loops.len();
        self.program.loops.push(Loop { select, sort, end: 0 });
        self.emit(Op::PerformSort(number as u32));
        self.program.loops[number].end = self.target();
    }

    /// An expression that yields the content of the innermost `xsl:perform-sort`.
    pub(super) fn internal_variable(&mut self, at: At) -> u32 {
        self.internal_prefix = true;
        let expr = self.expression("$penstock-internal:sorted", at);
        self.internal_prefix = false;
        self.frame.visible.pop();
        expr
    }

    pub(super) fn for_each_group(&mut self, at: At) {
        let select = self.required_expression(at, "select");
        let attributes = ["group-by", "group-adjacent", "group-starting-with", "group-ending-with"];
        let given: Vec<&str> = attributes.iter().copied().filter(|name| self.attribute(at, name).is_some()).collect();
        let &[name] = &given[..] else {
            let message = "`xsl:for-each-group` has exactly one of `group-by`, `group-adjacent`, \
                           `group-starting-with` and `group-ending-with`";
            self.error("XTSE1080", message, at);
            return;
        };
        let collation = self.optional_avt(at, "collation");
        if collation.is_some() && name.ends_with("-with") {
            self.error("XTSE1090", format!("`collation` means nothing with `{name}`"), at);
        }
        let place = self.attribute_place(at, name);
        let text = self.attribute(at, name).unwrap_or_default();
        let by = match name {
            "group-by" => GroupBy::Key(self.expression(text, place)),
            "group-adjacent" => GroupBy::Adjacent(self.expression(text, place)),
            "group-starting-with" => GroupBy::StartingWith(self.pattern(text, place).unwrap_or_default()),
            _ => GroupBy::EndingWith(self.pattern(text, place).unwrap_or_default()),
        };
        let sort = self.sort_keys(at);
        let number = self.program.groupings.len();
        self.program.groupings.push(Grouping {
            select,
            by,
            collation,
            default_collation: self.default_collation(at),
            sort,
            end: 0,
        });
        self.emit(Op::ForEachGroup(number as u32));
        self.target();
        self.body(at);
        self.emit(Op::Next);
        self.program.groupings[number].end = self.target();
    }

    pub(super) fn analyze_string(&mut self, at: At) {
        let select = self.required_expression(at, "select");
        let regex = self.avt_attribute(at, "regex", "");
        let flags = self.avt_attribute(at, "flags", "");
        let number = self.program.analyses.len();
        self.program.analyses.push(Analysis { select, regex, flags, matching: None, non_matching: None, end: 0 });
        self.emit(Op::AnalyzeString(number as u32));
        let mut bodies = 0;
        for child in self.content(at) {
            let matching = match self.xsl_name(child) {
                Some("matching-substring") => true,
                Some("non-matching-substring") => false,
                _ => continue,
            };
            bodies += 1;
            let entry = self.target();
            self.body(child);
            self.emit(Op::Next);
            let analysis = &mut self.program.analyses[number];
            if matching { analysis.matching = Some(entry) } else { analysis.non_matching = Some(entry) }
        }
        if bodies == 0 {
            self.error("XTSE1130", "`xsl:analyze-string` needs a `xsl:matching-substring` or the other", at);
        }
        self.program.analyses[number].end = self.target();
    }

    /// The `xsl:sort` children.
    pub(super) fn sort_keys(&mut self, at: At) -> Vec<SortKey> {
        let mut keys = Vec::new();
        for child in self.content(at) {
            if self.xsl_name(child) != Some("sort") {
                continue;
            }
            if let Some(syntax) = crate::read::syntax::element_syntax("sort") {
                self.check_attributes(syntax, child);
            }
            self.check_select(child, "XTSE1015");
            if !keys.is_empty() && self.attribute(child, "stable").is_some() {
                self.error("XTSE1017", "`stable` stands on the first `xsl:sort` only", child);
            }
            let value = match self.attribute(child, "select") {
                Some(text) => SortBy::Expr(self.expression(text, self.attribute_place(child, "select"))),
                None if self.content(child).is_empty() => SortBy::Expr(self.expression(".", child)),
                None => {
                    let jump = self.emit(Op::Jump(0));
                    let entry = self.target();
                    self.isolated_body(child);
                    self.emit(Op::Return);
                    let after = self.target();
                    self.program.ops[jump as usize] = Op::Jump(after);
                    SortBy::Body(entry)
                }
            };
            keys.push(SortKey {
                value,
                collation: self.avt_attribute(child, "collation", ""),
                default_collation: self.default_collation(child),
                lang: self.avt_attribute(child, "lang", ""),
                order: self.avt_attribute(child, "order", "ascending"),
                data_type: self.avt_attribute(child, "data-type", ""),
                case_order: self.avt_attribute(child, "case-order", ""),
                stable: self.avt_attribute(child, "stable", ""),
                untyped: self.version(child) < 2.0,
            });
        }
        keys
    }
}
