//! From the elements of a plan to a [`Script`]. What is not supported is noted with its place, and all of it is reported
//! together; nothing is left out in silence.
mod check;
mod config;
mod control;
mod group;
mod sampler;

use super::context::{Context, Properties};
use super::script::{Block, Script, Step};
use super::text::Text;
use super::tree::Element;
use crate::error::Error;
use config::Level;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Reads a file that a plan names.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> std::io::Result<Vec<u8>>;

/// Everything a plan is read with.
struct Reading<'a> {
    directory: PathBuf,
    read_file: ReadFile<'a>,
    /// User-defined variables; what settings are evaluated with.
    context: RefCell<Context>,
    mistakes: RefCell<BTreeSet<(usize, String)>>,
    notes: RefCell<BTreeSet<(usize, String)>>,
    states: Cell<usize>,
    labels: RefCell<Vec<String>>,
    csv_files: RefCell<HashMap<String, Rc<config::CsvFile>>>,
    /// Variables that texts read, with the first line.
    used: RefCell<BTreeMap<String, usize>>,
    defined: RefCell<BTreeSet<String>>,
}

/// A plan that was read, and what a reader must know about it.
#[derive(Debug)]
pub struct Plan {
    /// What the plan does.
    pub script: Script,
    /// What is different from JMeter, or looks like a mistake, with its place.
    pub notes: Vec<String>,
}

/// Reads a plan. `file` is what messages call it; relative paths start at `directory`.
pub fn read(
    file: &str,
    bytes: &[u8],
    directory: &Path,
    properties: Arc<Properties>,
    read_file: ReadFile<'_>,
) -> Result<Plan, Error> {
    let root = Element::parse(file, bytes)?;
    let reading = Reading {
        directory: directory.to_owned(),
        read_file,
        context: RefCell::new(Context::new(properties)),
        mistakes: RefCell::default(),
        notes: RefCell::default(),
        states: Cell::new(0),
        labels: RefCell::default(),
        csv_files: RefCell::default(),
        used: RefCell::default(),
        defined: RefCell::default(),
    };
    let script = reading.script(&root);
    reading.note_unknown_variables();
    let line = |(line, text): (usize, String)| format!("{file}:{line}: {text}");
    let mistakes: Vec<String> = reading.mistakes.into_inner().into_iter().map(line).collect();
    let notes = reading.notes.into_inner().into_iter().map(line).collect();
    if mistakes.is_empty() { Ok(Plan { script, notes }) } else { Err(Error::Input(mistakes.join("\n"))) }
}

/// Elements with what is below them: JMeter writes a `hashTree` right after the element it belongs to.
fn pairs(tree: &Element) -> impl Iterator<Item = (&Element, Option<&Element>)> {
    let mut children = tree.children.iter().peekable();
    std::iter::from_fn(move || {
        let element = children.next()?;
        Some((element, children.next_if(|next| next.name == "hashTree")))
    })
    .filter(|(element, _)| !element.disabled())
}

/// What only shows or stores results.
const LISTENERS: [&str; 6] =
    ["ResultCollector", "Summariser", "BackendListener", "ResultSaver", "MailerResultCollector", "JMeterMonitor"];

/// What never runs as part of a test, or shows the state of one.
const IGNORED: [&str; 6] =
    ["WorkBench", "ProxyControl", "DebugSampler", "DebugPostProcessor", "TestFragmentController", "DNSCacheManager"];

