//! JavaScript runtimes, one for each script that runs on a core at the same time; in each, one context per script.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use penstock_engine::Exchange;
use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Object, Persistent, Runtime};

use super::{Entry, Script, host};

/// Of running, pauses excepted. A script that takes longer is one that never ends.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// All scripts of a runtime together, of which one runs at a time.
const MEMORY_LIMIT_BYTES: usize = 64 << 20;
/// Recursion deeper than this would reach the end of the thread's own stack.
const STACK_LIMIT_BYTES: usize = 512 << 10;
/// Runtimes a core keeps. More run side by side only when scripts take so long that they pause.
const KEPT_MAX: usize = 4;
/// Loaded scripts a runtime keeps. A reload loads new ones; the old ones go when this is reached.
const LOADED_MAX: usize = 256;

const PRELUDE: &str = include_str!("prelude.js");
const XML: &str = include_str!("xml.js");
const TREE: &str = include_str!("tree.js");

thread_local! {
    static IDLE: RefCell<Vec<Sandbox>> = const { RefCell::new(Vec::new()) };
}

/// The times of the script that runs in a runtime.
#[derive(Clone, Default)]
pub(super) struct Times(Rc<TimesOfRun>);

#[derive(Default)]
struct TimesOfRun {
    began: Cell<Option<Began>>,
    /// How long the script wants to sleep.
    sleeps: Cell<Duration>,
}

#[derive(Clone, Copy)]
struct Began {
    at: Instant,
    /// What the mediator had run before, pauses excepted.
    spent: Option<Duration>,
}

impl Times {
    fn begin(&self) {
        self.0.began.set(Some(Began { at: Instant::now(), spent: penstock_budget::spent() }));
        self.0.sleeps.set(Duration::ZERO);
    }

    fn is_over(&self) -> bool {
        self.0.began.get().is_some_and(|began| {
            let spent = match (began.spent, penstock_budget::spent()) {
                (Some(before), Some(now)) => now.saturating_sub(before),
                _ => began.at.elapsed(),
            };
            spent > TIME_LIMIT
        })
    }

    /// The message sleeps when the script has ended: the core has others to serve.
    pub(super) fn sleep(&self, milliseconds: f64) {
        // No number, or less than nothing, is no sleep; what is too long ends at the deadline of the message.
        let pause = Duration::try_from_secs_f64(milliseconds.max(0.0) / 1000.0).unwrap_or(Duration::MAX);
        self.0.sleeps.set(self.0.sleeps.get().saturating_add(pause));
    }
}

struct Sandbox {
    loaded: HashMap<u64, Rc<Loaded>>,
    times: Times,
    runtime: Runtime,
}

/// A script in its own context: scripts do not see each other's globals.
struct Loaded {
    entry: Persistent<Function<'static>>,
    mc: Persistent<Object<'static>>,
    reset: Persistent<Function<'static>>,
    slot: host::Slot,
    context: Context,
}

/// Runs a script on the exchange's message. The time is what it slept, which is still to be waited.
pub(super) fn run(script: &Script, exchange: &mut Exchange) -> Result<Duration, String> {
    // A script that pauses keeps its runtime; others take another.
    let idle = IDLE.with_borrow_mut(Vec::pop);
    let mut sandbox = idle.map_or_else(Sandbox::new, Ok)?;
    let outcome = sandbox.run(script, exchange);
    IDLE.with_borrow_mut(|idle| {
        if idle.len() < KEPT_MAX {
            idle.push(sandbox);
        }
    });
    outcome
}

/// The message while a script has it; it comes back also when the script is stopped by a limit.
struct Lent<'e> {
    exchange: &'e mut Exchange,
    slot: host::Slot,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(detached) = self.slot.take() {
            self.exchange.attach(detached);
        }
    }
}

/// Whether a text is JavaScript. Nothing of it runs.
pub(super) fn check(text: &str) -> Result<(), String> {
    let runtime = limited()?;
    let context = Context::full(&runtime).map_err(|error| error.to_string())?;
    context.with(|ctx| {
        let wrapped = format!("(function (mc) {{{text}\n}})");
        ctx.eval_with_options::<Function<'_>, _>(wrapped, sloppy())
            .map(|_| ())
            .catch(&ctx)
            .map_err(|error| explain(&error))
    })
}

/// Scripts of Micro Integrator assign to names they never declared.
fn sloppy() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options
}

fn limited() -> Result<Runtime, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.set_memory_limit(MEMORY_LIMIT_BYTES);
    runtime.set_max_stack_size(STACK_LIMIT_BYTES);
    Ok(runtime)
}

