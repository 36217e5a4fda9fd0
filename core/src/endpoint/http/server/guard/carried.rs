//! Requests that the program itself carries out in place of this crate:
//! [`Auth::fetch_with`](crate::server::Auth::fetch_with).

use bytes::Bytes;
use http::header::CONTENT_TYPE;

use crate::auth::fetch::{Fetch, Fetched};
use crate::auth::resource::Fetcher;
use crate::endpoint::http::fetch::MAX_DECODED;
use crate::jsonrpc::heavier_than;

/// The longest answer.
const MAX_BODY: usize = 1 << 20;

/// # Errors
/// The reason why there is no answer, for people.
pub(super) async fn carried_out(fetcher: &Fetcher, fetch: &Fetch) -> Result<Fetched, String> {
    let mut request = http::Request::builder().method(fetch.method()).uri(&fetch.url);
    for (name, value) in &fetch.headers {
        request = request.header(*name, value);
    }
    let body = match &fetch.body {
        Some((media, text)) => {
            request = request.header(CONTENT_TYPE, *media);
            Bytes::from(text.clone())
        }
        None => Bytes::new(),
    };
    let request = request.body(body).map_err(|_| "the URL or a header cannot be sent".to_owned())?;
    let (head, body) = fetcher(request).await?.into_parts();
    if body.len() > MAX_BODY {
        return Err(format!("the answer is longer than {MAX_BODY} bytes"));
    }
    if heavier_than(&body, MAX_DECODED).is_some() {
        return Err("the answer has too many values".to_owned());
    }
    let headers = head.headers.iter();
    let headers = headers.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    Ok(Fetched { status: head.status.as_u16(), headers: headers.collect(), body })
}
