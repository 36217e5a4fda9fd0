use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::Result;

/// As [`BoxFuture`](crate::BoxFuture).
pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A store of the program's own that the processes of a server share, such as a table of a database: documents, which are
/// texts under keys, each with a version ([`StoreOptions::documents`](crate::server::StoreOptions::documents)).
///
/// Two operations are enough: documents are read, and written all or none if nobody has written some others meanwhile. In
/// SQL, in a transaction that is `SERIALIZABLE`, since row locks do not keep others from making what is not there; one that
/// fails for that reason (SQLSTATE 40001) is `false`:
///
/// ```sql
/// SELECT key, version FROM documents WHERE key IN (…);  -- each is the expected one, else ROLLBACK and false
/// INSERT INTO documents (key, version, text, expires) VALUES (…)
///   ON CONFLICT (key) DO UPDATE SET version = …, text = …, expires = …;
/// DELETE FROM documents WHERE key = …;
/// ```
///
/// Advisory locks of the keys, taken in order before the versions are read, keep the rules, too, and a long commit gets
/// through beside many short ones: `pg_advisory_xact_lock` of PostgreSQL, as `docs/guides/many-machines.md` shows.
///
/// A key is visible ASCII of at most 512 bytes, and letters of either case are different. A version is visible ASCII of at
/// most 32 bytes, used once. A text is JSON in UTF-8 without control characters, of some hundred bytes mostly, and of at
/// most 16 MiB.
///
/// Called from any thread and several times at once, never under a lock; must not block. What a request needs of the store,
/// a read, a write and their repetitions, has 2 s in all; the future is dropped then, and that counts as failed. While the
/// store fails, what needs none goes on, and the rest is refused. An error of kind [`Misuse`](crate::ErrorKind::Misuse)
/// from [`get`](Self::get) or [`commit`](Self::commit) refuses that one question, such as one with a text that is too long
/// for the database: it fails, is named once on standard error, and the store is asked the next as before.
/// [`check_document_store`](crate::server::check_document_store) tries all rules.
pub trait DocumentStore: Send + Sync + 'static {
    /// Returns the documents under these keys as they are at one time, in the order of the keys, at most 64: `None` for a
    /// key without one.
    fn get(&self, keys: Vec<String>) -> Boxed<Result<Vec<Option<Document>>>>;

    /// Does all of `writes` in one step, at most 1,024 with as many expected versions, and returns true, if the document under each key of `expected` still
    /// has this version, or is still not there where it is `None`. Else does nothing, and returns false.
    fn commit(&self, expected: Vec<(String, Option<String>)>, writes: Vec<DocumentWrite>) -> Boxed<Result<bool>>;

    /// Waits until a document under one of these keys has another version than this, or for `timeout`; too early is no
    /// error. `None`: it cannot tell, and is read ten times in a second. The default.
    fn wait(&self, seen: Vec<(String, Option<String>)>, timeout: Duration) -> Option<Boxed<Result<()>>> {
        let _ = (seen, timeout);
        None
    }

    /// Returns the store's time, for machines whose clocks do not agree to a second; it is asked once in a minute. `None`:
    /// the clock of this machine is right. The default.
    fn now(&self) -> Option<Boxed<Result<SystemTime>>> {
        None
    }
}

/// A text, and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Another one each time that the text is written.
    pub version: String,
    /// The text.
    pub text: String,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DocumentWrite {
    /// The key.
    pub key: String,
    /// Content of the key from now on. `None`: nothing.
    pub document: Option<Document>,
    /// Time after which nobody needs it any more, at least 1 s, in place of the one before. It may stay there for longer.
    pub ttl: Duration,
}

impl<S: DocumentStore + ?Sized> DocumentStore for Arc<S> {
    fn get(&self, keys: Vec<String>) -> Boxed<Result<Vec<Option<Document>>>> {
        (**self).get(keys)
    }

    fn commit(&self, expected: Vec<(String, Option<String>)>, writes: Vec<DocumentWrite>) -> Boxed<Result<bool>> {
        (**self).commit(expected, writes)
    }

    fn wait(&self, seen: Vec<(String, Option<String>)>, timeout: Duration) -> Option<Boxed<Result<()>>> {
        (**self).wait(seen, timeout)
    }

    fn now(&self) -> Option<Boxed<Result<SystemTime>>> {
        (**self).now()
    }
}
