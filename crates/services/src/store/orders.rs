//! Orders: what each node of a cluster must do at once, such as to close the connections of a banned account.
//!
//! An order is stored in the transaction of its cause. Numbers of orders become visible out of order: a transaction that
//! took its number first may commit last. So a reader looks again at the newest numbers that it has read.

use super::error::StoreError;
use super::ids::{AccountId, SignInId};
use super::node::NodeName;
use super::sql::{Done, Sql, TableRow, now_us, params};
use super::{PAGE_MAX, Store};
use parlor_server::realm::Realm;

/// How many numbers before the newest one may become visible after it.
pub(crate) const OVERLAP: u64 = 1_000;
/// How long an order may become visible after one with a higher number: longer than any transaction.
const OVERLAP_US: u64 = 60_000_000;
/// How long an order is kept: longer than a node goes on without the store.
const KEPT_US: u64 = 24 * 60 * 60 * 1_000_000;

/// What the nodes must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OrderKind {
    /// An account was banned or deleted, for this reason.
    Ban(String),
    /// A ban was lifted.
    LiftBan,
    /// An account has another role.
    Role,
    /// A sign-in has ended; with `None` all of the account.
    SignOut(Option<SignInId>),
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) id: u64,
    /// The node that gave it, and has done it.
    pub(crate) node: String,
    pub(crate) realm: Realm,
    pub(crate) account: AccountId,
    /// `None` if this build does not know its kind.
    pub(crate) kind: Option<OrderKind>,
    /// When it was given, by the database's clock, in microseconds since 1970.
    pub(crate) at_us: u64,
}

/// Gives orders within transactions: in a cluster. A server alone gives none.
pub(super) struct Orders(Option<NodeName>);

impl Orders {
    pub(super) fn give(
        &self,
        sql: &mut dyn Sql,
        (realm, account): (&Realm, &AccountId),
        kind: &OrderKind,
    ) -> Done<()> {
        let Some(node) = &self.0 else { return Ok(()) };
        let (word, body) = match kind {
            OrderKind::Ban(reason) => ("ban", reason.as_str()),
            OrderKind::LiftBan => ("lift_ban", ""),
            OrderKind::Role => ("role", ""),
            OrderKind::SignOut(sign_in) => ("sign_out", sign_in.as_ref().map_or("", SignInId::as_str)),
        };
        sql.change(
            concat!(
                "INSERT INTO orders (node, realm, account, kind, body, at_us) VALUES ($1, $2, $3, $4, $5, ",
                now_us!(),
                ")"
            ),
            params![node.as_str(), realm, account, word, body],
        )
        .map(|_| ())
    }
}

impl Store {
    pub(super) fn orders(&self) -> Orders {
        Orders(self.node().cloned())
    }

    /// The number of the newest order; 0 if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn newest_order(&self) -> Result<u64, StoreError> {
        self.read(|sql| {
            let mut rows = sql.rows("SELECT COALESCE(MAX(id), 0) FROM orders", &[])?;
            rows.first_mut().map_or(Ok(0), |row| row.number(0))
        })
        .await
    }

    /// The first orders after `last`, and those up to it that may have become visible lately, by their numbers.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn orders_after(&self, last: u64) -> Result<Vec<Order>, StoreError> {
        self.read(move |sql| {
            let rows = sql.rows(
                concat!(
                    "SELECT id, node, realm, account, kind, body, at_us FROM orders
                     WHERE id > $1 OR (id > $2 AND at_us > ",
                    now_us!(),
                    " - $3) ORDER BY id LIMIT $4"
                ),
                params![last, last.saturating_sub(OVERLAP), OVERLAP_US, OVERLAP + PAGE_MAX as u64],
            )?;
            rows.into_iter().map(|mut row| read(&mut row)).collect()
        })
        .await
    }

    /// Deletes orders that every node has read. Returns how many.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn sweep_orders(&self) -> Result<u64, StoreError> {
        self.write_sparing(|sql| {
            sql.change(concat!("DELETE FROM orders WHERE at_us < ", now_us!(), " - $1"), params![KEPT_US])
        })
        .await
    }
}

fn read(row: &mut TableRow) -> Done<Order> {
    let (word, body) = (row.text(4)?, row.text(5)?);
    let kind = match word.as_str() {
        "ban" => Some(OrderKind::Ban(body)),
        "lift_ban" => Some(OrderKind::LiftBan),
        "role" => Some(OrderKind::Role),
        "sign_out" if body.is_empty() => Some(OrderKind::SignOut(None)),
        "sign_out" => Some(OrderKind::SignOut(Some(SignInId::new(&body)?))),
        _ => None,
    };
    Ok(Order {
        id: row.number(0)?,
        node: row.text(1)?,
        realm: Realm::from_path(&row.text(2)?)?,
        account: AccountId::new(&row.text(3)?)?,
        kind,
        at_us: row.number(6)?,
    })
}