impl Reading<'_> {
    /// Notes what is not supported.
    fn refuse(&self, element: &Element, why: &str) {
        self.mistakes.borrow_mut().insert((element.line, format!("`{}`: {why}", element.title())));
    }

    fn note(&self, element: &Element, text: &str) {
        self.notes.borrow_mut().insert((element.line, format!("`{}`: {text}", element.title())));
    }

    /// A place in the state of each user.
    fn state(&self) -> usize {
        let state = self.states.get();
        self.states.set(state + 1);
        state
    }

    /// The number of a name in reports.
    fn label(&self, name: &str) -> usize {
        let mut labels = self.labels.borrow_mut();
        labels.iter().position(|other| other == name).unwrap_or_else(|| {
            labels.push(name.to_owned());
            labels.len() - 1
        })
    }

    /// Notes that a variable gets a value during the run.
    fn define(&self, name: &str) {
        self.defined.borrow_mut().insert(name.to_owned());
    }

    /// Compiles a text; a mistake in it is one of the element.
    fn compile(&self, element: &Element, text: &str) -> Text {
        match Text::parse(text) {
            Ok(text) => {
                text.each_variable(&mut |name| {
                    self.used.borrow_mut().entry(name.to_owned()).or_insert(element.line);
                });
                text.each_set(&mut |name| self.define(name));
                text
            }
            Err(why) => {
                self.refuse(element, &why);
                Text::default()
            }
        }
    }

    /// The text of a property; empty if it is not there.
    fn text(&self, element: &Element, name: &str) -> Text {
        element.property(name).map_or_else(Text::default, |property| self.compile(element, &property.text))
    }

    /// The value of a setting, which is the same for the whole run.
    fn setting(&self, element: &Element, name: &str) -> String {
        let text = self.text(element, name);
        text.evaluate(&mut self.context.borrow_mut()).trim().to_owned()
    }

    fn flag(&self, element: &Element, name: &str) -> bool {
        self.setting(element, name) == "true"
    }

    /// A whole number; `default` if there is no text.
    fn number(&self, element: &Element, name: &str, default: i64) -> i64 {
        let text = self.setting(element, name);
        if text.is_empty() {
            return default;
        }
        text.parse().unwrap_or_else(|_| {
            self.refuse(element, &format!("`{text}` in `{name}` is not a whole number"));
            default
        })
    }

    /// The bytes of a file as the plan names it: below the working directory, or below the plan's own.
    fn file(&self, element: &Element, name: &str) -> Option<Vec<u8>> {
        let path = Path::new(name);
        let read = (self.read_file)(path).or_else(|error| match path.is_relative() {
            true => (self.read_file)(&self.directory.join(path)),
            false => Err(error),
        });
        read.map_err(|error| self.refuse(element, &format!("cannot open `{name}`: {error}"))).ok()
    }

    fn script(&self, root: &Element) -> Script {
        let mut script = Script::default();
        if root.name != "jmeterTestPlan" {
            self.refuse(root, "this is not a JMeter plan");
            return script;
        }
        for tree in &root.children {
            self.define_variables(tree);
        }
        script.variables = self.context.borrow().variables.clone().into_iter().collect();
        script.variables.sort();
        for (plan, below) in root.children.iter().flat_map(pairs) {
            if plan.name == "TestPlan" {
                script.name = plan.title().to_owned();
                script.serial = self.flag(plan, "TestPlan.serialize_threadgroups");
                script.tear_down_after_stop = self.flag(plan, "TestPlan.tearDown_on_shutdown");
                below.into_iter().for_each(|below| self.groups(below, &mut script));
            } else if !self.ignored(plan) {
                self.refuse(plan, &format!("`{}` is not supported", plan.name));
            }
        }
        if script.groups.is_empty() {
            self.refuse(root, "the plan has no thread group that is enabled and supported");
        }
        script.labels = self.labels.take();
        script.states = self.states.get();
        script
    }

    fn groups(&self, tree: &Element, script: &mut Script) {
        let mut level = Level::default();
        let mut unknown = |element: &Element| !self.level_element(element, &mut level) && !self.ignored(element);
        for (element, below) in pairs(tree).filter(|(element, _)| !group::is_group(element)) {
            if unknown(element) && !config::acts_before_pass(element) {
                self.refuse(element, &format!("`{}` is not supported here", element.name));
            }
            below.into_iter().for_each(|below| self.refuse_children(below));
        }
        let levels = [level];
        for (element, below) in pairs(tree).filter(|(element, _)| group::is_group(element)) {
            let mut body = self.block(below.unwrap_or(&Element::default()), &levels);
            // What acts before each pass is read again with each group: each group has its own.
            let shared = pairs(tree).filter_map(|(element, _)| self.before_pass(element));
            body.before_pass = shared.chain(body.before_pass).collect();
            script.groups.extend(self.group(element, body));
        }
    }

    /// What is below an element that takes nothing below it.
    fn refuse_children(&self, tree: &Element) {
        for (element, _) in pairs(tree).filter(|(element, _)| !self.ignored(element)) {
            self.refuse(element, &format!("`{}` has no meaning here", element.name));
        }
    }

    /// The steps of a tree, with the configuration of the levels above it.
    fn block(&self, tree: &Element, above: &[Level]) -> Block {
        let mut block = Block::default();
        let mut level = Level::default();
        for (element, below) in pairs(tree) {
            if self.level_element(element, &mut level) {
                below.into_iter().for_each(|below| self.refuse_children(below));
            }
            block.before_pass.extend(self.before_pass(element));
        }
        let mut levels = above.to_vec();
        levels.push(level);
        let empty = Element::default();
        for (element, below) in pairs(tree) {
            let below = below.unwrap_or(&empty);
            if sampler::is_sampler(element) {
                let (sampler, before_pass) = self.sampler(element, below, &levels);
                block.before_pass.extend(before_pass);
                block.steps.push(Step::Request(Box::new(sampler)));
            } else if control::is_control(element) {
                block.steps.extend(self.control(element, below, &levels));
            } else if !config::is_level_element(element) && !config::acts_before_pass(element) && !self.ignored(element)
            {
                self.refuse(element, &format!("`{}` is not supported", element.name));
            }
        }
        block
    }

    /// Whether an element changes nothing of what is sent.
    fn ignored(&self, element: &Element) -> bool {
        let name = element.name.as_str();
        let ignored = IGNORED.contains(&name);
        // The work bench of old versions is a scratch pad that never runs.
        if ignored && name != "WorkBench" {
            self.note(element, &format!("`{name}` is ignored: it sends nothing"));
        }
        // User-defined variables were read before everything else.
        ignored || name == "Arguments" || LISTENERS.contains(&name) || name.starts_with("kg.apc.jmeter.vizualizers.")
    }

    /// Notes variables that no element gives a value: JMeter sends their names.
    fn note_unknown_variables(&self) {
        let defined = self.defined.borrow();
        let context = self.context.borrow();
        for (name, line) in self.used.borrow().iter() {
            let derived = |known: &String| name.strip_prefix(known.as_str()).is_some_and(|rest| rest.starts_with('_'));
            if !defined.contains(name) && !context.variables.contains_key(name) && !defined.iter().any(derived) {
                let why = format!("`{name}` has no value; as in JMeter, `${{{name}}}` is sent as it is written");
                self.notes.borrow_mut().insert((*line, why));
            }
        }
    }
}
