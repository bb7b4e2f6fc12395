//! What tests with brokers share: a backend, and a way to a broker that can be cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

/// A backend that responds with 200 and hands out the body of each request.
pub fn backend() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, sender) = (socket.unwrap(), sender.clone());
            // A request may break off when the program is killed.
            std::thread::spawn(move || {
                let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
                loop {
                    let read = socket.read(&mut buffer).unwrap_or(0);
                    if read == 0 {
                        return;
                    }
                    request.extend_from_slice(&buffer[..read]);
                    let text = String::from_utf8_lossy(&request).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let head = head.to_ascii_lowercase();
                    let length = head.split_once("content-length: ").unwrap().1.split("\r\n").next().unwrap();
                    if body.len() >= length.parse().unwrap() {
                        let _ = sender.send(body.to_owned());
                        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                        return;
                    }
                }
            });
        }
    });
    (port, receiver)
}

/// Forwards connections to the broker until it is shut.
pub struct Gate {
    pub port: u16,
    is_open: Arc<AtomicBool>,
    sockets: Arc<Mutex<Vec<TcpStream>>>,
}

impl Gate {
    pub fn open(broker: u16) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Gate {
            port: listener.local_addr().unwrap().port(),
            is_open: Arc::new(AtomicBool::new(true)),
            sockets: Arc::default(),
        };
        let (is_open, sockets) = (gate.is_open.clone(), gate.sockets.clone());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                if !is_open.load(Ordering::SeqCst) {
                    continue;
                }
                let broker = TcpStream::connect(("127.0.0.1", broker)).unwrap();
                for (mut from, mut to) in [(&client, &broker), (&broker, &client)]
                    .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
                {
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                sockets.lock().unwrap().extend([client, broker]);
            }
        });
        gate
    }

    /// Breaks all connections and takes no other.
    pub fn shut(&self) {
        self.is_open.store(false, Ordering::SeqCst);
        for socket in self.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub fn reopen(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }
}
