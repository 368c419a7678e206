//! A server with services, and requests to it.

use parlor_server::Config;
use parlor_server::admission::SigningKey;
use parlor_services::store::{OpenError, Role};
use parlor_services::{OnlineConfig, OnlineError, StartError, WebhookConfig, operator_token};
use parlor_testing::{Service, TestServer, local, within};
pub(crate) use parlor_testing::{Socket, told_service};
use parlor_transport::discovery::Registry;
use serde_json::json;

/// A server with a store, an operator's key, and perhaps a service that is told.
pub(crate) struct Hall {
    pub(crate) service: Service,
    key: SigningKey,
}

impl core::ops::Deref for Hall {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

/// What a hall's server is told.
pub(crate) struct Setup {
    pub(crate) config: Config,
    pub(crate) online: OnlineConfig,
}

impl Hall {
    pub(crate) async fn open() -> Self {
        Self::with(true, None).await
    }

    pub(crate) async fn with(is_open: bool, webhook: Option<WebhookConfig>) -> Self {
        Self::made(is_open, webhook, |_| {}).await
    }

    pub(crate) async fn changed(change: impl FnOnce(&mut Setup)) -> Self {
        Self::made(true, None, change).await
    }

    async fn made(is_open: bool, webhook: Option<WebhookConfig>, change: impl FnOnce(&mut Setup)) -> Self {
        let key = SigningKey::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let registry = Registry::at(folder.path().join("registry"));
        let operator_key = Some(key.write_new(&folder.path().join("operator")).unwrap());
        let backups = Some(folder.path().join("backups"));
        let store = folder.path().join("parlor.db").to_str().unwrap().to_owned();
        let mut setup = Setup {
            config: Config { registry: Some(registry.clone()), ..local() },
            online: OnlineConfig { is_open, operator_key, webhook, backups, ..OnlineConfig::new(store) },
        };
        change(&mut setup);
        let server = parlor_services::start(setup.config, setup.online).await.unwrap();
        Hall { service: Service::of(TestServer { server, registry, folder }).await, key }
    }

    /// Another server on the same store, after this one has said goodbye or, as by a kill, has not.
    pub(crate) async fn again(self, says_goodbye: bool) -> Self {
        self.again_with(says_goodbye, |_| {}, |_| {}).await
    }

    /// The same, with something done to the store's file between the two, and with a changed configuration.
    pub(crate) async fn again_with(
        self,
        says_goodbye: bool,
        between: impl FnOnce(&std::path::Path),
        change: impl Fn(&mut Setup),
    ) -> Self {
        let Service { server: TestServer { server, registry, folder }, document } = self.service;
        if says_goodbye {
            server.shutdown().await;
        } else {
            drop(server);
        }
        let setup = || {
            let mut setup = Setup {
                config: Config { registry: Some(registry.clone()), ..local() },
                online: OnlineConfig {
                    operator_key: Some(folder.path().join("operator.pub")),
                    ..OnlineConfig::new(folder.path().join("parlor.db").to_str().unwrap())
                },
            };
            change(&mut setup);
            setup
        };
        between(&folder.path().join("parlor.db"));
        let server = within(async {
            loop {
                let Setup { config, online } = setup();
                match parlor_services::start(config, online).await {
                    Ok(server) => return server,
                    // What was dropped lets go of its file when its threads have ended.
                    Err(StartError::Online(OnlineError::Store(OpenError::InUse { .. }))) => {
                        tokio::task::yield_now().await;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        })
        .await;
        let server = TestServer { server, registry, folder };
        Hall { service: Service { server, document }, key: self.key }
    }

    pub(crate) fn operator(&self, role: Role) -> String {
        operator_token(&self.key, role, "ops", "tanks", "production")
    }

    /// The key of the hall's operator, and so of the game's own service.
    pub(crate) fn key(&self) -> &SigningKey {
        &self.key
    }

    /// A token of an operator with this name, in an environment of the game.
    pub(crate) fn operator_named(&self, role: Role, name: &str, environment: &str) -> String {
        operator_token(&self.key, role, name, "tanks", environment)
    }

    /// A player opens a room, and somebody else joins it.
    pub(crate) async fn has_a_guest(&self, player: &str) {
        let opened = self.good("POST", "/rooms", player, json!({ "config": { "auto_start": false } })).await;
        let (guest, _) = self.player("guest").await;
        let join = format!("/rooms/{}/join", opened["room"]["id"].as_str().unwrap());
        self.good("POST", &join, &guest, json!({})).await;
    }
}
