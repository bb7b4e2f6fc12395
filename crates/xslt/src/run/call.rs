//! Calls that name what they call: `xsl:call-template`, `xsl:apply-imports` and `xsl:next-match`, attribute sets.

use penstock_xml::NodeKind;

use super::Outcome;
use super::frame::{Application, Frame};
use super::machine::Machine;
use super::source::Source;

impl Machine<'_, '_> {
    pub(super) fn call(&mut self, number: u32) -> Outcome<()> {
        self.tick()?;
        self.check_output()?;
        let call = &self.program.calls[number as usize];
        let (params, tunnel) = self.pass(&call.params);
        let saved = self.save();
        self.push_frame(Frame::Call(saved))?;
        self.params = params;
        self.tunnel = tunnel;
        self.enter(self.program.templates[call.template as usize].block);
        Ok(())
    }

    /// `xsl:apply-imports` and `xsl:next-match`.
    pub(super) fn continuation(&mut self, number: u32) -> Outcome<()> {
        let continuation = &self.program.continuations[number as usize];
        let Some((mode, rule)) = self.rule else {
            return self.failure("XTDE0560", "there is no current template rule here");
        };
        let Some(node) = self.node() else {
            return self.failure("XTDE0565", "the context item is not a node");
        };
        let current = &self.program.modes[mode as usize].rules[rule as usize];
        let template = &self.program.templates[current.template as usize];
        let (from, precedences) = if continuation.imports_only {
            (0, Some((template.lowest_import, template.precedence)))
        } else {
            (rule + 1, None)
        };
        let (params, tunnel) = self.pass(&continuation.params);
        let found = self.find_rule(node, mode, from, precedences)?;
        let saved = self.save();
        match found {
            Some((rule, template)) => {
                self.push_frame(Frame::Call(saved))?;
                self.params = params;
                self.tunnel = tunnel;
                self.rule = Some((mode, rule));
                self.enter(self.program.templates[template as usize].block);
                Ok(())
            }
            None => {
                // The built-in rule, as an application of its own that returns here.
                let source = match self.kind(node) {
                    NodeKind::Element | NodeKind::Document => Source::children(self.session, node),
                    _ => Source::One(None),
                };
                let size = self.size_of(&source);
                if matches!(source, Source::One(_)) {
                    self.built_in(node, mode)?;
                }
                self.push_frame(Frame::Apply(Application {
                    saved,
                    source,
                    index: 0,
                    size,
                    mode,
                    params: if self.program.version_two { params } else { None },
                    tunnel,
                    nested: false,
                    copied: None,
                }))?;
                self.apply_next()
            }
        }
    }

    pub(super) fn use_attribute_set(&mut self, number: u32) -> Outcome<()> {
        let blocks = &self.program.attribute_sets[number as usize];
        // Blocks return one into the other: the last to run is pushed first.
        for block in blocks.iter().rev() {
            let saved = self.save();
            self.push_frame(Frame::Call(saved))?;
            self.enter(*block);
        }
        Ok(())
    }
}
