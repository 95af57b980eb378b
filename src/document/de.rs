//! A tree of nodes to a typed value: an own serde deserializer.
//!
//! Why an own one: it can go on after an unknown or a duplicate key and report them all, it tells a
//! wrong value in the words of these documents, and it gives [`crate::model::At`] its place (asked
//! for by the shape that `At` derives: a struct `At` of `value` and `place`), so that model/ needs
//! to know no YAML crate.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde::de::value::{StrDeserializer, U32Deserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};

use super::fault::{Fault, NodeId, id};
use super::nearest;
use super::source::is_secret;
use super::tree::{Entry, Node, Spot, Value};

/// What all deserializers of a document share.
pub(super) struct Context<'c> {
    /// The file, for places.
    pub(super) file: &'c str,
    /// Mistakes that did not stop the reading.
    pub(super) faults: RefCell<Vec<Fault>>,
    /// Whether a value that can do nothing is a mistake: in what people wish. A World says what live
    /// systems hold, and those hold anything.
    pub(super) strict: bool,
    /// Nodes that were found wrong before: they are passed over, so that what follows them is read.
    pub(super) wrong: BTreeSet<NodeId>,
}

/// The way to a node, for messages: `spec.gpus[0].mode`.
#[derive(Clone, Copy)]
pub(super) enum Path<'p> {
    Root(&'p str),
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl Path<'_> {
    /// Whether what is written here may be a secret.
    fn is_secret(&self) -> bool {
        match self {
            Path::Root(_) => false,
            Path::Key(parent, key) => is_secret(key) || parent.is_secret(),
            Path::Index(parent, _) => parent.is_secret(),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root(name) => f.write_str(name),
            Path::Key(parent, key) => write!(f, "{parent}.{key}"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// Reads one node.
#[derive(Clone, Copy)]
pub(super) struct De<'n> {
    pub(super) node: &'n Node,
    /// Where to point when something is missing in the node: its key.
    pub(super) from: Spot,
    pub(super) path: &'n Path<'n>,
    pub(super) context: &'n Context<'n>,
}

impl<'n> De<'n> {
    fn expected(&self, what: &str) -> Fault {
        let Self { node, from, path, .. } = self;
        match &node.value {
            Value::Blank => Fault::at(*from, format!("`{path}` has no value: expected {what}"))
                .hint("give it a value, or remove the key"),
            found => {
                let found = if path.is_secret() { found.kind() } else { found.describe() };
                Fault::at(node.spot, format!("`{path}`: expected {what}, found {found}"))
            }
        }
    }

    fn text(&self, what: &str) -> Result<&'n str, Fault> {
        match &self.node.value {
            Value::Scalar { text, .. } => Ok(text),
            Value::Null => Err(self.expected(what).hint("quote it if text is meant")),
            _ => Err(self.expected(what)),
        }
    }

    /// A plain scalar, for numbers and booleans.
    fn plain(&self, what: &str) -> Result<&'n str, Fault> {
        match &self.node.value {
            Value::Scalar { text, plain: true } => Ok(text),
            // Quoted: most likely the quotes are the mistake, unless it is no number at all.
            Value::Scalar { text, plain: false }
                if text.parse::<f64>().is_ok() || text == "true" || text == "false" =>
            {
                Err(self.expected(what).hint("remove the quotes"))
            }
            _ => Err(self.expected(what)),
        }
    }

    fn integer<T: std::str::FromStr + fmt::Display>(&self, min: T, max: T) -> Result<T, Fault> {
        let what = format!("a whole number from {min} to {max}");
        let text = self.plain(&what)?;
        let digits = text.strip_prefix('-').unwrap_or(text);
        // Only plain decimal: 010, 0x1F, 1_000 and 1e3 mean different things to different readers.
        let decimal = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
        if !decimal {
            return Err(self.expected(&what));
        }
        text.parse().map_err(|_| self.expected(&what))
    }

    fn map(&self, what: &str) -> Result<&'n [Entry], Fault> {
        match &self.node.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.expected(what)),
        }
    }

    fn list(&self) -> Result<&'n [Node], Fault> {
        match &self.node.value {
            Value::List(items) => Ok(items),
            _ => Err(self.expected("a list")),
        }
    }

    /// The entries without those whose key stands a second time, which are noted.
    fn distinct(&self, entries: &'n [Entry]) -> Vec<&'n Entry> {
        let mut first: HashMap<&str, u32> = HashMap::new();
        let mut distinct = Vec::with_capacity(entries.len());
        for entry in entries {
            let name = entry.name();
            if let Some(line) = first.get(name) {
                let message = format!("`{name}` stands twice in `{}`: first in line {line}", self.path);
                self.context.faults.borrow_mut().push(Fault::at(entry.key.spot, message).hint("keep one of them"));
            } else {
                first.insert(name, entry.key.spot.line);
                distinct.push(entry);
            }
        }
        distinct
    }

    fn visit_map<'de, V: Visitor<'de>>(
        self,
        entries: &'n [Entry],
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let mut keep = self.distinct(entries);
        let mut told: Vec<&str> = Vec::new();
        keep.retain(|entry| {
            let wrong = self.context.wrong.contains(&id(&entry.value));
            if wrong {
                told.push(entry.name());
            }
            !wrong
        });
        if let Some(fields) = fields {
            keep.retain(|entry| {
                let known = fields.contains(&entry.name());
                if !known {
                    told.extend(self.unknown_key(entry, fields));
                }
                known
            });
        }
        for entry in &keep {
            // The keys of a map are values, too.
            let key = fields.is_none().then(|| self.useless(&entry.key, &Path::Key(self.path, "key"))).flatten();
            let fault = key.or_else(|| self.useless(&entry.value, &Path::Key(self.path, entry.name())));
            self.context.faults.borrow_mut().extend(fault);
        }
        visitor.visit_map(Entries { de: self, entries: keep.into_iter(), current: None }).map_err(|mut fault| {
            if let (Some(field), None) = (fault.missing, fault.spot) {
                fault.message = format!("`{field}` is missing in `{}`", self.path);
                let noted = |faults: &[Fault]| faults.iter().any(|noted| noted.spot == Some(self.node.spot));
                fault.told = told.contains(&field) || noted(&self.context.faults.borrow());
            }
            fault.or_at(self.from)
        })
    }

    /// Notes an unknown key; gives the key that it was meant to be.
    fn unknown_key(&self, entry: &Entry, fields: &'static [&'static str]) -> Option<&'static str> {
        let near = nearest(entry.name(), fields.iter().copied());
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if fields.is_empty() => "it takes no keys: write `{}`".to_owned(),
            None => format!("keys here: {}", fields.join(", ")),
        };
        let message = format!("unknown key `{}` in `{}`", entry.name(), self.path);
        self.context.faults.borrow_mut().push(Fault::at(entry.key.spot, message).hint(hint));
        near
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ident),+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            let value = self.integer($type::MIN, $type::MAX)?;
            visitor.$visit(value).map_err(|fault: Fault| fault.or_at(self.node.spot))
        })+
    };
}

