//! One connection, to a server, to a cluster, or to a program's own store.

use redis::aio::MultiplexedConnection;
use redis::cluster_async::ClusterConnection;
use redis::{FromRedisValue, Pipeline, RedisResult};

/// A connection; a clone is the same one.
#[derive(Clone)]
pub(super) enum Link {
    Single(Box<MultiplexedConnection>),
    Cluster(Box<ClusterConnection>),
    Own(Box<super::documents::Wire>),
    #[cfg(test)]
    Simulated(Box<super::simulated::Wire>),
}

impl Link {
    /// Sends all commands at once, and reads their answers.
    pub(super) async fn ask<T: FromRedisValue>(&mut self, pipe: &Pipeline) -> RedisResult<T> {
        match self {
            Self::Single(link) => pipe.query_async(link.as_mut()).await,
            Self::Cluster(link) => pipe.query_async(link.as_mut()).await,
            Self::Own(link) => pipe.query_async(link.as_mut()).await,
            #[cfg(test)]
            Self::Simulated(link) => pipe.query_async(link.as_mut()).await,
        }
    }
}
