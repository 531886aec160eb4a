//! Discover Versions and Query: what is spoken and served here.

use super::call::Done;
use super::codes::{self, VERSIONS, Version, operation, tag};
use super::fields::Fields;
use super::refused::{Result, invalid};
use super::request::read_version;
use super::ttlv::{Value, Writer, put};

/// What the operation Query tells, by its functions.
const QUERY_OPERATIONS: u32 = 1;
const QUERY_OBJECTS: u32 = 2;
const QUERY_SERVER: u32 = 3;
/// Bytes of a response's payload.
const TOLD: usize = 512;

/// Which of these versions are spoken; all if none is named.
pub(super) struct DiscoverVersions(Vec<Version>);

impl DiscoverVersions {
    pub(super) fn read(payload: &mut Fields<'_>) -> Result<DiscoverVersions> {
        let versions = payload.all(tag::PROTOCOL_VERSION).into_iter().map(|value| match value {
            Value::Structure(items) => read_version(Fields(items)),
            _ => Err(invalid("protocol version")),
        });
        Ok(DiscoverVersions(versions.collect::<Result<_>>()?))
    }

    pub(super) fn done(&self) -> Done {
        let spoken = |version: &&Version| self.0.is_empty() || self.0.contains(version);
        Done::with(TOLD, |payload| {
            VERSIONS.iter().filter(spoken).for_each(|version| write_version(payload, *version));
        })
    }
}

/// What these functions of the operation Query tell. Others tell nothing here.
pub(super) struct Query(Vec<u32>);

impl Query {
    pub(super) fn read(payload: &mut Fields<'_>) -> Result<Query> {
        let functions = payload.all(tag::QUERY_FUNCTION).into_iter().map(|value| match value {
            Value::Enumeration(function) => Ok(function),
            _ => Err(invalid("query function")),
        });
        Ok(Query(functions.collect::<Result<_>>()?))
    }

    pub(super) fn done(&self) -> Done {
        Done::with(TOLD, |payload| {
            if self.0.contains(&QUERY_OPERATIONS) {
                for (one, _) in operation::SERVED {
                    put(payload, tag::OPERATION, Value::Enumeration(one));
                }
            }
            if self.0.contains(&QUERY_OBJECTS) {
                put(payload, tag::OBJECT_TYPE, Value::Enumeration(codes::SYMMETRIC_KEY));
            }
            if self.0.contains(&QUERY_SERVER) {
                put(payload, tag::VENDOR_IDENTIFICATION, Value::Text("Polyclave"));
            }
        })
    }
}

/// Writes a version of the protocol.
pub(super) fn write_version(writer: &mut Writer, (major, minor): Version) {
    writer.structure(tag::PROTOCOL_VERSION, |version| {
        put(version, tag::MAJOR, Value::Integer(major));
        put(version, tag::MINOR, Value::Integer(minor));
    });
}
