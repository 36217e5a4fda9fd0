//! A store to be told what it does, and clients of it.

use std::sync::LazyLock;

use super::*;

/// A store that does what it is told, of which some fail.
#[derive(Default)]
pub(super) struct Shelf {
    pub(super) kept: Mutex<BTreeMap<String, (String, Duration)>>,
    does: Mutex<Does>,
    asked: AtomicU64,
}

#[derive(Default, Clone, Copy, PartialEq)]
pub(super) enum Does {
    #[default]
    Works,
    Fails,
    /// Changes nothing, and gives what there is.
    Reads,
    Hangs,
    /// Gives what there is, and takes nothing.
    HangsWriting,
    Panics,
    PanicsLater,
    GivesTooFew,
}

impl Shelf {
    pub(super) fn set_to(&self, does: Does) {
        *self.does.lock().expect("lock") = does;
    }

    pub(super) fn kept(&self) -> BTreeMap<String, (String, Duration)> {
        self.kept.lock().expect("lock").clone()
    }

    pub(super) fn answers(&self) -> Vec<(String, String)> {
        let texts = self.kept().into_iter().filter(|(key, _)| !key.contains(":mark:"));
        texts.map(|(key, (text, _))| (key, text)).collect()
    }

    pub(super) fn put(&self, key: &str, text: &str) {
        self.kept.lock().expect("lock").insert(key.to_owned(), (text.to_owned(), MARK));
    }

    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    fn answer<T: Send + 'static>(&self, writes: bool, value: impl FnOnce() -> T) -> BoxFuture<Result<T>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let does = *self.does.lock().expect("lock");
        match does {
            Does::Fails => Box::pin(async { Err(Error::new(ErrorKind::Transport, "no route")) }),
            Does::Reads if writes => Box::pin(async { Err(Error::new(ErrorKind::Transport, "read only")) }),
            Does::Hangs => Box::pin(std::future::pending()),
            Does::HangsWriting if writes => Box::pin(std::future::pending()),
            Does::Panics => panic!("as told"),
            Does::PanicsLater => Box::pin(async { panic!("as told") }),
            Does::Works | Does::Reads | Does::HangsWriting | Does::GivesTooFew => {
                let value = value();
                Box::pin(async move {
                    tokio::task::yield_now().await;
                    Ok(value)
                })
            }
        }
    }
}

impl CacheStore for Shelf {
    fn get(&self, keys: Vec<String>) -> BoxFuture<Result<Vec<Option<String>>>> {
        assert!(keys.len() <= 16);
        self.answer(false, || {
            let kept = self.kept();
            let few = *self.does.lock().expect("lock") == Does::GivesTooFew;
            keys.iter().skip(usize::from(few)).map(|key| kept.get(key).map(|(text, _)| text.clone())).collect()
        })
    }

    fn set(&self, key: String, text: String, ttl: Duration) -> BoxFuture<Result<()>> {
        assert_eq!(ttl, Duration::from_secs(ttl.as_secs()), "whole seconds");
        self.answer(true, || drop(self.kept.lock().expect("lock").insert(key, (text, ttl))))
    }

    fn delete(&self, key: String) -> BoxFuture<Result<()>> {
        self.answer(true, || drop(self.kept.lock().expect("lock").remove(&key)))
    }
}

pub(super) struct Now;

impl Clock for Now {
    fn now(&self) -> Duration {
        static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
        tokio::time::Instant::now().into_std().saturating_duration_since(*START)
    }

    fn later(&self, delay: Duration, work: Box<dyn FnOnce() + Send>) -> Guard {
        struct Abort(tokio::task::AbortHandle);
        impl Drop for Abort {
            fn drop(&mut self) {
                self.0.abort();
            }
        }
        let sleeps = async move {
            tokio::time::sleep(delay).await;
            work();
        };
        Box::new(Abort(tokio::spawn(sleeps).abort_handle()))
    }
}

#[derive(Default)]
pub(super) struct Warned(Mutex<Vec<String>>);

impl Events for Warned {
    fn warning(&self, message: &str) {
        self.0.lock().expect("lock").push(message.to_owned());
    }
}

/// A client's cache, and what its user is warned of.
pub(super) struct It {
    pub(super) cache: Arc<Cache>,
    warned: Arc<Warned>,
}

impl It {
    pub(super) fn of(shelf: &Arc<Shelf>, scope: &str) -> Self {
        Self::with(CacheOptions::new(), shelf, "server", scope)
    }

    /// One whose scope nobody else has.
    pub(super) fn alone(shelf: &Arc<Shelf>) -> Self {
        let place = Place { target: "server".into(), scope: "1".into(), has_address: true, renew: Some(|| "2".into()) };
        Self::at(place, CacheOptions::new(), shelf)
    }

    pub(super) fn with(options: CacheOptions, shelf: &Arc<Shelf>, target: &str, scope: &str) -> Self {
        let place = Place { target: target.into(), scope: scope.into(), has_address: true, renew: None };
        Self::at(place, options, shelf)
    }

    fn at(place: Place, options: CacheOptions, shelf: &Arc<Shelf>) -> Self {
        fn spawn(future: BoxFuture<()>) {
            tokio::spawn(future);
        }
        let warned = Arc::<Warned>::default();
        let outside = Outside { events: warned.clone(), clock: Arc::new(Now), spawn };
        Self { cache: Cache::anywhere(&options.store(shelf.clone()), place, &outside), warned }
    }

    pub(super) async fn look_as(&self, method: &str, params: Value, mode: CacheMode) -> Searched {
        let (params, options) = (RawJson::from_value(&params), CallOptions::new().cache(mode));
        match self.cache.look(|| Duration::ZERO, Revision::NEWEST, method, Some(&params), &options) {
            Look::Search(search) => search.done().await,
            Look::Plain | Look::Hit(_) | Look::Ask(_) => panic!("the store is asked"),
        }
    }

    pub(super) async fn look(&self, method: &str, params: Value) -> Option<Value> {
        match self.look_as(method, params, CacheMode::Default).await {
            Searched::Hit(result) => Some(result.to().expect("json")),
            Searched::Ask(_) => None,
        }
    }

    pub(super) async fn asks(&self, method: &str, params: Value) -> Box<super::super::super::search::Sent> {
        match self.look_as(method, params, CacheMode::Default).await {
            Searched::Ask(sent) => sent,
            Searched::Hit(result) => panic!("it was kept: {result}"),
        }
    }

    pub(super) async fn fill(&self, method: &str, params: Value, answer: &Value) {
        let given = self.asks(method, params).await.settle(Ok(RawJson::from_value(answer))).await;
        assert_eq!(given.expect("given"), RawJson::from_value(answer));
    }

    pub(super) fn warned(&self) -> Vec<String> {
        self.warned.0.lock().expect("lock").clone()
    }

    pub(super) fn failures(&self) -> u64 {
        self.cache.usage().failures
    }
}
