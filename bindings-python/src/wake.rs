//! Wakes the event loop of Python: through a descriptor that it watches, or one end of a pair of sockets where it
//! watches none, as the loop that Windows has by default.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg(unix)]
use descriptor::Descriptor;

#[cfg(unix)]
use std::os::unix::{io::RawFd as Raw, net::UnixStream as Socket};
#[cfg(windows)]
use std::{net::TcpStream as Socket, os::windows::io::RawSocket as Raw};

/// Nothing here needs the interpreter.
pub(crate) struct Wake(Mutex<Option<Ends>>);

struct Ends {
    #[cfg(unix)]
    descriptor: Descriptor,
    /// Written to in its place, while a loop has the other end.
    socket: Option<Socket>,
}

impl Wake {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Mutex::new(Some(Ends {
            #[cfg(unix)]
            descriptor: Descriptor::new()?,
            socket: None,
        }))))
    }

    fn ends(&self) -> MutexGuard<'_, Option<Ends>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The descriptor that becomes readable; -1 where there is none, or it is closed.
    #[cfg(unix)]
    pub(crate) fn descriptor(&self) -> i32 {
        self.ends().as_ref().map_or(-1, |ends| ends.descriptor.raw())
    }

    /// The descriptor that becomes readable; -1 where there is none, or it is closed.
    #[cfg(not(unix))]
    pub(crate) fn descriptor(&self) -> i32 {
        -1
    }

    /// A new pair of sockets, in place of the last one: the end that becomes readable, which is the caller's from now
    /// on. None when all is closed.
    pub(crate) fn pair(&self) -> io::Result<Option<Raw>> {
        let mut ends = self.ends();
        let Some(ends) = &mut *ends else { return Ok(None) };
        let (near, far) = pair()?;
        far.set_nonblocking(true)?;
        near.set_nonblocking(true)?;
        ends.socket = Some(far);
        #[cfg(unix)]
        let near = std::os::fd::IntoRawFd::into_raw_fd(near);
        #[cfg(windows)]
        let near = std::os::windows::io::IntoRawSocket::into_raw_socket(near);
        Ok(Some(near))
    }

    /// Closes this end of the pair: whoever has the other one listens no more.
    pub(crate) fn unpair(&self) {
        let socket = self.ends().as_mut().and_then(|ends| ends.socket.take());
        drop(socket);
    }

    /// Closes everything: from now on there is nothing to wake.
    pub(crate) fn close(&self) {
        let ends = self.ends().take();
        drop(ends);
    }

    pub(crate) fn set(&self) {
        let ends = self.ends();
        let Some(ends) = &*ends else { return };
        if let Some(mut socket) = ends.socket.as_ref() {
            // Full means that a wake-up is already waiting.
            let _ = socket.write(&[1]);
            return;
        }
        #[cfg(unix)]
        ends.descriptor.set();
    }

    /// Takes a wake-up of the descriptor back; what came over a socket, whoever has that has received.
    pub(crate) fn clear(&self) {
        #[cfg(unix)]
        if let Some(ends) = &*self.ends() {
            ends.descriptor.clear();
        }
    }
}

#[cfg(unix)]
fn pair() -> io::Result<(Socket, Socket)> {
    Socket::pair()
}

/// Over the loopback interface, as there is no other way. Whoever else of this machine connects meanwhile is sent away.
#[cfg(windows)]
fn pair() -> io::Result<(Socket, Socket)> {
    use std::net::{Ipv4Addr, TcpListener};
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let far = Socket::connect(listener.local_addr()?)?;
    let own = far.local_addr()?;
    loop {
        let (near, from) = listener.accept()?;
        if from == own {
            far.set_nodelay(true)?;
            return Ok((near, far));
        }
    }
}

#[cfg(unix)]
mod descriptor {
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};

    pub(super) struct Descriptor {
        read: OwnedFd,
        #[cfg(not(target_os = "linux"))]
        write: OwnedFd,
    }

    impl Descriptor {
        #[cfg(target_os = "linux")]
        pub(super) fn new() -> io::Result<Self> {
            use rustix::event::{EventfdFlags, eventfd};
            Ok(Self { read: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
        }

        #[cfg(not(target_os = "linux"))]
        pub(super) fn new() -> io::Result<Self> {
            let (read, write) = rustix::pipe::pipe()?;
            for end in [&read, &write] {
                rustix::io::ioctl_fionbio(end, true)?;
                rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
            }
            Ok(Self { read, write })
        }

        pub(super) fn raw(&self) -> i32 {
            self.read.as_raw_fd()
        }

        pub(super) fn set(&self) {
            #[cfg(target_os = "linux")]
            let end = &self.read;
            #[cfg(not(target_os = "linux"))]
            let end = &self.write;
            // Full means that a wake-up is already waiting.
            let _ = rustix::io::write(end, &1u64.to_ne_bytes());
        }

        pub(super) fn clear(&self) {
            let mut buffer = [0u8; 64];
            let _ = rustix::io::read(&self.read, &mut buffer);
        }
    }
}
