//! Tasks of a build without stores: no other process knows of them.

use std::sync::Arc;
use std::time::Duration;

use super::Tasks;
use crate::call::{Context, Link};
use crate::jsonrpc::RawJson;
use crate::protocol::Call;
use crate::store::Owner;

/// Nothing.
#[derive(Default)]
pub(super) struct Afar(());

#[expect(clippy::unused_self, reason = "as with stores")]
impl Tasks {
    pub(super) const SHARED_BYTES: Option<usize> = None;

    pub(super) const fn is_shared(&self) -> bool {
        let Afar(()) = self.afar;
        false
    }

    pub(super) const fn shares(&self, _: &Owner, _: &Arc<str>, _: &Context, _: Duration, _: bool) {}

    pub(super) const fn changed(&self, _: &str, _: bool) {}

    pub(super) fn drops<'a>(&self, _: impl IntoIterator<Item = &'a str>) {}

    pub(super) fn lapsed<'a>(&self, _: impl IntoIterator<Item = &'a str>) {}

    pub(super) const fn leaves(&self, _: &super::State, _: Option<&[Owner]>, _: &str) {}

    pub(super) const fn end_watches(&self, _: &crate::error::Error) {}

    pub(super) fn serve_shared(&self, _: &Arc<dyn Link>, call: Call, _: &Owner, _: usize) -> Option<Call> {
        Some(call)
    }

    pub(super) const fn extension_afar(&self, _: &Arc<dyn Link>, _: &Call, _: &Owner, _: &str) -> bool {
        false
    }

    pub(super) const fn last_heard(&self, _: &str) -> Option<(u64, RawJson)> {
        None
    }
}
