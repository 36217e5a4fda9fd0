//! Parts of a desktop that a server has not: a session bus, and on it a keyring that is unlocked.

use crate::Outcome;
use crate::launch;
use crate::wire::stdio::{Launch, Tail, kill_group};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest time until the keyring answers.
const START_LIMIT: Duration = Duration::from_secs(10);

/// The programs that a desktop consists of here.
pub(super) struct Programs {
    keyring: PathBuf,
}

impl Programs {
    /// Those of this machine, or what `cargo xtask setup` has unpacked; or why they are not there.
    pub(super) fn find() -> Outcome<Self> {
        let ask = |program: &Path| Command::new(program).arg("--version").stdin(Stdio::null()).output();
        for program in ["dbus-daemon", "dbus-send"] {
            // One of them has no version, and says so.
            ask(Path::new(program)).map_err(|_| format!("there is no {program}: apt-get install dbus"))?;
        }
        let ours = launch::root()?.join("target/gnome-keyring/gnome-keyring-daemon");
        let keyring = [PathBuf::from("gnome-keyring-daemon"), ours].into_iter();
        let mut keyring = keyring.filter(|program| ask(program).is_ok_and(|told| told.status.success()));
        let keyring = keyring.next().ok_or("there is no keyring: apt-get install gnome-keyring")?;
        Ok(Self { keyring })
    }
}

/// A running one; it ends when it is dropped.
pub(super) struct Desktop {
    bus: Child,
    keyring: Option<Child>,
    pub(super) address: String,
}

impl Desktop {
    /// Everything that it has is in this folder.
    pub(super) fn start(programs: &Programs, folder: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let (settings, socket) = (folder.join("bus.conf"), folder.join("bus"));
        let address = format!("unix:path={}", socket.display());
        std::fs::write(&settings, bus(&address)).map_err(|error| error.to_string())?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let words = vec!["dbus-daemon".to_owned(), "--nofork".to_owned(), format!("--config-file={}", text(&settings))];
        let mut bus = Launch { words, environment: Vec::new() }.spawn(Stdio::null(), Stdio::null())?;
        let log = Tail::follow(bus.stderr.take().ok_or("no standard error")?);
        let mut desktop = Self { bus, keyring: None, address };
        wait(|| socket.exists(), || format!("dbus-daemon does not listen: {}", log.lines().join("\n")))?;

        // The password of its first keyring, which it makes unlocked, is what it reads.
        let script = "printf password | exec \"$0\" --foreground --components=secrets --unlock";
        let words = ["sh", "-c", script].map(str::to_owned).into_iter().chain([text(&programs.keyring)]).collect();
        let places = ["HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"];
        let environment = places.map(|name| (name.to_owned(), text(folder))).into_iter();
        let environment =
            environment.chain([("DBUS_SESSION_BUS_ADDRESS".to_owned(), desktop.address.clone())]).collect();
        let mut keyring = Launch { words, environment }.spawn(Stdio::null(), Stdio::null())?;
        let log = Tail::follow(keyring.stderr.take().ok_or("no standard error")?);
        desktop.keyring = Some(keyring);
        wait(|| desktop.has_keyring(), || format!("gnome-keyring-daemon does not answer: {}", log.lines().join("\n")))?;
        Ok(desktop)
    }

    /// Returns true if somebody on the bus has a keyring for secrets that are to be kept.
    fn has_keyring(&self) -> bool {
        let mut command = Command::new("dbus-send");
        command.arg(format!("--bus={}", self.address)).args(["--print-reply", "--dest=org.freedesktop.secrets"]);
        command.args(["/org/freedesktop/secrets", "org.freedesktop.Secret.Service.ReadAlias", "string:default"]);
        let told = command.stdin(Stdio::null()).output();
        told.is_ok_and(|told| String::from_utf8_lossy(&told.stdout).contains("/collection/"))
    }

    /// From here on there is a bus without a keyring.
    pub(super) fn end_keyring(&mut self) {
        if let Some(mut keyring) = self.keyring.take() {
            kill_group(&mut keyring);
        }
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        self.end_keyring();
        kill_group(&mut self.bus);
    }
}

fn wait(done: impl Fn() -> bool, why_not: impl Fn() -> String) -> Outcome {
    let deadline = Instant::now() + START_LIMIT;
    while !done() {
        if Instant::now() > deadline {
            return Err(why_not());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The settings of a bus that starts nothing by itself.
fn bus(address: &str) -> String {
    format!(
        "<busconfig><type>session</type><listen>{address}</listen><auth>EXTERNAL</auth>\n\
         <policy context=\"default\"><allow send_destination=\"*\"/><allow receive_sender=\"*\"/><allow own=\"*\"/></policy></busconfig>\n"
    )
}
