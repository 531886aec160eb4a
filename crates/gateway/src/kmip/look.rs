//! Locate, Get Attributes and Get Attribute List. A client finds the keys for which it has the right to list.

use polyclave_api::{KeyVersion, Right};
use polyclave_client::Listed;

use super::attributes;
use super::call::{Call, Done, Placeholder, key, now};
use super::codes;
use super::codes::{V1_3, Version, tag};
use super::fields::Fields;
use super::object::Object;
use super::refused::{Reason, Refused, Result};
use super::ttlv::{Value, put};

/// The most objects of one response to Locate.
const MOST_LOCATED: usize = 200;
/// Bytes of one identifier in a response, and of all attributes of an object.
const IDENTIFIER: usize = 112;
const ATTRIBUTES: usize = 2048;

/// Which objects are to be found.
pub(super) struct Locate {
    name: Option<String>,
    object: Option<u32>,
    algorithm: Option<u32>,
    length: Option<i32>,
    state: Option<u32>,
    most: usize,
    offset: usize,
}

impl Locate {
    pub(super) fn read(payload: &mut Fields<'_>, version: Version) -> Result<Locate> {
        let most = payload.count(tag::MAXIMUM_ITEMS)?.unwrap_or(MOST_LOCATED).min(MOST_LOCATED);
        let offset = payload.count(tag::OFFSET_ITEMS)?.unwrap_or_default();
        let mut of = attributes::read(payload, version, false)?;
        let name = attributes::name(&mut of)?.map(str::to_owned);
        let object = of.enumeration(tag::OBJECT_TYPE)?;
        let algorithm = of.enumeration(tag::CRYPTOGRAPHIC_ALGORITHM)?;
        let (length, state) = (of.integer(tag::CRYPTOGRAPHIC_LENGTH)?, of.enumeration(tag::STATE)?);
        of.end()?;
        Ok(Locate { name, object, algorithm, length, state, most, offset })
    }

    /// Whether all keys are listed for it.
    pub(super) fn lists_all(&self) -> bool {
        self.name.is_none()
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        let version = call.version;
        let found = match &self.name {
            Some(name) if call.may(Right::List, name).is_err() => Vec::new(),
            Some(name) if polyclave_config::check_name("key", name).is_err() => Vec::new(),
            Some(name) => {
                let name = name.clone();
                match call.ask(move |client| Object::all(client, &name)).await {
                    Err(Refused { reason: Reason::ItemNotFound, .. }) => Vec::new(),
                    found => found?,
                }
            }
            None => {
                let mut found = call.ask(|client| Ok(by_name(client.keys()?.keys))).await?;
                found.retain(|object| call.may(Right::List, &object.info.properties.name).is_ok());
                found
            }
        };
        let now = now();
        let fitting: Vec<&Object> = found.iter().filter(|object| self.fits(object, now)).collect();
        let located: Vec<String> =
            fitting.iter().skip(self.offset).take(self.most).map(|object| object.identifier()).collect();
        let mut done = Done::with(64 + located.len() * IDENTIFIER, |payload| {
            if version >= V1_3 {
                let all = i32::try_from(fitting.len()).unwrap_or(i32::MAX);
                put(payload, tag::LOCATED_ITEMS, Value::Integer(all));
            }
            for identifier in &located {
                put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
            }
        });
        // If it is not just one, what comes next in the batch must not mean what came before.
        done.placeholder = Placeholder::Now(<[String; 1]>::try_from(located).ok().map(|[only]| only));
        Ok(done)
    }

    fn fits(&self, object: &Object, now: i64) -> bool {
        let is = |wanted: Option<u32>, value: u32| wanted.is_none_or(|wanted| wanted == value);
        let (algorithm, bits) = object.kind().unwrap_or_default();
        let name = &object.info.properties.name;
        self.name.as_ref().is_none_or(|wanted| object.is_current && wanted == name)
            && is(self.object, codes::SYMMETRIC_KEY)
            && is(self.algorithm, algorithm)
            && self.length.is_none_or(|wanted| u32::try_from(wanted) == Ok(bits))
            && is(self.state, object.state(now))
    }
}

/// The objects among keys that are in the order of their names.
fn by_name(listed: Vec<Listed>) -> Vec<Object> {
    let mut names: Vec<Vec<Listed>> = Vec::new();
    for one in listed {
        match names.last_mut() {
            Some(same) if same[0].info.properties.name == one.info.properties.name => same.push(one),
            _ => names.push(vec![one]),
        }
    }
    let objects = |mut same: Vec<Listed>| {
        // Of a version that nodes show differently, what most of them show is first.
        same.sort_by_key(|one| std::cmp::Reverse((one.info.version, one.at.len())));
        Object::of(same.into_iter().map(|one| one.info).collect())
    };
    names.into_iter().flat_map(objects).collect()
}

/// Attributes of an object: with their values, or only which there are.
pub(super) struct GetAttributes {
    key: KeyVersion,
    some: Option<Vec<u32>>,
    values: bool,
}

impl GetAttributes {
    pub(super) fn read(
        payload: &mut Fields<'_>,
        (version, placeholder): (Version, Option<&str>),
        values: bool,
    ) -> Result<GetAttributes> {
        let key = key(payload, placeholder)?;
        let some = if values { attributes::asked_for(payload, version)? } else { None };
        Ok(GetAttributes { key, some, values })
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::List, &self.key.name)?;
        let object = call.ask(move |client| Object::find(client, &self.key)).await?;
        let tags = attributes::of(&object, call.version, self.some);
        Ok(Done::to(object.identifier(), ATTRIBUTES, |payload, identifier| {
            put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
            match self.values {
                true => attributes::write(payload, call.version, &tags, (&object, now())),
                false => attributes::write_names(payload, call.version, &tags),
            }
        }))
    }
}
