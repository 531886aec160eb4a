//! The attributes of objects. In versions 1 of KMIP an attribute is a structure of its name, as a text, and
//! its value. In versions 2 it is an item with a tag of its own. Here the tag is what it is known by.

use super::codes::{self, V1_4, V2, Version, tag};
use super::fields::Fields;
use super::object::Object;
use super::refused::{Reason, Refused, Result, invalid, missing};
use super::ttlv::{Item, Value, Writer, put};

/// Those that are served, with their names in versions 1.
const NAMES: [(u32, &str); 13] = [
    (tag::UNIQUE_IDENTIFIER, "Unique Identifier"),
    (tag::NAME, "Name"),
    (tag::OBJECT_TYPE, "Object Type"),
    (tag::CRYPTOGRAPHIC_ALGORITHM, "Cryptographic Algorithm"),
    (tag::CRYPTOGRAPHIC_LENGTH, "Cryptographic Length"),
    (tag::CRYPTOGRAPHIC_PARAMETERS, "Cryptographic Parameters"),
    (tag::CRYPTOGRAPHIC_USAGE_MASK, "Cryptographic Usage Mask"),
    (tag::STATE, "State"),
    (tag::INITIAL_DATE, "Initial Date"),
    (tag::ACTIVATION_DATE, "Activation Date"),
    (tag::DEACTIVATION_DATE, "Deactivation Date"),
    (tag::SENSITIVE, "Sensitive"),
    (tag::EXTRACTABLE, "Extractable"),
];

/// Reads the attributes that a request to make or to find an object names.
pub(super) fn read<'m>(payload: &mut Fields<'m>, version: Version, makes: bool) -> Result<Fields<'m>> {
    if version >= V2 {
        return Ok(payload.structure(tag::ATTRIBUTES)?.unwrap_or(Fields(Vec::new())));
    }
    match makes {
        true => {
            let mut template =
                payload.structure(tag::TEMPLATE_ATTRIBUTE)?.ok_or_else(|| missing("template attribute"))?;
            let read = named(&mut template);
            template.end()?;
            read
        }
        false => named(payload),
    }
}

/// Reads attributes that are named by texts.
fn named<'m>(of: &mut Fields<'m>) -> Result<Fields<'m>> {
    let one = |value| {
        let Value::Structure(items) = value else { return Err(invalid("attribute")) };
        let mut fields = Fields(items);
        let name = fields.text(tag::ATTRIBUTE_NAME)?.ok_or_else(|| missing("attribute name"))?;
        if fields.integer(tag::ATTRIBUTE_INDEX)?.is_some_and(|index| index != 0) {
            return Err(Reason::InvalidField.because("attributes have one value here"));
        }
        let value = fields.take(tag::ATTRIBUTE_VALUE)?.ok_or_else(|| missing("attribute value"))?;
        fields.end()?;
        let known = NAMES.iter().find(|(_, known)| *known == name);
        let (tag, _) = known.ok_or_else(|| not_served(name))?;
        Ok(Item { tag: *tag, value })
    };
    Ok(Fields(of.all(tag::ATTRIBUTE).into_iter().map(one).collect::<Result<_>>()?))
}

fn not_served(name: &str) -> Refused {
    let shown: String = name.chars().take(64).filter(|c| !c.is_control()).collect();
    Reason::InvalidField.because(format!("the attribute {shown:?} is not served here"))
}

/// Takes the attribute Name, which is the name of a key.
pub(super) fn name<'m>(of: &mut Fields<'m>) -> Result<Option<&'m str>> {
    let Some(mut fields) = of.structure(tag::NAME)? else { return Ok(None) };
    let name = fields.text(tag::NAME_VALUE)?.ok_or_else(|| missing("name value"))?;
    if fields.enumeration(tag::NAME_TYPE)?.is_some_and(|kind| kind != codes::UNINTERPRETED) {
        return Err(Reason::InvalidField.because("a name is an uninterpreted text here"));
    }
    fields.end()?;
    Ok(Some(name))
}

