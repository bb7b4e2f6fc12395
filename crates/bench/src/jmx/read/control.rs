//! Controllers, timers and flow control actions.
use super::super::condition;
use super::super::context::Context;
use super::super::script::{Control, PaceMode, Skip, Step, Timer};
use super::super::text::Text;
use super::super::tree::Element;
use super::Reading;
use super::config::Level;
use std::sync::Arc;

const CONTROLS: [&str; 14] = [
    "GenericController",
    "RecordingController",
    "TransactionController",
    "LoopController",
    "WhileController",
    "IfController",
    "OnceOnlyController",
    "ForeachController",
    "InterleaveControl",
    "RandomController",
    "RandomOrderController",
    "ThroughputController",
    "SwitchController",
    "RunTime",
];

/// Whether an element is a controller or a flow control action.
pub(super) fn is_control(element: &Element) -> bool {
    CONTROLS.contains(&element.name.as_str()) || element.name == "TestAction"
}

impl Reading<'_> {
    pub(super) fn control(&self, element: &Element, below: &Element, levels: &[Level]) -> Option<Step> {
        if element.name == "TestAction" {
            return self.action(element, below, levels);
        }
        let kind = match element.name.as_str() {
            "GenericController" | "RecordingController" => Control::Simple,
            "TransactionController" => Control::Transaction {
                label: self.label(element.title()),
                with_timers: element.property("TransactionController.includeTimers").is_none()
                    || self.flag(element, "TransactionController.includeTimers"),
                parent: self.flag(element, "TransactionController.parent"),
            },
            "LoopController" => Control::Loop {
                count: match self.flag(element, "LoopController.continue_forever")
                    && self.setting(element, "LoopController.loops") == "-1"
                {
                    true => Text::plain("-1"),
                    false => self.text(element, "LoopController.loops"),
                },
            },
            "WhileController" => Control::While { condition: self.text(element, "WhileController.condition") },
            "IfController" => self.if_controller(element),
            "OnceOnlyController" => Control::OnceOnly,
            "ForeachController" => self.for_each(element),
            "InterleaveControl" | "RandomController" => {
                let within = below.children.iter().any(is_control);
                let style = format!("{}.style", element.name);
                if (within && self.number(element, &style, 1) == 0)
                    || self.flag(element, "InterleaveControl.accrossThreads")
                {
                    self.refuse(
                        element,
                        "taking single requests out of controllers, or interleaving over all users, is not supported",
                    );
                }
                if element.name == "RandomController" { Control::Random } else { Control::Interleave }
            }
            "RandomOrderController" => Control::RandomOrder,
            "ThroughputController" => self.throughput_controller(element),
            "SwitchController" => Control::Switch { choice: self.text(element, "SwitchController.value") },
            _ => Control::Runtime { seconds: self.text(element, "RunTime.seconds") },
        };
        let (state, body) = (self.state(), self.block(below, levels));
        Some(Step::Control { kind, state, name: element.title().to_owned(), body })
    }

    fn if_controller(&self, element: &Element) -> Control {
        let condition = self.text(element, "IfController.condition");
        let expression = !self.flag(element, "IfController.useExpression");
        if expression {
            let mut context = Context::new(Arc::default());
            let probe = condition::with_numbers(&condition.evaluate(&mut context));
            if let Err(why) = condition::evaluate(&probe) {
                self.refuse(element, &format!("the condition is not supported: {why}"));
            }
        }
        Control::If { condition, expression, before_each: self.flag(element, "IfController.evaluateAll") }
    }

    fn for_each(&self, element: &Element) -> Control {
        let output = self.text(element, "ForeachController.returnVal");
        output.constant().into_iter().for_each(|name| self.define(name));
        let separator = "ForeachController.useSeparator";
        Control::ForEach {
            input: self.text(element, "ForeachController.inputVal"),
            output,
            separator: element.property(separator).is_none() || self.flag(element, separator),
            start: self.text(element, "ForeachController.startIndex"),
            end: self.text(element, "ForeachController.endIndex"),
        }
    }

    fn throughput_controller(&self, element: &Element) -> Control {
        let percent = self.number(element, "ThroughputController.style", 0) == 1;
        let amount = if percent { "percentThroughput" } else { "maxThroughput" };
        let amount = self.text(element, &format!("ThroughputController.{amount}"));
        let per_user = self.flag(element, "ThroughputController.perThread");
        Control::Throughput { percent, amount, shared: (!per_user).then(Arc::default) }
    }

    fn action(&self, element: &Element, below: &Element, levels: &[Level]) -> Option<Step> {
        let mut own = Level::default();
        for (child, _) in super::pairs(below) {
            if !self.level_element(child, &mut own) && !self.ignored(child) {
                self.refuse(child, &format!("`{}` is not supported", child.name));
            }
        }
        let timers: Vec<Timer> = levels.iter().chain([&own]).flat_map(|level| level.timers.clone()).collect();
        match self.number(element, "ActionProcessor.action", 0) {
            0 | 2 => Some(Step::Stop { whole_test: self.number(element, "ActionProcessor.target", 0) == 2 }),
            1 => Some(Step::Pause {
                time_ms: self.text(element, "ActionProcessor.duration"),
                timers,
                name: element.title().to_owned(),
            }),
            3 => Some(Step::Skip(Skip::ThreadLoop)),
            4 => Some(Step::Skip(Skip::LoopPass)),
            5 => Some(Step::Skip(Skip::Loop)),
            other => {
                self.refuse(element, &format!("the action {other} is not supported"));
                None
            }
        }
    }

    pub(super) fn timer(&self, element: &Element) -> Option<Timer> {
        let (delay, range) = ("ConstantTimer.delay", "RandomTimer.range");
        Some(match element.name.as_str() {
            "ConstantTimer" => Timer::Constant(self.text(element, delay)),
            "UniformRandomTimer" => {
                Timer::Uniform { offset: self.text(element, delay), range: self.text(element, range) }
            }
            "GaussianRandomTimer" => {
                Timer::Gaussian { offset: self.text(element, delay), deviation: self.text(element, range) }
            }
            "PoissonRandomTimer" => {
                Timer::Poisson { offset: self.text(element, delay), mean: self.text(element, range) }
            }
            "ConstantThroughputTimer" => {
                // A number from 0, or a name that counts from 1.
                let mode = match self.setting(element, "calcMode").as_str() {
                    "" | "0" | "calcMode.1" => PaceMode::User,
                    "1" | "calcMode.2" => PaceMode::All,
                    "2" | "calcMode.3" => PaceMode::Group,
                    "3" | "calcMode.4" => PaceMode::AllShared,
                    other => {
                        self.refuse(element, &format!("the mode `{other}` is not supported"));
                        PaceMode::User
                    }
                };
                Timer::Throughput {
                    per_minute: self.text(element, "throughput"),
                    mode,
                    state: self.state(),
                    shared: Arc::default(),
                }
            }
            _ => return None,
        })
    }
}
