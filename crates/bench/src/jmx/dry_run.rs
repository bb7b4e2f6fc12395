//! What a plan would send, as text: its groups, and every request with the values of the first user.
use super::context::{Context, Properties};
use super::cookies::Jar;
use super::request;
use super::script::{BeforePass, Block, Control, Group, Phase, Script, Skip, Step, Timer};
use std::sync::Arc;

/// More of a body is not shown.
const BODY_BYTES_SHOWN: usize = 4 * 1024;

/// Describes a plan. Variables that only responses give a value appear as they are written.
pub fn describe(script: &Script, properties: &Arc<Properties>) -> String {
    let mut text = format!("plan `{}`\n", script.name);
    for (name, value) in &script.variables {
        text.push_str(&format!("  {name} = {value}\n"));
    }
    for group in &script.groups {
        text.push_str(&head_of(group));
        let mut context = Context::new(properties.clone());
        context.variables = script.variables.iter().cloned().collect();
        (context.plan, context.group) = (script.name.as_str().into(), group.name.clone());
        (context.user, context.iteration) = (1, 1);
        block(&group.body, &mut context, 1, &mut text);
    }
    text
}

fn head_of(group: &Group) -> String {
    let phase = match group.phase {
        Phase::SetUp => "setUp group",
        Phase::Main => "thread group",
        Phase::TearDown => "tearDown group",
    };
    let loops = group.loops.map_or_else(|| "endless iterations".to_owned(), |loops| format!("{loops} iterations"));
    let seconds = |duration: std::time::Duration| duration.as_secs_f64();
    let mut head = format!("\n{phase} `{}`: {} users, {loops}", group.name, group.users);
    if !group.ramp_up.is_zero() {
        head.push_str(&format!(", ramp-up {} s", seconds(group.ramp_up)));
    }
    if let Some(duration) = group.duration {
        head.push_str(&format!(", at most {} s", seconds(duration)));
    }
    if !group.delay.is_zero() {
        head.push_str(&format!(", after {} s", seconds(group.delay)));
    }
    head + "\n"
}

fn block(block: &Block, context: &mut Context, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    for act in &block.before_pass {
        match act {
            BeforePass::Csv(data) => {
                text.push_str(&format!(
                    "{indent}next record: {} ({} records)\n",
                    data.names.join(", "),
                    data.records.len()
                ));
                data.next_record(context, &mut 0);
            }
            BeforePass::Counter(counter) => {
                let width = counter.digits;
                context.variables.insert(counter.name.clone(), format!("{:0width$}", counter.start));
                text.push_str(&format!("{indent}counter: {}\n", counter.name));
            }
            BeforePass::RandomVariable { name, least, .. } => {
                let value = least.evaluate(context);
                context.variables.insert(name.clone(), value);
                text.push_str(&format!("{indent}random variable: {name}\n"));
            }
            BeforePass::UserParameters(parameters) => {
                for (name, value) in parameters.names.iter().zip(parameters.values.first().into_iter().flatten()) {
                    let value = value.evaluate(context);
                    context.variables.insert(name.clone(), value);
                }
                text.push_str(&format!("{indent}user parameters: {}\n", parameters.names.join(", ")));
            }
        }
    }
    for step in &block.steps {
        self::step(step, context, depth, text);
    }
}