/// Reads which attributes are asked for; all if none is named. What is not served is left out: objects do not
/// have it.
pub(super) fn asked_for(payload: &mut Fields<'_>, version: Version) -> Result<Option<Vec<u32>>> {
    let of = if version >= V2 { tag::ATTRIBUTE_REFERENCE } else { tag::ATTRIBUTE_NAME };
    let named = payload.all(of);
    if named.is_empty() {
        return Ok(None);
    }
    let mut tags = Vec::new();
    for value in named {
        let known = match value {
            Value::Enumeration(tag) if version >= V2 => NAMES.iter().find(|(known, _)| *known == tag),
            Value::Text(name) if version < V2 => NAMES.iter().find(|(_, known)| *known == name),
            // An attribute of a vendor, of which objects have none.
            Value::Structure(_) if version >= V2 => None,
            _ => return Err(invalid("name of an attribute")),
        };
        if let Some((tag, _)) = known
            && !tags.contains(tag)
        {
            tags.push(*tag);
        }
    }
    Ok(Some(tags))
}

/// The attributes that an object has: all, or those of some that it has.
pub(super) fn of(object: &Object, version: Version, some: Option<Vec<u32>>) -> Vec<u32> {
    let has = |tag: &u32| match *tag {
        tag::NAME => object.is_current,
        tag::DEACTIVATION_DATE => object.expires().is_some(),
        tag::SENSITIVE | tag::EXTRACTABLE => version >= V1_4,
        // They are taken when a key is made. What the key is for says the usage mask.
        tag::CRYPTOGRAPHIC_PARAMETERS => false,
        _ => true,
    };
    some.unwrap_or_else(|| NAMES.iter().map(|(tag, _)| *tag).collect()).into_iter().filter(has).collect()
}

/// Writes the names of attributes.
pub(super) fn write_names(to: &mut Writer, version: Version, tags: &[u32]) {
    for tag in tags {
        match version >= V2 {
            true => put(to, tag::ATTRIBUTE_REFERENCE, Value::Enumeration(*tag)),
            false => put(to, tag::ATTRIBUTE_NAME, Value::Text(name_of(*tag))),
        }
    }
}

/// Writes attributes of an object with their values.
pub(super) fn write(to: &mut Writer, version: Version, tags: &[u32], (object, now): (&Object, i64)) {
    if version >= V2 {
        return to.structure(tag::ATTRIBUTES, |all| {
            tags.iter().for_each(|tag| write_value(all, *tag, *tag, (object, now)));
        });
    }
    for tag in tags {
        to.structure(tag::ATTRIBUTE, |one| {
            put(one, tag::ATTRIBUTE_NAME, Value::Text(name_of(*tag)));
            write_value(one, tag::ATTRIBUTE_VALUE, *tag, (object, now));
        });
    }
}

/// Writes the value of an attribute under a tag.
fn write_value(to: &mut Writer, under: u32, attribute: u32, (object, now): (&Object, i64)) {
    let (algorithm, bits) = object.kind().unwrap_or_default();
    let value = match attribute {
        tag::NAME => {
            return to.structure(under, |name| {
                put(name, tag::NAME_VALUE, Value::Text(&object.info.properties.name));
                put(name, tag::NAME_TYPE, Value::Enumeration(codes::UNINTERPRETED));
            });
        }
        tag::UNIQUE_IDENTIFIER => return put(to, under, Value::Text(&object.identifier())),
        tag::OBJECT_TYPE => Value::Enumeration(codes::SYMMETRIC_KEY),
        tag::CRYPTOGRAPHIC_ALGORITHM => Value::Enumeration(algorithm),
        tag::CRYPTOGRAPHIC_LENGTH => Value::Integer(bits as i32),
        tag::CRYPTOGRAPHIC_USAGE_MASK => Value::Integer(object.usage_mask() as i32),
        tag::STATE => Value::Enumeration(object.state(now)),
        tag::INITIAL_DATE | tag::ACTIVATION_DATE => Value::DateTime(object.made()),
        tag::DEACTIVATION_DATE => Value::DateTime(object.expires().unwrap_or_default()),
        // No key leaves the nodes over KMIP.
        tag::SENSITIVE => Value::Boolean(true),
        tag::EXTRACTABLE => Value::Boolean(false),
        _ => return,
    };
    put(to, under, value);
}

fn name_of(tag: u32) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == tag).map_or("", |(_, name)| name)
}