impl<'de> Deserializer<'de> for De<'_> {
    type Error = Fault;

    integers!(
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    );

    /// Text, list or mapping, as it is written: nothing is guessed from the look of a scalar.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Blank | Value::Null => visitor.visit_unit(),
            Value::Scalar { text, .. } => visitor.visit_str(text),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.plain("true or false")? {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(self.expected("true or false")),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.plain("a number")?.parse::<f64>() {
            Ok(value) if value.is_finite() => visitor.visit_f64(value),
            _ => Err(self.expected("a number")),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(self.text("text")?).map_err(|fault: Fault| fault.or_at(self.node.spot))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    /// `null` is none, as the schema has it; a key without a value is a mistake.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Blank => Err(self.expected("a value")),
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.node.value {
            Value::Blank | Value::Null => visitor.visit_unit(),
            _ => Err(self.expected("nothing")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_unit(visitor)
    }

    /// A newtype parses its text: its error gets the place of the node.
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self).map_err(|fault| fault.or_at(self.node.spot))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let access = Items { de: self, items: self.list()?.iter().enumerate() };
        visitor.visit_seq(access).map_err(|fault| fault.or_at(self.node.spot))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.visit_map(self.map("a mapping")?, None, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        if name == "At" && fields == ["value", "place"] {
            return visitor.visit_map(AtAccess { de: self, next: AtPart::Value });
        }
        self.visit_map(self.map("a mapping")?, Some(fields), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (name, spot, content) = match &self.node.value {
            Value::Scalar { text, .. } => (text.as_str(), self.node.spot, None),
            Value::Map(entries) => match entries.as_slice() {
                [entry] => (entry.name(), entry.key.spot, Some(&entry.value)),
                [] => return Err(self.expected(&format!("one of {}", variants.join(", ")))),
                [_, second, ..] => {
                    let given: Vec<String> = entries.iter().map(|entry| format!("`{}`", entry.name())).collect();
                    let message = format!("`{}` has {}: it takes exactly one", self.path, given.join(" and "));
                    return Err(
                        Fault::at(second.key.spot, message).hint(format!("keep one of {}", variants.join(", ")))
                    );
                }
            },
            _ => return Err(self.expected(&format!("one of {}", variants.join(", ")))),
        };
        if !variants.contains(&name) {
            let hint = match nearest(name, variants.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("one of {}", variants.join(", ")),
            };
            return Err(Fault::at(spot, format!("`{}`: there is no `{name}`", self.path)).hint(hint));
        }
        let path = Path::Key(self.path, name);
        visitor.visit_enum(Variant { de: self, name, spot, content, path: &path })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }
}

struct Items<'n> {
    de: De<'n>,
    items: std::iter::Enumerate<std::slice::Iter<'n, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let De { context, path, .. } = self.de;
        let next = self.items.by_ref().find(|(_, node)| !context.wrong.contains(&id(node)));
        let Some((index, node)) = next else { return Ok(None) };
        let path = Path::Index(path, index);
        context.faults.borrow_mut().extend(self.de.useless(node, &path));
        let de = De { node, from: node.spot, path: &path, context: self.de.context };
        seed.deserialize(de).map(Some).map_err(|fault| fault.or_within(node))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'n> {
    de: De<'n>,
    entries: std::vec::IntoIter<&'n Entry>,
    current: Option<&'n Entry>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        self.current = self.entries.next();
        let Some(entry) = self.current else { return Ok(None) };
        let key = De { node: &entry.key, from: entry.key.spot, path: self.de.path, context: self.de.context };
        seed.deserialize(key).map(Some).map_err(|fault| fault.or_at(entry.key.spot))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some(entry) = self.current.take() else {
            return Err(Fault::custom("a value was asked for before its key"));
        };
        let path = Path::Key(self.de.path, entry.name());
        let de = De { node: &entry.value, from: entry.key.spot, path: &path, context: self.de.context };
        seed.deserialize(de).map_err(|fault| fault.or_within(&entry.value))
    }
}

