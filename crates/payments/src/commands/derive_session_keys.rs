//! The session keys of a device that has joined (LoRaWAN 1.0.3 and 1.1, section 6.2.5).
//!
//! They are for network and application servers, so the answer has them in the clear, as the crypto service
//! of The Things Stack gives them. The root keys stay on shares.

use polyclave_cipher::Circuit;
use serde::{Deserialize, Serialize};

use crate::lorawan::{application_role, block, network_role};
use crate::payment::{KeyFacts, Payment, Role, check_roles};
use crate::wiring::Wiring;

/// Derives session keys. Key: NwkKey, which is AppKey in LoRaWAN 1.0; for the application's key of LoRaWAN
/// 1.1, AppKey. Answers 16 bytes for each key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeriveSessionKeys {
    /// JoinNonce, which is AppNonce in LoRaWAN 1.0.
    #[serde(with = "crate::hexadecimal")]
    pub join_nonce: [u8; 3],
    /// DevNonce.
    #[serde(with = "crate::hexadecimal")]
    pub dev_nonce: [u8; 2],
    /// Which keys.
    pub keys: SessionKeys,
}

/// Which session keys are derived.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionKeys {
    /// NwkSKey and AppSKey of LoRaWAN 1.0.
    V1_0 {
        /// The network's NetID.
        #[serde(with = "crate::hexadecimal")]
        net_id: [u8; 3],
    },
    /// FNwkSIntKey, SNwkSIntKey and NwkSEncKey of LoRaWAN 1.1.
    Network {
        /// JoinEUI.
        #[serde(with = "crate::hexadecimal")]
        join_eui: [u8; 8],
    },
    /// AppSKey of LoRaWAN 1.1.
    Application {
        /// JoinEUI.
        #[serde(with = "crate::hexadecimal")]
        join_eui: [u8; 8],
    },
    /// NwkSKey of LoRaWAN 1.0 alone, for who runs the network only.
    NetworkV1_0 {
        /// The network's NetID.
        #[serde(with = "crate::hexadecimal")]
        net_id: [u8; 3],
    },
    /// AppSKey of LoRaWAN 1.0 alone, for who runs the application only.
    ApplicationV1_0 {
        /// The network's NetID.
        #[serde(with = "crate::hexadecimal")]
        net_id: [u8; 3],
    },
}

impl DeriveSessionKeys {
    fn kinds(&self) -> &'static [u8] {
        match self.keys {
            SessionKeys::V1_0 { .. } => &[1, 2],
            SessionKeys::Network { .. } => &[1, 3, 4],
            SessionKeys::NetworkV1_0 { .. } => &[1],
            SessionKeys::Application { .. } | SessionKeys::ApplicationV1_0 { .. } => &[2],
        }
    }
}

impl Payment for DeriveSessionKeys {
    fn kind(&self) -> &'static str {
        "derive-session-keys"
    }

    fn roles(&self) -> Vec<Role> {
        match self.keys {
            SessionKeys::Application { .. } => vec![application_role()],
            _ => vec![network_role()],
        }
    }

    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String> {
        check_roles(&self.roles(), keys)
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        format!("derive-session-keys-{}", self.kinds().len())
    }

    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit {
        let (mut w, expanded) = Wiring::new(self, keys, element_bits);
        for _ in self.kinds() {
            let block = w.public(16);
            let key = w.encrypt(&expanded[0], &block);
            w.answer(&key);
        }
        w.finish()
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        let of = |kind: &u8| match &self.keys {
            SessionKeys::V1_0 { net_id }
            | SessionKeys::NetworkV1_0 { net_id }
            | SessionKeys::ApplicationV1_0 { net_id } => {
                block(&[&[*kind], &self.join_nonce, net_id, &self.dev_nonce])
            }
            SessionKeys::Network { join_eui } | SessionKeys::Application { join_eui } => {
                block(&[&[*kind], &self.join_nonce, join_eui, &self.dev_nonce])
            }
        };
        self.kinds().iter().flat_map(of).collect()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        vec![self.kinds().len() as u64]
    }
}
