//! The management API of Micro Integrator: `https://HOST:9164/management`, as `mi`, `apictl mi` and its dashboard use it.
//!
//! It runs on the management runtime. What operators change goes through [`Switches`] (proxy services, endpoints, log
//! lines), the table of background services, the registry, the users' file, and the folder of applications; nothing here
//! touches a core.
//!
//! Start reading at [`routes::RESOURCES`] (the one table of resources), then `access.rs` (who may do what) and
//! `resources/` (one file per resource).

mod access;
mod audit;
mod call;
mod heartbeat;
mod inventory;
mod openapi;
mod resources;
mod routes;
mod switches;
mod tokens;
mod users;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use penstock_engine::ports::{Level, LocalFuture, Request, Service};
use penstock_engine::{Core, Registry};
use penstock_message::{Message, Method};
use penstock_transports::http::{HttpListener, HttpSender, PerCore, Shutdown};

use crate::adapter::Deployer;
use crate::serve::{Artifacts, Event, State};
use inventory::Inventory;
pub use switches::Switches;
use tokens::Tokens;
use users::Users;

/// What the management API needs of the server.
pub struct Operators {
    /// Its port.
    pub listener: HttpListener,
    /// Compiles and serves what operators deploy.
    pub deployer: Deployer,
    /// The resources that flows and operators write.
    pub registry: Arc<Registry>,
    /// Where an operator's shutdown goes.
    pub events: Sender<Event>,
}

impl Operators {
    /// Serves until the server ends. Runs on the management runtime, whose core it takes stores from.
    pub async fn serve(self, core: Rc<Core>, sender: Rc<HttpSender>, stop: Shutdown) {
        let Operators { listener, deployer, registry, events } = self;
        let log = deployer.log().clone();
        let settings = deployer.settings();
        let port = listener.local_addr().port();
        let beats = heartbeat::Heartbeat::new(&settings.management.dashboard, &core.environment.host, port);
        if let Some(beats) = beats {
            // The task ends with the runtime.
            tokio::task::spawn_local(beats.run(sender, log.clone()));
        }
        let users = Users::open(&settings.management.state);
        if let Err(cause) = &users {
            log.say(Level::Error, "ManagementAPI", &format!("users added by the API are not known: {cause}"));
        }
        let api = Api {
            deployer: Arc::new(deployer),
            core,
            registry,
            events,
            users: users.unwrap_or_default(),
            tokens: Tokens::new(),
            inventory: RefCell::new(None),
            hashing: tokio::sync::Semaphore::new(access::HASHES_AT_ONCE),
        };
        if let Err(cause) = listener.serve(PerCore::start(), Rc::new(api), None, stop).await {
            log.say(Level::Error, "ManagementAPI", &format!("the management API ended: {cause}"));
        }
    }
}

/// The API and what its resources share.
struct Api {
    deployer: Arc<Deployer>,
    core: Rc<Core>,
    registry: Arc<Registry>,
    events: Sender<Event>,
    users: Users,
    tokens: Tokens,
    /// The artifacts that are served, read at the first request after a change.
    inventory: RefCell<Option<(Arc<Artifacts>, Rc<Inventory>)>>,
    /// Passwords that are hashed at once.
    hashing: tokio::sync::Semaphore,
}

impl Api {
    fn state(&self) -> &Arc<State> {
        &self.deployer.state
    }

    fn log(&self, level: Level, text: &str) {
        self.deployer.log().say(level, "ManagementAPI", text);
    }

    fn inventory(&self) -> Rc<Inventory> {
        let artifacts = self.state().artifacts();
        let mut kept = self.inventory.borrow_mut();
        match &*kept {
            Some((of, inventory)) if Arc::ptr_eq(of, &artifacts) => inventory.clone(),
            _ => {
                let inventory = Rc::new(Inventory::read(&artifacts));
                *kept = Some((artifacts, inventory.clone()));
                inventory
            }
        }
    }
}

impl Service for Api {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(async move {
            let origin = request.message.headers.contains("origin");
            let is_head = request.client.line.method == Method::Head;
            let mut message = routes::answer(self, request).await;
            if origin {
                // Micro Integrator allows every origin; credentials are never sent by a browser on its own.
                message.headers.set("Access-Control-Allow-Origin", "*");
            }
            message.headers.set("Cache-Control", "no-store");
            if is_head {
                message.body = penstock_message::Body::default();
            }
            message
        })
    }
}
