//! The word to stop, given once and heard on every core.

use tokio::sync::watch;

/// Hears the word. Clone one for every listener.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

/// Gives the word. Dropping it does too.
#[derive(Debug)]
pub struct ShutdownTrigger(watch::Sender<bool>);

/// A trigger and what hears it.
pub fn shutdown() -> (ShutdownTrigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (ShutdownTrigger(sender), Shutdown(receiver))
}

impl ShutdownTrigger {
    /// Stops every listener.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Shutdown {
    /// Waits for the word.
    pub async fn wait(&mut self) {
        // An error means that the trigger is dropped, and with it the owner of the listener.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