impl Sandbox {
    fn new() -> Result<Sandbox, String> {
        let runtime = limited()?;
        let times = Times::default();
        let watched = times.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || {
            penstock_budget::pause();
            watched.is_over()
        })));
        Ok(Sandbox { loaded: HashMap::new(), times, runtime })
    }

    fn run(&mut self, script: &Script, exchange: &mut Exchange) -> Result<Duration, String> {
        let loaded = self.loaded(script)?;
        loaded.slot.replace(Some(exchange.detach()));
        let lent = Lent { exchange, slot: loaded.slot.clone() };
        self.times.begin();
        let outcome = loaded.context.with(|ctx| {
            let call = || {
                loaded.reset.clone().restore(&ctx)?.call::<_, ()>(())?;
                let mc = loaded.mc.clone().restore(&ctx)?;
                loaded.entry.clone().restore(&ctx)?.call::<_, rquickjs::Value<'_>>((mc,)).map(|_| ())
            };
            call().catch(&ctx).map_err(|error| explain(&error))
        });
        drop(lent);
        outcome.map(|()| self.times.0.sleeps.take())
    }

    fn loaded(&mut self, script: &Script) -> Result<Rc<Loaded>, String> {
        if let Some(loaded) = self.loaded.get(&script.number) {
            return Ok(loaded.clone());
        }
        if self.loaded.len() >= LOADED_MAX {
            self.loaded.clear();
        }
        let loaded = Rc::new(Loaded::new(&self.runtime, &self.times, script)?);
        self.loaded.insert(script.number, loaded.clone());
        Ok(loaded)
    }
}

impl Loaded {
    fn new(runtime: &Runtime, times: &Times, script: &Script) -> Result<Loaded, String> {
        let context = Context::full(runtime).map_err(|error| error.to_string())?;
        let slot = host::Slot::default();
        times.begin();
        let (entry, mc, reset) = context.with(|ctx| {
            let load = || {
                let prelude: Function<'_> = ctx.eval(PRELUDE)?;
                let xml: Function<'_> = ctx.eval(XML)?;
                let host = host::object(&ctx, &slot, times)?;
                let tree: Function<'_> = ctx.eval(TREE)?;
                let xml: Object<'_> = xml.call((host.clone(), script.reads_as_text, tree))?;
                let made: Object<'_> = prelude.call((host, xml))?;
                for text in &script.library {
                    ctx.eval_with_options::<(), _>(format!("{text}\n;undefined"), sloppy())?;
                }
                let entry: Function<'_> = match &script.entry {
                    Entry::Inline(text) => ctx.eval_with_options(format!("(function (mc) {{{text}\n}})"), sloppy())?,
                    Entry::Function(name) => ctx.eval(name.as_bytes())?,
                };
                Ok((
                    Persistent::save(&ctx, entry),
                    Persistent::save(&ctx, made.get::<_, Object<'_>>("mc")?),
                    Persistent::save(&ctx, made.get::<_, Function<'_>>("reset")?),
                ))
            };
            load().catch(&ctx).map_err(|error| explain(&error))
        })?;
        Ok(Loaded { entry, mc, reset, slot, context })
    }
}

/// What a person reads of a failed script.
fn explain(error: &CaughtError<'_>) -> String {
    match error {
        CaughtError::Exception(exception) => {
            let message = exception.message().unwrap_or_else(|| "an exception without a message".into());
            if message == "interrupted" {
                return format!("it ran longer than {} ms", TIME_LIMIT.as_millis());
            }
            // QuickJS says the line in the first entry of the stack: `at <eval> (eval_script:3:7)`.
            let place = exception.stack().and_then(|stack| {
                let entry = stack.lines().find(|line| line.contains("eval_script:"))?;
                Some(entry.rsplit_once("eval_script:")?.1.trim_end_matches(')').to_owned())
            });
            match place {
                Some(place) => format!("{message} (line {place} of the script)"),
                None => message,
            }
        }
        CaughtError::Value(value) => {
            let text = value.as_string().and_then(|text| text.to_string().ok());
            text.unwrap_or_else(|| "it threw a value that is not an error".to_owned())
        }
        CaughtError::Error(error) => error.to_string(),
    }
}

/// The host's functions run inside a call of a script, on the thread that made it.
pub(super) fn host_function<'js, F, P>(
    ctx: &Ctx<'js>,
    object: &Object<'js>,
    name: &str,
    function: F,
) -> rquickjs::Result<()>
where
    F: rquickjs::function::IntoJsFunc<'js, P> + 'js,
{
    object.set(name, Function::new(ctx.clone(), function)?)
}
