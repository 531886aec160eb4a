//! A handle to a protocol that nodes serve with.

use std::convert::identity;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::engine::{Erased, Handle, protocol_config};
use super::service_session::{AnyServiceSession, ErasableService, ErasedServiceSession};
use super::values::AnySetup;
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::service::{Element, Refreshed, ServiceConfig, Sharing, Stored};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::stock::{Kind, Stock};
use crate::{GuessGuard, Party, PartySet, Result};

/// A protocol with its parameters that nodes serve with: a handle to what implements [`ServiceConfig`].
pub struct AnyServiceConfig(Box<dyn ServiceConfig<Setup = AnySetup, Session = AnyServiceSession>>);

impl AnyServiceConfig {
    /// A handle to a protocol.
    pub fn new<S>(config: S) -> AnyServiceConfig
    where
        S: ServiceConfig<Setup: 'static, Session: ErasableService>,
    {
        let handle: fn(S::Session) -> AnyServiceSession = |session| Handle(Box::new(session));
        AnyServiceConfig(Box::new(Erased { config, handle }))
    }
}

impl ProtocolConfig for AnyServiceConfig {
    protocol_config!(self => self.0; AnyServiceSession; identity, identity, identity);
}

/// [`ServiceConfig`] with handles, as [`protocol_config`].
macro_rules! service_config {
    ($this:ident => $inner:expr; $of:expr, $made:expr, $joined:expr) => {
        fn quorum(&$this) -> usize {
            $inner.quorum()
        }

        fn save_setup(&$this, setup: &AnySetup) -> Zeroizing<Vec<u8>> {
            $inner.save_setup($of(setup))
        }

        fn restore_setup(&$this, me: Party, bytes: &[u8]) -> Result<AnySetup> {
            $inner.restore_setup(me, bytes).map($made)
        }

        fn renew(&$this, setup: &AnySetup, net: &mut dyn Net) -> Result<AnySetup> {
            $inner.renew($of(setup), net).map($made)
        }

        fn kinds(&$this, me: Party) -> Vec<Kind> {
            $inner.kinds(me)
        }

        fn keeps_stock(&$this) -> bool {
            $inner.keeps_stock()
        }

        fn has_mac_key(&$this) -> bool {
            $inner.has_mac_key()
        }

        fn guard_guesses(&$this, setup: &AnySetup, guard: Arc<dyn GuessGuard>) {
            $inner.guard_guesses($of(setup), guard);
        }

        fn make_material(
            &$this,
            setup: &AnySetup,
            stream: Stream,
            kind: &Kind,
            count: usize,
            net: &mut dyn Net,
        ) -> Result<Zeroizing<Vec<u8>>> {
            $inner.make_material($of(setup), stream, kind, count, net)
        }

        fn join_stocked(
            &$this,
            setup: &AnySetup,
            stream: Stream,
            serving: PartySet,
            stock: Arc<dyn Stock>,
        ) -> Result<AnyServiceSession> {
            $inner.join_stocked($of(setup), stream, serving, stock).map($joined)
        }

        fn refresh(
            &$this,
            old: &AnySetup,
            new: &AnySetup,
            stream: Stream,
            stored: &[Stored<'_>],
            net: &mut dyn Net,
        ) -> Result<Refreshed> {
            $inner.refresh($of(old), $of(new), stream, stored, net)
        }

        fn for_many(&$this) -> Option<AnyServiceConfig> {
            $inner.for_many()
        }

        fn sharing(&$this) -> Option<Sharing> {
            $inner.sharing()
        }

        fn components(&$this) -> Vec<PartySet> {
            $inner.components()
        }

        fn combine(&$this, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
            $inner.combine(serving, messages)
        }

        fn combine_elements(&$this, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
            $inner.combine_elements(serving, messages)
        }
    };
}

impl<S> ServiceConfig for Erased<S, dyn ErasedServiceSession>
where
    S: ServiceConfig<Setup: 'static>,
{
    service_config!(self => self.config; AnySetup::of, AnySetup::new, self.handle);
}

impl ServiceConfig for AnyServiceConfig {
    service_config!(self => self.0; identity, identity, identity);
}
