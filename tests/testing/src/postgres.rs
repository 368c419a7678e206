//! A schema of its own on the PostgreSQL server that tests may use.

use std::hash::{BuildHasher, RandomState};
use tokio_postgres::{Client, NoTls};

/// A schema of its own. It goes when the test is through.
pub struct Scratch {
    /// The address of a store in it.
    pub address: String,
    /// A connection that is not the store's.
    pub operator: Client,
    /// Its name.
    pub schema: String,
}

/// Makes one, if there is a server.
pub async fn postgres() -> Option<Scratch> {
    let Ok(server) = std::env::var("PARLOR_POSTGRES") else {
        println!("skipped on PostgreSQL: PARLOR_POSTGRES names no server");
        return None;
    };
    Some(postgres_at(&server).await)
}

/// Makes one on this server.
pub async fn postgres_at(server: &str) -> Scratch {
    let (operator, connection) = tokio_postgres::connect(server, NoTls).await.expect("the server");
    tokio::spawn(connection);
    // The keys of a fresh one are random.
    let schema = format!("test_{:016x}", RandomState::new().hash_one(()));
    operator.batch_execute(&format!("CREATE SCHEMA {schema}")).await.expect("a schema");
    let joint = if server.contains('?') { '&' } else { '?' };
    let address = format!("{server}{joint}application_name={schema}&options=-csearch_path%3D{schema}");
    Scratch { address, operator, schema }
}

impl Scratch {
    /// Ends the store's connections. Gives how many there were.
    pub async fn end_connections(&self) -> usize {
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
        self.operator.query(end, &[&self.schema]).await.expect("the right to end them").len()
    }

    /// Removes the schema.
    pub async fn remove(self) {
        self.operator
            .batch_execute(&format!("DROP SCHEMA {} CASCADE", self.schema))
            .await
            .expect("no schema");
    }
}
