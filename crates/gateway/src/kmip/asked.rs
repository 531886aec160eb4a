//! What an item of a batch asks for.

use super::call::{Call, Done};
use super::codes::{Version, operation};
use super::create::Create;
use super::crypt::{Decrypt, Encrypt, Mac};
use super::life::{Activate, Destroy, Revoke};
use super::look::{GetAttributes, Locate};
use super::mac_verify::MacVerify;
use super::refused::{Reason, Result};
use super::rekey::Rekey;
use super::request::BatchItem;
use super::tell::{DiscoverVersions, Query};

/// See the [module](self).
pub(super) enum Asked {
    DiscoverVersions(DiscoverVersions),
    Query(Query),
    Create(Create),
    Locate(Locate),
    GetAttributes(GetAttributes),
    Activate(Activate),
    Revoke(Revoke),
    Destroy(Destroy),
    Encrypt(Encrypt),
    Decrypt(Decrypt),
    Mac(Mac),
    MacVerify(MacVerify),
    Rekey(Rekey),
}

impl Asked {
    /// Reads the payload of an item. `placeholder` is the object that is meant if it names none.
    pub(super) fn read(item: BatchItem<'_>, version: Version, placeholder: Option<&str>) -> Result<Asked> {
        let mut payload = item.payload;
        let of = &mut payload;
        let asked = match item.operation {
            operation::DISCOVER_VERSIONS => Asked::DiscoverVersions(DiscoverVersions::read(of)?),
            operation::QUERY => Asked::Query(Query::read(of)?),
            operation::CREATE => Asked::Create(Create::read(of, version)?),
            operation::LOCATE => Asked::Locate(Locate::read(of, version)?),
            operation::GET_ATTRIBUTES => {
                Asked::GetAttributes(GetAttributes::read(of, (version, placeholder), true)?)
            }
            operation::GET_ATTRIBUTE_LIST => {
                Asked::GetAttributes(GetAttributes::read(of, (version, placeholder), false)?)
            }
            operation::ACTIVATE => Asked::Activate(Activate::read(of, placeholder)?),
            operation::REVOKE => Asked::Revoke(Revoke::read(of, placeholder)?),
            operation::DESTROY => Asked::Destroy(Destroy::read(of, placeholder)?),
            operation::ENCRYPT => Asked::Encrypt(Encrypt::read(of, placeholder)?),
            operation::DECRYPT => Asked::Decrypt(Decrypt::read(of, placeholder)?),
            operation::MAC => Asked::Mac(Mac::read(of, placeholder)?),
            operation::MAC_VERIFY => Asked::MacVerify(MacVerify::read(of, placeholder)?),
            operation::REKEY => Asked::Rekey(Rekey::read(of, version, placeholder)?),
            operation::GET | operation::EXPORT => {
                let why = "keys never leave the nodes: let them encrypt, decrypt or compute codes";
                return Err(Reason::NotExtractable.because(why));
            }
            operation::REGISTER | operation::IMPORT => {
                let why =
                    "a key would come to this gateway in the clear: import it with `polyclave key import`";
                return Err(Reason::OperationNotSupported.because(why));
            }
            _ => return Err(Reason::OperationNotSupported.because("this operation is not served")),
        };
        payload.end()?;
        Ok(asked)
    }

    /// Whether the nodes list all keys for it.
    pub(super) fn lists_all(&self) -> bool {
        matches!(self, Asked::Locate(asked) if asked.lists_all())
    }

    /// Does it.
    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        match self {
            Asked::DiscoverVersions(asked) => Ok(asked.done()),
            Asked::Query(asked) => Ok(asked.done()),
            Asked::Create(asked) => asked.done(call).await,
            Asked::Locate(asked) => asked.done(call).await,
            Asked::GetAttributes(asked) => asked.done(call).await,
            Asked::Activate(asked) => asked.done(call).await,
            Asked::Revoke(asked) => asked.done(call).await,
            Asked::Destroy(asked) => asked.done(call).await,
            Asked::Encrypt(asked) => asked.done(call).await,
            Asked::Decrypt(asked) => asked.done(call).await,
            Asked::Mac(asked) => asked.done(call).await,
            Asked::MacVerify(asked) => asked.done(call).await,
            Asked::Rekey(asked) => asked.done(call).await,
        }
    }
}
