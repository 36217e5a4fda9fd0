//! One HTTP exchange: where it goes, what it shows, and what is followed.

use bytes::Bytes;
use http::header::HeaderMap;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;

#[cfg(feature = "auth")]
use super::authorize;
use super::pool::Answer;
use crate::client::Tapping;
use crate::endpoint::http::client::{MAX_REDIRECTS, Shared};
use crate::error::Result;

impl Shared {
    /// Posts one message.
    pub(super) async fn post(
        &self,
        headers: impl Fn(&mut HeaderMap),
        body: &Bytes,
        repeatable: bool,
    ) -> Result<Answer> {
        self.exchange(Method::POST, headers, body, repeatable, false).await
    }

    /// Something came on the stream of this name, which it has where somebody wants to see it.
    pub(super) fn came(&self, on: Option<&str>, frame: &Bytes) {
        if let Some(on) = on {
            self.show(|tap| tap.passes_on(false, on, frame));
        }
    }

    /// One exchange, seen by who wants to see it.
    pub(super) async fn exchange(
        &self,
        verb: Method,
        headers: impl Fn(&mut HeaderMap),
        body: &Bytes,
        repeatable: bool,
        quiet: bool,
    ) -> Result<Answer> {
        let on = self.show(|tap| {
            let on = tap.exchange(verb.as_str());
            if !body.is_empty() {
                tap.passes_on(true, &on, body);
            }
            on
        });
        let mut answer = self.exchange_unseen(verb, headers, body, repeatable, quiet).await?;
        if let Some(on) = &on {
            self.show(|tap| tap.answered(on, answer.head.status.as_u16()));
        }
        answer.on = on;
        Ok(answer)
    }

    /// Shows something to the tap, if there is one.
    fn show<T>(&self, look: impl FnOnce(&Tapping) -> T) -> Option<T> {
        self.peer.upgrade()?.tap().map(look)
    }

    /// One exchange, with a token where the server wants one. A `quiet` one has nobody who waits for it: no user is asked
    /// to log in for it.
    async fn exchange_unseen(
        &self,
        verb: Method,
        headers: impl Fn(&mut HeaderMap),
        body: &Bytes,
        repeatable: bool,
        quiet: bool,
    ) -> Result<Answer> {
        #[cfg(not(feature = "auth"))]
        let _ = quiet;
        #[cfg(feature = "auth")]
        if let Some(authorizer) = &self.authorizer {
            let mut trial = authorize::Trial::new(quiet);
            loop {
                let access = Box::pin(authorizer.access()).await?;
                if let Some(access) = &access {
                    self.show(|tap| tap.sends_token(access.token()));
                }
                let show = |out: &mut HeaderMap, path: &Uri| {
                    headers(out);
                    if let Some(access) = &access {
                        access.put(out, &verb, &self.target.url_of(path));
                    }
                };
                let mut answer = self.exchange_once(&verb, show, body, repeatable).await?;
                answer.shown = access.as_ref().map(authorize::Access::shown);
                if !Box::pin(authorizer.is_refused(&answer.head, access.as_ref(), &mut trial)).await? {
                    return Ok(answer);
                }
                // Read, so that the connection can be used again.
                let _ = answer.collect(self.limits.max_message_bytes).await;
            }
        }
        self.exchange_once(&verb, |out, _| headers(out), body, repeatable).await
    }

    /// Returns a future that waits for the next token, where only a user can get one.
    #[cfg(feature = "auth")]
    pub(super) fn renewal(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        self.authorizer.as_ref()?.renewal()
    }

    #[cfg(not(feature = "auth"))]
    #[expect(clippy::unused_self, reason = "as with access tokens")]
    pub(super) fn renewal(&self) -> Option<std::future::Ready<()>> {
        None
    }

    /// Redirects are followed within the origin when they keep method and body.
    async fn exchange_once(
        &self,
        verb: &Method,
        headers: impl Fn(&mut HeaderMap, &Uri),
        body: &Bytes,
        repeatable: bool,
    ) -> Result<Answer> {
        let (mut path, pair) = {
            let state = self.lock();
            let pair = state.pair.clone().flatten().filter(|_| *verb == Method::POST);
            (pair.clone().unwrap_or_else(|| state.path.clone()), pair.is_some())
        };
        for _ in 0..=MAX_REDIRECTS {
            let request = || {
                let mut request = Request::new(Full::new(body.clone()));
                *request.method_mut() = verb.clone();
                *request.uri_mut() = path.clone();
                *request.headers_mut() = self.target.headers(verb).clone();
                headers(request.headers_mut(), &path);
                request
            };
            let answer = self.pool.send(request, repeatable).await?;
            let status = answer.head.status;
            if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                return Ok(answer);
            }
            let Some(to) = answer.head.location().and_then(|location| self.target.redirected(location)) else {
                return Ok(answer);
            };
            let _ = answer.collect(self.limits.max_message_bytes).await;
            if status == StatusCode::PERMANENT_REDIRECT && !pair {
                self.lock().path = to.clone();
            }
            path = to;
        }
        Err(self.pool.failed("too many redirects"))
    }
}
