//! Templates: finding the rule for a node, applying, calling, continuing.

use penstock_xml::{Document, NodeKind};
use penstock_xpath::{Item, Node};

use super::Outcome;
use super::context::as_node;
use super::dispatch::DispatchTable;
use super::frame::{Application, Focus, Frame};
use super::machine::Machine;
use super::source::Source;
use crate::program::{Mode, NONE, Select};

impl<'a> Machine<'a, '_> {
    /// What a selection goes over.
    pub(super) fn source(&self, select: Select) -> Outcome<Source<'a>> {
        if let Select::Expr(expr) = select {
            return Ok(Source::Sequence { items: self.evaluate(expr)?, next: 0 });
        }
        let Some(node) = self.node() else {
            return self.failure("XTTE0510", "there is no context node to select from");
        };
        Ok(match select {
            Select::Children => Source::children(self.session, node),
            Select::AttributesAndChildren => Source::both(self.session, node),
            Select::Attributes => Source::attributes(self.session, node),
            Select::ChildElements => Source::elements(self.session, node),
            Select::ChildrenNamed(name) => Source::named(self.session, node, self.run.name_in(node.document, name)),
            Select::Expr(_) => Source::One(None),
        })
    }

    pub(super) fn size_of(&self, source: &Source<'_>) -> usize {
        if self.program.uses_last { source.count() } else { 0 }
    }

    pub(super) fn apply_templates(&mut self, number: u32) -> Outcome<()> {
        let application = &self.program.applications[number as usize];
        let mut source = self.source(application.select)?;
        if !application.sort.is_empty() {
            source = self.sorted(source, &application.sort)?;
        }
        let (params, tunnel) = self.pass(&application.params);
        let mode = if application.mode == NONE { self.mode } else { application.mode };
        let size = self.size_of(&source);
        let saved = self.save();
        self.push_frame(Frame::Apply(Application {
            saved,
            source,
            index: 0,
            size,
            mode,
            params,
            tunnel,
            nested: false,
            copied: None,
        }))?;
        self.apply_next()
    }

    /// Goes on with the innermost application until a template is entered or the application ends.
    pub(super) fn apply_next(&mut self) -> Outcome<()> {
        loop {
            self.tick()?;
            let Some(Frame::Apply(application)) = self.frames.last_mut() else { return Ok(()) };
            let Some(item) = application.source.next() else {
                if self.end_application() {
                    return Ok(());
                }
                continue;
            };
            application.index += 1;
            let (mode, size, index) = (application.mode, application.size, application.index);
            let inherited = application.copied;
            self.variables.truncate(application.saved.top);
            let Some(node) = as_node(&item) else {
                return self.failure("XTTE0520", "templates are applied to nodes, not to values");
            };
            self.focus = Focus { item: Some(item), position: index, size };
            let found = self.find_rule(node, mode, 0, None)?;
            let Some((rule, template)) = found else {
                self.built_in(node, mode)?;
                continue;
            };
            let template = &self.program.templates[template as usize];
            if template.identity && !matches!(self.kind(node), NodeKind::Document) {
                self.identity(node, mode, inherited)?;
                continue;
            }
            let Some(Frame::Apply(application)) = self.frames.last() else { return Ok(()) };
            self.params = application.params.clone();
            self.tunnel = application.tunnel.clone();
            self.rule = Some((mode, rule));
            self.mode = mode;
            self.enter(template.block);
            self.check_output()?;
            return Ok(());
        }
    }

    /// Ends the innermost application; `true` when it is an instruction that goes on.
    fn end_application(&mut self) -> bool {
        let Some(Frame::Apply(application)) = self.frames.pop() else { return true };
        if application.copied.is_some() {
            self.sink.end_element(self.session);
        }
        let nested = application.nested;
        self.restore(application.saved);
        !nested
    }

    /// What happens to nodes without a rule (XSLT 1.0 §5.8).
    pub(super) fn built_in(&mut self, node: Node, mode: u32) -> Outcome<()> {
        match self.kind(node) {
            NodeKind::Element | NodeKind::Document => {
                let source = Source::children(self.session, node);
                self.nest(source, mode, None)
            }
            NodeKind::Text | NodeKind::Attribute => {
                self.sink.text(self.session.document(node.document).text(node.id), self.session);
                self.check_output()
            }
            NodeKind::Comment | NodeKind::ProcessingInstruction | NodeKind::Namespace => Ok(()),
        }
    }

    /// Applies templates to more nodes in the same mode, as part of the application in progress.
    fn nest(&mut self, source: Source<'a>, mode: u32, copied: Option<Node>) -> Outcome<()> {
        let (params, tunnel) = match self.frames.last() {
            // XSLT 2.0 passes parameters through built-in rules, 1.0 does not.
            Some(Frame::Apply(outer)) => {
                let params = if self.program.version_two { outer.params.clone() } else { None };
                (params, outer.tunnel.clone())
            }
            _ => (None, self.tunnel.clone()),
        };
        let size = self.size_of(&source);
        let saved = self.save();
        self.push_frame(Frame::Apply(Application {
            saved,
            source,
            index: 0,
            size,
            mode,
            params,
            tunnel,
            nested: true,
            copied,
        }))
    }

    /// Carries out a template that only copies, without running its operations.
    fn identity(&mut self, node: Node, mode: u32, inherited: Option<Node>) -> Outcome<()> {
        let document: &'a Document = self.session.document(node.document);
        if !document.is_element(node.id) {
            self.sink.copy_leaf(document, node.id, self.session);
            return self.check_output();
        }
        let same_parent = inherited
            .is_some_and(|outer| outer.document == node.document && document.parent(node.id) == Some(outer.id));
        self.sink.copy_start(document, node.id, same_parent);
        let source = Source::both(self.session, node);
        self.nest(source, mode, Some(node))
    }

    /// The rule for a node: the first that matches from `from` on, up to a precedence when one is given.
    pub(super) fn find_rule(
        &mut self,
        node: Node,
        mode: u32,
        from: u32,
        precedences: Option<(u32, u32)>,
    ) -> Outcome<Option<(u32, u32)>> {
        let rules: &'a Mode = &self.program.modes[mode as usize];
        let document = self.session.document(node.document);
        let list = match document.kind(node.id) {
            NodeKind::Element => {
                let index = document.name_id(node.id).index();
                self.table(node.document, mode).elements.get(index).copied().unwrap_or(rules.elements)
            }
            NodeKind::Attribute => {
                let index = document.name_id(node.id).index();
                self.table(node.document, mode).attributes.get(index).copied().unwrap_or(rules.attributes)
            }
            NodeKind::Text => rules.text,
            NodeKind::Comment => rules.comments,
            NodeKind::ProcessingInstruction => rules.instructions,
            NodeKind::Document => rules.documents,
            NodeKind::Namespace => rules.namespaces,
        };
        for rule_number in &rules.lists[list as usize] {
            let rule = &rules.rules[*rule_number as usize];
            if *rule_number < from {
                continue;
            }
            if let Some((lowest, below)) = precedences
                && !(lowest..below).contains(&rule.precedence)
            {
                continue;
            }
            if rule.certain || self.matches(rule.pattern, rule.branch, node)? {
                return Ok(Some((*rule_number, rule.template)));
            }
        }
        Ok(None)
    }

    #[inline]
    fn table(&mut self, document: u32, mode: u32) -> &DispatchTable {
        let current = self.dispatch.take().filter(|table| table.document == document && table.mode == mode);
        let current = current.unwrap_or_else(|| self.run.table(document, mode));
        &self.dispatch.insert(current).table
    }

    /// Begins a run: applies templates to a node, or calls a template.
    pub fn start(&mut self, node: Node, mode: u32, template: Option<u32>) -> Outcome<()> {
        self.focus = Focus { item: Some(Item::Node(node)), position: 1, size: 1 };
        self.frames.push(Frame::Stop);
        match template {
            Some(template) => self.enter(self.program.templates[template as usize].block),
            None => {
                // The application returns to an operation that returns to the frame below.
                self.pc = self.program.stop;
                let saved = self.save();
                self.push_frame(Frame::Apply(Application {
                    saved,
                    source: Source::One(Some(node)),
                    index: 0,
                    size: 1,
                    mode,
                    params: None,
                    tunnel: None,
                    nested: false,
                    copied: None,
                }))?;
                self.apply_next()?;
            }
        }
        self.execute()
    }

    pub(super) fn copy(&mut self, jump: u32, namespaces: bool) -> Outcome<()> {
        match self.focus.item.clone() {
            Some(Item::Node(node)) => {
                let document = self.session.document(node.document);
                match document.kind(node.id) {
                    NodeKind::Element if namespaces => self.sink.copy_start(document, node.id, false),
                    NodeKind::Element => {
                        let name = document.name(node.id);
                        self.sink.start_element(name.prefix, name.local, name.namespace);
                    }
                    NodeKind::Document => {}
                    kind => {
                        if matches!(kind, NodeKind::Attribute | NodeKind::Namespace) {
                            self.check_attribute()?;
                        }
                        self.sink.copy_leaf(document, node.id, self.session);
                        self.pc = jump;
                    }
                }
                Ok(())
            }
            Some(Item::Atomic(atomic)) => {
                self.pc = jump;
                self.add_item(penstock_xpath::ItemRef::Atomic(&atomic))
            }
            None => self.failure("XTTE0945", "there is no context item to copy"),
        }
    }

    /// Whether a node matches a branch of a pattern.
    pub(super) fn matches(&self, pattern: u32, branch: u32, node: Node) -> Outcome<bool> {
        let compiled = &self.program.patterns[pattern as usize];
        match compiled.alternative_matches(branch as usize, node, &self.context()) {
            Ok(matches) => Ok(matches),
            // A pattern that fails to evaluate does not match (XSLT 2.0 §5.5.4).
            Err(error) if error.code().starts_with("PSXT") || error.code().starts_with("PENS") => {
                self.xpath_failure(&error, NONE)
            }
            Err(_) => {
                self.run.passing.borrow_mut().take();
                Ok(false)
            }
        }
    }
}
