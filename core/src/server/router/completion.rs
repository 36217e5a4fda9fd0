//! Completion of arguments.

use std::sync::Arc;

use super::Router;
use crate::call::Link;
use crate::error::{Error, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::protocol::revision::shape;
use crate::protocol::{Call, Payload};
use crate::server::completion::{Asked, Completed, Found, find, result};
use crate::server::dispatch::{fail, start};
use crate::server::permits::may_use;

impl Router {
    pub(super) fn complete(&self, link: &Arc<dyn Link>, call: Call) {
        let asked = match Asked::read(call.params.as_ref()) {
            Ok(asked) => asked,
            Err(error) => return fail(link, &call, error),
        };
        let found = self.look(link, &call, |registry, changes| {
            if may_use(registry, changes, asked.kind, &asked.name, &call.context.transport) {
                return find(registry, changes, &asked);
            }
            let name = shortened(&asked.name, 100);
            let message = format!("{} {name:?} needs scopes that the request does not have", asked.kind.word());
            Err(Error::rpc(code::INVALID_REQUEST, message))
        });
        match found {
            Ok(Found::Handler(handler)) => {
                let shaper = Arc::new(Completed { common: self.common.clone() });
                let params = call.params.clone().unwrap_or_else(RawJson::empty_object);
                let rules = call.context.revision.rules();
                let params = shape::completion(rules, &params).unwrap_or(params);
                start(link, call, handler, Some(shaper), params);
            }
            Ok(Found::Values(values)) => {
                let result = result(values.into_iter().map(Into::into).collect(), None, None);
                link.clone().complete(call.id, Ok(Payload::Object(RawJson::from_value(&result))));
            }
            Err(error) => fail(link, &call, error),
        }
    }
}