fn step(step: &Step, context: &mut Context, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    match step {
        Step::Request(sampler) => {
            for parameters in &sampler.before {
                for (name, value) in parameters.names.iter().zip(parameters.values.first().into_iter().flatten()) {
                    let value = value.evaluate(context);
                    context.variables.insert(name.clone(), value);
                }
            }
            let name = sampler.name.evaluate(context);
            context.request.clone_from(&name);
            text.push_str(&format!("{indent}request `{name}`"));
            if !sampler.timers.is_empty() {
                let waits: Vec<String> = sampler.timers.iter().map(|timer| describe_timer(timer, context)).collect();
                text.push_str(&format!(" after {}", waits.join(" and ")));
            }
            text.push('\n');
            let filled = request::fill(&sampler.request, context, &Jar::default());
            let shown = match filled.and_then(|filled| Ok((filled.head().map_err(|error| error.to_string())?, filled)))
            {
                Ok((head, filled)) => {
                    let to = if filled.url.tls { "over TLS to" } else { "to" };
                    format!("{to} {}\n{}{}", filled.url.authority(), head.replace('\r', ""), body(&filled.body))
                }
                Err(why) => format!("cannot be sent: {why}"),
            };
            for line in shown.trim_end().lines() {
                text.push_str(&format!("{indent}    {line}\n"));
            }
            let names: Vec<&str> = sampler.extractors.iter().flat_map(|extractor| extractor.names()).collect();
            if !names.is_empty() {
                text.push_str(&format!("{indent}  extracts {}\n", names.join(", ")));
            }
            if !sampler.assertions.is_empty() {
                text.push_str(&format!("{indent}  {} assertions\n", sampler.assertions.len()));
            }
        }
        Step::Control { kind, name, body, .. } => {
            text.push_str(&format!("{indent}{} `{name}`\n", describe_control(kind, context)));
            block(body, context, depth + 1, text);
        }
        Step::Pause { time_ms, .. } => {
            text.push_str(&format!("{indent}pause of {} ms\n", time_ms.evaluate(context)));
        }
        Step::Stop { whole_test } => {
            let what = if *whole_test { "the test" } else { "the user" };
            text.push_str(&format!("{indent}stops {what}\n"));
        }
        Step::Skip(skip) => text.push_str(&format!(
            "{indent}{}\n",
            match skip {
                Skip::ThreadLoop => "next iteration of the thread group",
                Skip::LoopPass => "next pass of the loop",
                Skip::Loop => "leaves the loop",
            }
        )),
    }
}

fn body(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(BODY_BYTES_SHOWN)];
    let mut text = String::from_utf8_lossy(shown).into_owned();
    if shown.len() < bytes.len() {
        text.push_str(&format!("… ({} more bytes)", bytes.len() - shown.len()));
    }
    text
}

fn describe_timer(timer: &Timer, context: &mut Context) -> String {
    match timer {
        Timer::Constant(delay) => format!("{} ms", delay.evaluate(context)),
        Timer::Uniform { offset, range } => {
            format!("{} ms and up to {} ms", offset.evaluate(context), range.evaluate(context))
        }
        Timer::Gaussian { offset, deviation } | Timer::Poisson { offset, mean: deviation } => {
            format!("about {} + {} ms", offset.evaluate(context), deviation.evaluate(context))
        }
        Timer::Throughput { per_minute, mode, .. } => {
            format!("a wait for {} requests a minute ({mode:?})", per_minute.evaluate(context))
        }
    }
}

fn describe_control(kind: &Control, context: &mut Context) -> String {
    match kind {
        Control::Simple => "controller".to_owned(),
        Control::Transaction { .. } => "transaction".to_owned(),
        Control::Loop { count } => format!("loop of {}", count.evaluate(context)),
        Control::While { condition } => format!("while `{}`", condition.evaluate(context)),
        Control::If { condition, .. } => format!("if `{}`", condition.evaluate(context)),
        Control::OnceOnly => "once".to_owned(),
        Control::ForEach { input, output, .. } => {
            format!("for each {}_… as {}", input.evaluate(context), output.evaluate(context))
        }
        Control::Interleave => "the next of".to_owned(),
        Control::Random => "any of".to_owned(),
        Control::RandomOrder => "in any order".to_owned(),
        Control::Throughput { percent, amount, .. } => {
            format!("{}{} of the passes", amount.evaluate(context), if *percent { " %" } else { "" })
        }
        Control::Switch { choice } => format!("switch on `{}`", choice.evaluate(context)),
        Control::Runtime { seconds } => format!("for {} s", seconds.evaluate(context)),
    }
}