/// Gives [`crate::model::At`] its value and its place.
struct AtAccess<'n> {
    de: De<'n>,
    next: AtPart,
}

enum AtPart {
    Value,
    Place,
    End,
}

impl<'de> MapAccess<'de> for AtAccess<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let key = match self.next {
            AtPart::Value => "value",
            AtPart::Place => "place",
            AtPart::End => return Ok(None),
        };
        let key: StrDeserializer<'_, Fault> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let spot = self.de.node.spot;
        if matches!(self.next, AtPart::Value) {
            self.next = AtPart::Place;
            seed.deserialize(self.de).map_err(|fault| fault.or_at(spot))
        } else {
            self.next = AtPart::End;
            let place = PlaceAccess { file: self.de.context.file, spot, next: 0 };
            seed.deserialize(de::value::MapAccessDeserializer::new(place))
        }
    }
}

/// The three fields of [`crate::model::Place`].
struct PlaceAccess<'n> {
    file: &'n str,
    spot: Spot,
    next: usize,
}

impl<'de> MapAccess<'de> for PlaceAccess<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some(key) = ["file", "line", "column"].get(self.next) else { return Ok(None) };
        let key: StrDeserializer<'_, Fault> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        self.next += 1;
        let number = |value: u32| -> U32Deserializer<Fault> { value.into_deserializer() };
        match self.next {
            1 => {
                let file: StrDeserializer<'_, Fault> = self.file.into_deserializer();
                seed.deserialize(file)
            }
            2 => seed.deserialize(number(self.spot.line)),
            _ => seed.deserialize(number(self.spot.column)),
        }
    }
}

struct Variant<'n> {
    de: De<'n>,
    name: &'n str,
    spot: Spot,
    content: Option<&'n Node>,
    path: &'n Path<'n>,
}

impl<'n> Variant<'n> {
    fn content(&self) -> Result<De<'n>, Fault> {
        match self.content {
            Some(node) => Ok(De { node, from: self.spot, path: self.path, context: self.de.context }),
            None => Err(Fault::at(self.spot, format!("`{}` is a mapping", self.path))
                .hint(format!("write `{{{}: {{}}}}`", self.name))),
        }
    }
}

impl<'de, 'n> EnumAccess<'de> for Variant<'n> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Fault> {
        let name: StrDeserializer<'_, Fault> = self.name.into_deserializer();
        let value = seed.deserialize(name).map_err(|fault| fault.or_at(self.spot))?;
        Ok((value, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.content {
            None => Ok(()),
            Some(_) => Err(Fault::at(self.spot, format!("`{}` takes no value", self.path))
                .hint(format!("write `{}` alone", self.name))),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        let content = self.content()?;
        content.context.faults.borrow_mut().extend(content.useless(content.node, content.path));
        seed.deserialize(content).map_err(|fault| fault.or_at(content.node.spot))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.content()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        let content = self.content()?;
        content.visit_map(content.map("a mapping")?, Some(fields), visitor)
    }
}
