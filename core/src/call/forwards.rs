//! Delegation by a link to the one that it stands before.

/// The methods of [`Link`](crate::call::context::Link) that go to the link in this field as they come; `for a client`
/// without those that depend on the side.
macro_rules! forwards {
    ($link:tt) => {
        $crate::call::forwards::forwards!($link, for a client);

        fn log_level(&self) -> Option<$crate::protocol::LogLevel> {
            self.$link.log_level()
        }

        fn role(&self) -> $crate::protocol::Role {
            self.$link.role()
        }

        fn cork(&self) {
            self.$link.cork();
        }

        fn uncork(&self) {
            self.$link.uncork();
        }
    };
    ($link:tt, for a client) => {
        fn spawn(&self, future: $crate::call::handler::BoxFuture<()>) {
            self.$link.spawn(future);
        }

        fn block(&self, work: Box<dyn FnOnce() + Send>) {
            self.$link.block(work);
        }

        fn awaited(&self) -> usize {
            self.$link.awaited()
        }

        fn subscription(&self, uri: &str, begins: bool) -> $crate::error::Result<bool> {
            self.$link.subscription(uri, begins)
        }

        fn subscribe(&self, uri: &str, begins: bool) -> $crate::error::Result<()> {
            self.$link.subscribe(uri, begins)
        }

        fn declares(&self, capability: &str) -> bool {
            self.$link.declares(capability)
        }

        fn declares_extension(&self, id: &str) -> bool {
            self.$link.declares_extension(id)
        }

        fn session(&self) -> &$crate::call::context::SessionSlot {
            self.$link.session()
        }

        fn clock(&self) -> std::sync::Arc<dyn $crate::call::context::Clock> {
            self.$link.clock()
        }

        fn number(&self) -> u64 {
            self.$link.number()
        }

        fn is_heard(&self) -> bool {
            self.$link.is_heard()
        }

        fn is_read(&self, call: $crate::protocol::CallId) -> bool {
            self.$link.is_read(call)
        }

        fn take_up(&self, call: $crate::protocol::CallId) {
            self.$link.take_up(call);
        }
    };
}

pub(crate) use forwards;
