//! A network between two processes that a test can cut and mend.
//!
//! Bytes are passed on as they are. Not here: delay, loss or reordering within a connection, which
//! TCP does not show.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

enum Order {
    Cut,
    Mend,
    End,
}

/// A listener that passes every connection on to one address.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    orders: Sender<(Order, Sender<()>)>,
}

impl Proxy {
    /// Passes on to this server, `http://HOST:PORT`.
    pub fn to(server: &str) -> Self {
        let address = server.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = listener.local_addr().expect("a listener has an address").port();
        listener.set_nonblocking(true).expect("a listener can be polled");
        let (orders, taken) = channel();
        thread::spawn(move || serve(&listener, &address, &taken));
        Self { port, orders }
    }

    /// Its own address, `http://HOST:PORT`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Ends every connection and takes none.
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    /// Takes connections again.
    pub fn mend(&self) {
        self.order(Order::Mend);
    }

    fn order(&self, order: Order) {
        let (done, is_done) = channel();
        // A proxy that has ended has nothing to cut or mend.
        if self.orders.send((order, done)).is_ok() {
            let _ = is_done.recv();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.order(Order::End);
    }
}

fn serve(listener: &TcpListener, address: &str, orders: &Receiver<(Order, Sender<()>)>) {
    let mut open: Vec<TcpStream> = Vec::new();
    let mut whole = true;
    loop {
        match orders.try_recv() {
            Ok((Order::Cut, _done)) => {
                whole = false;
                hang_up(&mut open);
            }
            Ok((Order::Mend, _done)) => whole = true,
            Ok((Order::End, _)) | Err(TryRecvError::Disconnected) => return hang_up(&mut open),
            Err(TryRecvError::Empty) => {}
        }
        match listener.accept() {
            Ok((near, _)) if whole => open.extend(join(near, address).into_iter().flatten()),
            Ok((near, _)) => drop(near),
            Err(_) => rest(),
        }
    }
}

fn hang_up(open: &mut Vec<TcpStream>) {
    for stream in open.drain(..) {
        // It may have ended by itself.
        drop(stream.shutdown(Shutdown::Both));
    }
}

/// Passes on between both, on a thread for each direction; gives what ends them.
fn join(near: TcpStream, address: &str) -> Option<[TcpStream; 2]> {
    near.set_nonblocking(false).ok()?;
    let far = TcpStream::connect(address).ok()?;
    let ends = [near.try_clone().ok()?, far.try_clone().ok()?];
    let back = (far.try_clone().ok()?, near.try_clone().ok()?);
    thread::spawn(move || pass(near, far));
    thread::spawn(move || pass(back.0, back.1));
    Some(ends)
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    drop(from.shutdown(Shutdown::Both));
    drop(to.shutdown(Shutdown::Both));
}

#[expect(clippy::disallowed_methods, reason = "the poll of a listener that must also take orders")]
fn rest() {
    thread::sleep(std::time::Duration::from_millis(2));
}
