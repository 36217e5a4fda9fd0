//! Valkey or Redis, for the tests of stores: what the machine has, else the packages of a Debian or Ubuntu, unpacked and not
//! installed, with the libraries that the machine lacks.

use super::nginx;
use crate::{place, process, report, stamp, tool};
use std::time::Duration;

const GETTING: Duration = Duration::from_secs(5 * 60);

const GET: &str = r#"
rm -rf packages usr
mkdir packages
cd packages
name=redis-server
for one in valkey-server redis-server; do
    if apt-get -s install --no-install-recommends $one > /dev/null 2>&1; then name=$one; break; fi
done
apt-get download $(apt-get -s install --no-install-recommends $name | awk '/^Inst/ {print $2}')
for package in *.deb; do dpkg-deb --extract "$package" ..; done
cd ..
rm -rf packages
for kind in server cli; do
    cat > valkey-$kind <<END
#!/bin/sh
here=\$(dirname "\$(readlink -f "\$0")")
LD_LIBRARY_PATH=\$(echo "\$here"/usr/lib/*-linux-*) exec "\$here/usr/bin/${name%-server}-$kind" "\$@"
END
    chmod +x valkey-$kind
done
./valkey-server --version
"#;

/// Makes it be there, if it can; says why not on the way.
pub(crate) fn valkey() {
    if ["valkey-server", "redis-server"].into_iter().any(|name| process::which(name).is_some()) {
        return;
    }
    let dir = place::target("valkey");
    let made = nginx::can_unpack().and_then(|()| {
        stamp::once("valkey", &stamp::Inputs::new().text(GET), &dir.join("valkey-server"), || {
            report::step("getting Valkey");
            std::fs::create_dir_all(&dir)?;
            let mut command = tool::command("sh");
            command.args(["-e", "-c", GET]).current_dir(&dir);
            process::must("apt-get download valkey", command, GETTING, &place::log("setup valkey")).map(drop)
        })
    });
    if let Err(error) = made {
        report::note(format!("no Valkey, so the tests of stores will fail: {error:#}"));
    }
}
