//! A class as a WebAssembly module: checked once, and a fresh instance for each message, so that none sees another's.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use wasmi::{Config, Engine, Linker, Module, Store, StoreLimits, StoreLimitsBuilder, TrapCode, TypedFunc};

use super::Properties;
use super::host::{self, Guest};

/// What a module may do for one message, in the engine's units: about a tenth of a second. The core does nothing else
/// meanwhile. What is done for the module costs of it too (`host.rs`).
const FUEL: u64 = 20_000_000;

/// Memory of an instance: a few times the largest message that should be read whole.
const MEMORY_BYTES_MAX: usize = 64 << 20;

/// Entries of an instance's tables: more than any compiler makes for a mediator.
const TABLE_ELEMENTS_MAX: usize = 100_000;

/// What a module is called at.
const ENTRY: &str = "mediate";

struct ModuleClass {
    name: Arc<str>,
    module: Module,
    linker: Linker<Guest>,
    properties: Properties,
}

/// Reads and checks a module. The text says why it cannot be used.
pub(super) fn compile(name: &str, bytes: &[u8], properties: Properties) -> Result<Box<dyn Mediator>, String> {
    let mut config = Config::default();
    config.consume_fuel(true);
    let engine = Engine::new(&config);
    if !bytes.starts_with(b"\0asm") {
        return Err("it is not WebAssembly".to_owned());
    }
    let module = Module::new(&engine, bytes).map_err(|error| one_line(&error.to_string()))?;
    let linker = host::linker(&engine);
    let class = ModuleClass { name: name.into(), module, linker, properties };
    class.check()?;
    Ok(Box::new(class))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a message's instance may take.
fn limits() -> StoreLimits {
    StoreLimitsBuilder::new()
        .memory_size(MEMORY_BYTES_MAX)
        .table_elements(TABLE_ELEMENTS_MAX)
        .instances(1)
        .memories(1)
        .tables(4)
        .build()
}

impl ModuleClass {
    /// Whether it has the required exports and only known imports.
    fn check(&self) -> Result<(), String> {
        for import in self.module.imports() {
            if import.module() != host::MODULE || !host::FUNCTIONS.contains(&import.name()) {
                return Err(format!(
                    "it imports `{}.{}`; there are only `{}` of `{}`",
                    import.module(),
                    import.name(),
                    host::FUNCTIONS.join("`, `"),
                    host::MODULE
                ));
            }
        }
        let is_memory = |export: wasmi::ExportType<'_>| export.name() == "memory" && export.ty().memory().is_some();
        if !self.module.exports().any(is_memory) {
            return Err("it exports no memory called `memory`".to_owned());
        }
        let entry = self.module.exports().find(|export| export.name() == ENTRY);
        let takes_nothing = entry.and_then(|export| {
            let function = export.ty().func().cloned()?;
            Some(function.params().is_empty() && matches!(function.results(), [wasmi::ValType::I32]))
        });
        match takes_nothing {
            Some(true) => Ok(()),
            _ => Err(format!("it exports no function `{ENTRY}` without parameters that gives an i32")),
        }
    }

    /// Runs an instance; the answer of `mediate`.
    fn mediate(&self, store: &mut Store<Guest>) -> Result<i32, wasmi::Error> {
        store.limiter(|guest| &mut guest.limits);
        store.set_fuel(FUEL)?;
        let instance = self.linker.instantiate_and_start(&mut *store, &self.module)?;
        let entry: TypedFunc<(), i32> = instance.get_typed_func(&*store, ENTRY)?;
        entry.call(&mut *store, ())
    }

    fn explain(&self, error: &wasmi::Error) -> String {
        let why = match error.as_trap_code() {
            Some(TrapCode::OutOfFuel) => "it ran longer than a message may take".to_owned(),
            _ => one_line(&error.to_string()),
        };
        format!("the class `{}` failed: {why}", self.name)
    }
}

impl Mediator for ModuleClass {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let properties = self.properties.values(exchange)?;
        let guest = Guest { exchange: exchange.detach(), properties, limits: limits(), failure: None };
        let mut store = Store::new(self.module.engine(), guest);
        let outcome = self.mediate(&mut store);
        let guest = store.into_data();
        exchange.attach(guest.exchange);
        match (outcome, guest.failure) {
            (_, Some(failure)) => Err(Fault::new(failure)),
            (Err(error), None) => Err(Fault::new(self.explain(&error))),
            // A class that answers false ends the flow of the message.
            (Ok(0), None) => Ok(Flow::Stop),
            (Ok(_), None) => Ok(Flow::Next),
        }
    }

    fn needs(&self) -> Needs {
        Needs::Whole.max(self.properties.needs())
    }
}
