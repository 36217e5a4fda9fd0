//! The rules of a store, tried.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{AT_ONCE, random, unix};
use crate::error::{Error, Result};
use crate::store::redis::nodes::Number;
use crate::store::redis::sessions::{Edit, Look, SharedSession, session_key};
use crate::store::redis::{Follower, Heard, Redis, Trouble};
use crate::store::{Change, Document, DocumentStore, DocumentWrite, StoreOptions};

/// Time for which what the checks write lives.
const TTL: Duration = Duration::from_secs(60);
/// Time in which an operation is done.
const DEADLINE: Duration = Duration::from_secs(2);
/// Clients that write one document at once.
const WRITERS: usize = 8;
/// Times that each of them does.
const TIMES: usize = 12;
/// The longest text that is tried, in bytes.
const LONG: usize = 4 << 20;
/// Times that a commit is done which has to succeed, and may yet be false because somebody else was faster.
const ATTEMPTS: u32 = 8;
/// The longest key, in bytes.
const LONG_KEY: usize = 512;
/// Documents that are written in one step.
const MANY: usize = 1000;

type Outcome = std::result::Result<(), String>;

/// Tries a store: each rule of [`DocumentStore`], also with many that write at once, then what a server does with it. Takes
/// some seconds. The keys begin with `tricorn-check:` and a random part; what is left of them ends after two minutes.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) that names each rule that the store breaks, a line for each.
pub async fn check_document_store(store: impl DocumentStore) -> Result<()> {
    let check = Check { store: Arc::new(store), begins: format!("tricorn-check:{}", crate::random::new_id()?) };
    let outcomes = [
        ("get", check.reads_what_was_written().await),
        ("get", check.tells_keys_apart().await),
        ("get and commit", check.takes_many_and_long_ones().await),
        ("commit", check.compares().await),
        ("commit", check.does_all_or_nothing().await),
        ("commit", check.removes().await),
        ("commit", check.counts_writers().await),
        ("commit", check.keeps_until_the_end().await),
        ("wait", check.waits().await),
        ("now", check.tells_the_time().await),
    ];
    let said = |(name, outcome): (&str, Outcome)| outcome.err().map(|why| format!("{name}: {why}"));
    let mut broken: Vec<_> = outcomes.into_iter().filter_map(said).collect();
    if broken.is_empty() {
        // Else it would only repeat them.
        broken.extend(said(("a server", check.serves().await)));
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(Error::misuse(format!("the DocumentStore breaks rules:\n{}", broken.join("\n"))))
}

struct Check {
    store: Arc<dyn DocumentStore>,
    begins: String,
}

fn holds(is_so: bool, why: &str) -> Outcome {
    if is_so { Ok(()) } else { Err(why.to_owned()) }
}

async fn in_time<T>(asked: impl Future<Output = Result<T>>) -> std::result::Result<T, String> {
    match tokio::time::timeout(DEADLINE, asked).await {
        Ok(outcome) => outcome.map_err(|error| format!("it failed: {}", error.message())),
        Err(_) => Err("it took longer than 2 s".to_owned()),
    }
}

/// Lets others go ahead, for 10 ms at first and 100 ms at most.
async fn pause(attempt: u32) {
    tokio::time::sleep(Duration::from_millis(1 + random((5 << attempt.min(5)).min(100)))).await;
}

/// A key for a message: the long ones by their end.
fn shown(name: &str) -> &str {
    &name[name.len().saturating_sub(8)..]
}

impl Check {
    fn key(&self, name: &str) -> String {
        format!("{}:{name}", self.begins)
    }

    fn write(&self, name: &str, version: &str, text: &str) -> DocumentWrite {
        let document = Some(Document { version: version.to_owned(), text: text.to_owned() });
        DocumentWrite { key: self.key(name), document, ttl: TTL }
    }

    async fn get(&self, names: &[&str]) -> std::result::Result<Vec<Option<Document>>, String> {
        let keys = names.iter().map(|name| self.key(name)).collect();
        let found = in_time(self.store.get(keys)).await?;
        holds(found.len() == names.len(), "it returned another number of documents than there were keys")?;
        Ok(found)
    }

    async fn text(&self, name: &str) -> std::result::Result<Option<String>, String> {
        Ok(self.get(&[name]).await?.remove(0).map(|document| document.text))
    }

    async fn commit(
        &self,
        expected: &[(&str, Option<&str>)],
        writes: Vec<DocumentWrite>,
    ) -> std::result::Result<bool, String> {
        let expected = expected.iter().map(|(name, version)| (self.key(name), version.map(String::from))).collect();
        in_time(self.store.commit(expected, writes)).await
    }

    /// Commits what has to succeed. A store may take others for faster that were only there at the same time, such as a
    /// second check, so one false is none yet.
    async fn done(
        &self,
        expected: &[(&str, Option<&str>)],
        writes: Vec<DocumentWrite>,
    ) -> std::result::Result<bool, String> {
        for attempt in 1..ATTEMPTS {
            if self.commit(expected, writes.clone()).await? {
                return Ok(true);
            }
            pause(attempt).await;
        }
        self.commit(expected, writes).await
    }

    async fn reads_what_was_written(&self) -> Outcome {
        let text = r#"{"text":"a 'quoted' \"line\"\n\t\u0000 with \\ % _ ; -- $1 ü 日本 🦀 \u202e"}"#;
        let is_done = self.done(&[("a", None)], vec![self.write("a", "1", text)]).await?;
        holds(is_done, "a document that was not there was not made")?;
        let expected = Some(Document { version: "1".into(), text: text.into() });
        let found = self.get(&["a"]).await?;
        holds(found[0] == expected, "a document was not returned as it was written, version and text")?;
        holds(self.get(&["nothing"]).await?[0].is_none(), "a document was returned that nobody has written")?;
        let found = self.get(&["nothing", "a"]).await?;
        let is_ordered = found[0].is_none() && found[1] == expected;
        holds(is_ordered, "documents were not returned in the order of the keys, with nothing for those without one")
    }

    async fn tells_keys_apart(&self) -> Outcome {
        // A store that cuts long keys takes these two for one.
        let long = "k".repeat(LONG_KEY - 1 - self.key("").len());
        let (one, other) = (format!("{long}1"), format!("{long}2"));
        let names = ["Key", "key", "k_y", "k%y", "k*y", "{key}", "key ", "key:1", "a/b\\c'\"", &one, &other];
        // A space at the end of a key is not visible ASCII.
        let names: Vec<_> = names.into_iter().filter(|name| !name.contains(' ')).collect();
        for (at, name) in names.iter().enumerate() {
            let text = format!("{{\"text\":\"{at}\"}}");
            let is_done = self.done(&[(name, None)], vec![self.write(name, "1", &text)]).await?;
            holds(is_done, &format!("the key that ends in {:?} was taken for another", shown(name)))?;
        }
        let found = self.get(&names).await?;
        for (at, (name, document)) in names.iter().zip(found).enumerate() {
            let is_own = document.is_some_and(|document| document.text == format!("{{\"text\":\"{at}\"}}"));
            holds(is_own, &format!("the key that ends in {:?} was taken for another", shown(name)))?;
        }
        Ok(())
    }

    async fn takes_many_and_long_ones(&self) -> Outcome {
        let names: Vec<_> = (0..AT_ONCE).map(|at| format!("many:{at}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let expected: Vec<_> = names.iter().map(|name| (*name, None)).collect();
        let writes = names.iter().map(|name| self.write(name, "1", &format!("{{\"text\":\"{name}\"}}"))).collect();
        holds(self.done(&expected, writes).await?, "64 documents were not made at once")?;
        let is_own =
            |(name, found): (&&str, &Option<Document>)| found.as_ref().is_some_and(|it| it.text.contains(*name));
        let found = self.get(&names).await?;
        holds(names.iter().zip(&found).all(is_own), "64 documents were not returned in the order of their keys")?;
        let names: Vec<_> = (0..MANY).map(|at| format!("most:{at}")).collect();
        let of = |version| -> Vec<(&str, Option<&str>)> { names.iter().map(|name| (name.as_str(), version)).collect() };
        let writes = names.iter().map(|name| self.write(name, "1", "{\"text\":\"m\"}")).collect();
        holds(self.done(&of(None), writes).await?, "1,000 documents were not made at once")?;
        let gone = |name: &String| DocumentWrite { key: self.key(name), document: None, ttl: TTL };
        let is_done = self.done(&of(Some("1")), names.iter().map(gone).collect()).await?;
        holds(is_done, "1,000 documents were not removed at once")?;
        let long = format!("{{\"text\":\"{}\"}}", "ü".repeat(LONG / 2));
        holds(self.done(&[("long", None)], vec![self.write("long", "1", &long)]).await?, "4 MiB were not written")?;
        holds(self.text("long").await?.as_ref() == Some(&long), "4 MiB were not returned as they were written")
    }

    async fn compares(&self) -> Outcome {
        let one = || vec![self.write("compared", "1", "{\"text\":\"one\"}")];
        let two = || vec![self.write("compared", "2", "{\"text\":\"two\"}")];
        holds(self.done(&[("compared", None)], one()).await?, "a document that was not there was not made")?;
        holds(!self.commit(&[("compared", None)], two()).await?, "a document was there, and expected not to be")?;
        holds(!self.commit(&[("compared", Some("0"))], two()).await?, "a document had another version than expected")?;
        let is_as_before = self.text("compared").await?.as_deref() == Some("{\"text\":\"one\"}");
        holds(is_as_before, "a document was written although it had another version than expected")?;
        holds(self.done(&[("compared", Some("1"))], two()).await?, "the expected version was refused")?;
        holds(!self.commit(&[("compared", Some("1"))], one()).await?, "the version before the last was taken")?;
        holds(
            !self.commit(&[("not there", Some("1"))], vec![]).await?,
            "a document was not there, and expected to be",
        )?;
        holds(self.done(&[("compared", Some("2"))], vec![]).await?, "nothing to write, all as expected: true")?;
        holds(!self.commit(&[("compared", Some("1"))], vec![]).await?, "nothing to write, not as expected: false")
    }

    async fn does_all_or_nothing(&self) -> Outcome {
        let made = vec![self.write("left", "1", "{\"text\":\"l\"}"), self.write("right", "1", "{\"text\":\"r\"}")];
        holds(self.done(&[("left", None), ("right", None)], made).await?, "two documents were not made at once")?;
        let both = || vec![self.write("left", "2", "{\"text\":\"x\"}"), self.write("new", "2", "{\"text\":\"x\"}")];
        let expected = [("left", Some("1")), ("right", Some("2")), ("new", None)];
        let is_done = self.commit(&expected, both()).await?;
        holds(!is_done, "a document that is expected and not written had another version")?;
        let found = self.get(&["left", "right", "new"]).await?;
        let versions: Vec<_> = found.iter().map(|it| it.as_ref().map(|it| it.version.as_str())).collect();
        holds(versions == [Some("1"), Some("1"), None], "a part was written, although false was returned")?;
        let expected = [("left", Some("1")), ("right", Some("1")), ("new", None)];
        holds(self.done(&expected, both()).await?, "three documents as expected were not")
    }

    async fn removes(&self) -> Outcome {
        let gone = || vec![DocumentWrite { key: self.key("gone"), document: None, ttl: TTL }];
        let made = || vec![self.write("gone", "1", "{\"text\":\"g\"}")];
        holds(self.done(&[("gone", None)], made()).await?, "a document that was not there was not made")?;
        holds(!self.commit(&[("gone", Some("2"))], gone()).await?, "a document of another version was removed")?;
        holds(self.done(&[("gone", Some("1"))], gone()).await?, "a document was not removed")?;
        holds(self.text("gone").await?.is_none(), "a document that was removed was returned")?;
        holds(!self.commit(&[("gone", Some("1"))], made()).await?, "one that was removed had its version still")?;
        holds(self.done(&[("gone", None)], made()).await?, "one that was removed was not made again")
    }

    async fn counts_writers(&self) -> Outcome {
        let writers = (0..WRITERS).map(|writer| async move {
            let mut done = 0;
            let begun = Instant::now();
            while done < TIMES {
                holds(begun.elapsed() < TTL * 3, "writers hinder each other for ever")?;
                let found = self.get(&["count", "twin"]).await?;
                holds(found[0] == found[1], "documents were not returned as they were at one time")?;
                let of = |at: usize| found[at].as_ref().map(|it| it.version.clone());
                let count = found[0].as_ref().map_or(0, |it| it.text.len() - "{\"text\":\"\"}".len());
                let (count_of, twin_of) = (of(0), of(1));
                let (version, text) =
                    (format!("{writer}-{done}"), format!("{{\"text\":\"{}\"}}", "1".repeat(count + 1)));
                let writes = vec![self.write("count", &version, &text), self.write("twin", &version, &text)];
                let expected = [("count", count_of.as_deref()), ("twin", twin_of.as_deref())];
                if self.commit(&expected, writes).await? {
                    done += 1;
                }
            }
            Outcome::Ok(())
        });
        futures_util::future::try_join_all(writers).await?;
        let found = self.get(&["count", "twin"]).await?;
        let length = |it: &Option<Document>| it.as_ref().map_or(0, |it| it.text.len() - "{\"text\":\"\"}".len());
        holds(length(&found[0]) == WRITERS * TIMES, "of writers at the same time more than one was told true")?;
        holds(found[0] == found[1], "two documents that are written together were written by two")
    }

    async fn keeps_until_the_end(&self) -> Outcome {
        let short =
            |name: &str| DocumentWrite { ttl: Duration::from_secs(1), ..self.write(name, "1", "{\"text\":\"s\"}") };
        let begun = Instant::now();
        holds(self.done(&[("short", None)], vec![short("short")]).await?, "a document with 1 s was not made")?;
        holds(self.done(&[("longer", None)], vec![short("longer")]).await?, "a document with 1 s was not made")?;
        let again = vec![self.write("longer", "2", "{\"text\":\"l\"}")];
        let found = self.text("short").await?;
        holds(found.is_some() || begun.elapsed() > Duration::from_millis(700), "a document went before its time")?;
        // Time is what this is about.
        if self.done(&[("longer", Some("1"))], again).await? {
            tokio::time::sleep(Duration::from_millis(1500)).await;
            holds(self.text("longer").await?.is_some(), "a document went by the time of the write before")?;
        }
        // One that has ended may be there; if it is not, it can be made.
        for attempt in 1..=ATTEMPTS {
            let found = self.get(&["short"]).await?.remove(0);
            let version = found.as_ref().map(|it| it.version.as_str());
            if self.commit(&[("short", version)], vec![self.write("short", "3", "{\"text\":\"n\"}")]).await? {
                return Ok(());
            }
            pause(attempt).await;
        }
        Err("\"get\" and \"commit\" do not agree on a document whose time is over".into())
    }

    async fn waits(&self) -> Outcome {
        let made = vec![self.write("waited", "1", "{\"text\":\"w\"}")];
        holds(self.done(&[("waited", None)], made).await?, "a document that was not there was not made")?;
        // One that is not there is waited for, too.
        let both = |version: &str| vec![(self.key("comes"), None), (self.key("waited"), Some(version.to_owned()))];
        let wait = |version: &str, time| self.store.wait(both(version), time);
        let (short, long) = (Duration::from_millis(200), Duration::from_secs(20));
        let Some(waits) = wait("1", short) else { return Ok(()) };
        in_time(waits).await.map_err(|why| format!("200 ms without a change: {why}"))?;
        let Some(waits) = wait("0", long) else { return Ok(()) };
        in_time(waits).await.map_err(|why| format!("a document had another version already: {why}"))?;
        let Some(waits) = wait("1", long) else { return Ok(()) };
        let changes = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.done(&[("waited", Some("1"))], vec![self.write("waited", "2", "{\"text\":\"x\"}")]).await
        };
        let (waited, is_done) = tokio::join!(in_time(waits), changes);
        holds(is_done?, "the expected version was refused while somebody waited")?;
        waited.map_err(|why| format!("a document was changed: {why}"))?;
        let Some(waits) = wait("2", long) else { return Ok(()) };
        let made = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            self.done(&[("comes", None)], vec![self.write("comes", "1", "{\"text\":\"c\"}")]).await
        };
        let (waited, is_done) = tokio::join!(in_time(waits), made);
        holds(is_done?, "a document that was not there was not made while somebody waited")?;
        waited.map_err(|why| format!("a document was made: {why}"))
    }

    async fn tells_the_time(&self) -> Outcome {
        let Some(now) = self.store.now() else { return Ok(()) };
        let now = super::since_1970(in_time(now).await?);
        let days = 24 * 60 * 60 * 1000;
        holds((now - unix()).abs() < days, "it is not the time since 1970: more than a day from this machine's")?;
        let Some(later) = self.store.now() else { return Err("it told the time once only".into()) };
        let later = super::since_1970(in_time(later).await?);
        holds(later >= now && later - now < 60_000, "it goes backwards, or a minute in a moment")
    }

    /// Two processes with one session.
    async fn serves(&self) -> Outcome {
        let said = |trouble: Trouble| trouble.why;
        let options = StoreOptions {
            documents: Some(crate::store::Own(self.store.clone())),
            ..StoreOptions::new("").prefix("tricorn-check")
        };
        let name = self.begins.rsplit(':').next().unwrap_or_default();
        let process = || Redis::new(&options, name).map(Arc::new).map_err(|error| error.message().to_owned());
        let (a, b) = (process()?, process()?);
        let (own, other) = (Arc::new(Number::default()), Arc::new(Number::default()));
        a.keep_number("a", &own).await.map_err(said)?;
        b.keep_number("b", &other).await.map_err(said)?;
        holds(own.get() != other.get(), "two processes have one number")?;
        let mut follower = b.follow("b".into(), other.clone(), Arc::default());
        follower.begin().await.map_err(said)?;
        let (session, idle) = (session_key("checked"), 60_000);
        let told = SharedSession { revision: "checked".into(), params: "{}".into(), ..SharedSession::default() };
        a.begin_session("a", &session, &told, 0, idle).await.map_err(said)?;
        let found = b.session(&session, 0, idle).await.map_err(said)?;
        let Look::Session(found) = found else { return Err("a session was not found by the other process".into()) };
        holds(found.revision == told.revision, "a session was not found as it was begun")?;
        a.edit_session("a", &session, &[Edit::Set("l".into(), "error".into())], idle).await.map_err(said)?;
        a.publish("a", a.next_batch(), &[(Change::Resource("a:/1".into()), false)]).await.map_err(said)?;
        a.post(other.get(), &session, &Bytes::from_static(b"{}")).await.map_err(said)?;
        let mut left: BTreeMap<&str, bool> = ["session", "change", "message"].map(|name| (name, true)).into();
        let begun = Instant::now();
        while let Some((name, _)) = left.first_key_value() {
            let in_time = begun.elapsed() < DEADLINE * 4;
            holds(in_time, &format!("a {name} of one process was not heard of in the other"))?;
            for heard in heard(&mut follower).await.map_err(said)? {
                match heard {
                    Heard::Session(_) => drop(left.remove("session")),
                    Heard::Change(_) => drop(left.remove("change")),
                    Heard::FromClient { .. } => drop(left.remove("message")),
                    _ => {}
                }
            }
        }
        a.end_session("a", &session).await.map_err(said)?;
        let found = b.session(&session, found.version, idle).await.map_err(said)?;
        holds(found == Look::Ended, "a session that one process has ended goes on in the other")?;
        a.leave_number("a", &own).await;
        b.leave_number("b", &other).await;
        // The log would be there for a week.
        let log = format!("tricorn-check:{{{name}}}:changes:1");
        for attempt in 1..=ATTEMPTS {
            let found = in_time(self.store.get(vec![log.clone()])).await?;
            let version = found.into_iter().next().flatten().map(|it| it.version);
            let gone = DocumentWrite { key: log.clone(), document: None, ttl: TTL };
            if in_time(self.store.commit(vec![(log.clone(), version)], vec![gone])).await? {
                break;
            }
            pause(attempt).await;
        }
        Ok(())
    }
}

async fn heard(follower: &mut Follower) -> std::result::Result<Vec<Heard>, Trouble> {
    Ok(follower.next().await?.into_iter().map(|(_, heard)| heard).collect())
}
