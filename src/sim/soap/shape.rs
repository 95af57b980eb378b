//! VMware's type tables: what each type has, in which order, since which version (`shape.txt`).

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// A vim25 version, `8.0.3.0`; shorter ones compare as if filled with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version([u32; 4]);

impl Version {
    /// The version that a request without one is taken for: the oldest that clients still name.
    pub const OLDEST: Self = Self([2, 5, 0, 0]);

    /// Reads `8.0.3.0`; `2.5u2` is taken as 2.5.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = [0; 4];
        for (index, part) in text.split('.').enumerate() {
            let digits = part.split(|c: char| !c.is_ascii_digit()).next()?;
            *parts.get_mut(index)? = digits.parse().ok()?;
        }
        Some(Self(parts))
    }
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Of XML Schema: `string`, `int`, `boolean`, `dateTime`, `anyType` …
    Xsd(&'static str),
    /// A reference to a managed object.
    Ref(&'static str),
    /// An enumeration.
    Enum(&'static str),
    /// A data type.
    Data(&'static str),
}

impl Kind {
    fn parse(word: &'static str) -> Self {
        const XSD: [&str; 11] = [
            "anyType",
            "anyURI",
            "base64Binary",
            "boolean",
            "byte",
            "dateTime",
            "double",
            "float",
            "int",
            "long",
            "short",
        ];
        match word.split_at(1) {
            (">", name) => Self::Ref(name),
            ("=", name) => Self::Enum(name),
            _ if word == "string" || XSD.contains(&word) => Self::Xsd(word),
            _ => Self::Data(word),
        }
    }
}

/// A field of a type, or a parameter of a method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub name: &'static str,
    pub optional: bool,
    pub many: bool,
    pub kind: Kind,
    pub since: Version,
}

/// A method.
#[derive(Debug)]
pub(super) struct Method {
    pub since: Version,
    pub parameters: Vec<Field>,
}

/// A managed type or a data type.
#[derive(Debug)]
struct Type {
    base: Option<&'static str>,
    own: Vec<Field>,
    methods: BTreeMap<&'static str, Method>,
}

/// All types.
#[derive(Debug)]
pub(super) struct Shape(BTreeMap<&'static str, Type>);

/// The tables, read at first use.
pub(super) fn shape() -> &'static Shape {
    static SHAPE: OnceLock<Shape> = OnceLock::new();
    SHAPE.get_or_init(|| Shape::read(include_str!("shape.txt")))
}

impl Shape {
    /// Reads the table; a line that is not one is left out (a unit test reads every line).
    fn read(text: &'static str) -> Self {
        let mut types: BTreeMap<&'static str, Type> = BTreeMap::new();
        let (mut current, mut method) = ("", None);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&'static str> = line.split_whitespace().collect();
            // A field is set off by a space: there are fields named `method` and `data`.
            match (line.starts_with(' '), words.as_slice()) {
                (false, &["managed" | "data", name, base]) => {
                    (current, method) = (name, None);
                    let base = (base != "-").then_some(base);
                    types.insert(name, Type { base, own: Vec::new(), methods: BTreeMap::new() });
                }
                (false, &["method", name, since]) => {
                    method = Some(name);
                    if let (Some(known), Some(since)) = (types.get_mut(current), Version::parse(since)) {
                        known.methods.insert(name, Method { since, parameters: Vec::new() });
                    }
                }
                (true, &[name, word, since]) => {
                    let (Some(known), Some(since)) = (types.get_mut(current), Version::parse(since)) else { continue };
                    let many = name.ends_with("[]");
                    let bare = name.trim_end_matches("[]");
                    let optional = bare.ends_with('?');
                    let name = bare.trim_end_matches('?');
                    let field = Field { name, optional, many, kind: Kind::parse(word), since };
                    match method.and_then(|method| known.methods.get_mut(method)) {
                        Some(method) => method.parameters.push(field),
                        None => known.own.push(field),
                    }
                }
                _ => {}
            }
        }
        Self(types)
    }

    /// Whether the table has this type. Of others only the name is known.
    pub fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The type and what it is derived from, itself first.
    pub fn ancestry<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        std::iter::successors(Some(name), |name| self.0.get(name).and_then(|known| known.base))
    }

    /// Whether a type is another or derived from it.
    pub fn is_a(&self, name: &str, base: &str) -> bool {
        self.ancestry(name).any(|known| known == base)
    }

    /// A type and its bases, itself first.
    fn line(&'static self, name: &str) -> Vec<&'static Type> {
        let base = |known: &&'static Type| known.base.and_then(|base| self.0.get(base));
        std::iter::successors(self.0.get(name), base).collect()
    }

    /// All fields in the order of the wire: those of the base first.
    pub fn fields(&'static self, name: &str) -> Vec<&'static Field> {
        self.line(name).into_iter().rev().flat_map(|known| &known.own).collect()
    }

    /// One field.
    pub fn field(&'static self, name: &str, field: &str) -> Option<&'static Field> {
        self.line(name).into_iter().flat_map(|known| &known.own).find(|known| known.name == field)
    }

    /// A method of a managed type.
    pub fn method(&self, name: &str, method: &str) -> Option<&Method> {
        self.ancestry(name).filter_map(|name| self.0.get(name)).find_map(|known| known.methods.get(method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let text = include_str!("shape.txt");
        let starts = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        let read = shape();
        assert_eq!(read.0.len(), starts("managed ") + starts("data "));
        let methods: usize = read.0.values().map(|known| known.methods.len()).sum();
        assert_eq!(methods, starts("method "));
        let fields: usize = read
            .0
            .values()
            .map(|known| known.own.len() + known.methods.values().map(|method| method.parameters.len()).sum::<usize>())
            .sum();
        assert_eq!(fields, starts(" "));
    }

    #[test]
    fn fields_of_the_base_come_first_and_versions_compare() {
        let names: Vec<&str> = shape().fields("HostSriovInfo").iter().map(|field| field.name).collect();
        assert_eq!(names[..2], ["id", "dependentDevice"]);
        assert_eq!(names.last(), Some(&"maxVirtualFunctionSupported"));
        let mode = shape().field("HostGraphicsInfo", "vgpuMode").unwrap();
        assert_eq!(Some(mode.since), Version::parse("8.0.3.0"));
        assert!(
            Version::parse("8.0.2.0") < Version::parse("8.0.3") && Version::parse("9.0") > Version::parse("8.0.3.1")
        );
        assert_eq!(Version::parse("uA046D008"), None);
    }
}
