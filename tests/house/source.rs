//! A source file as the rules see it: every path that it names, with the line, in code, in attributes
//! and in macros.

use proc_macro2::{Ident, Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, Macro, Meta, UseTree};

/// A path that a file names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// From the root of the crate if `inside`, else as written; a glob ends in `*`.
    pub path: Vec<String>,
    /// Whether it begins at the root of the crate.
    pub inside: bool,
    /// Line, from 1.
    pub line: usize,
}

/// What was found in a file.
#[derive(Debug, Default)]
pub struct Source {
    /// Paths.
    pub named: Vec<Named>,
    /// Names of macros that are called.
    pub macros: Vec<(String, usize)>,
    /// `super` that climbs above the root.
    pub lost: Vec<usize>,
}

/// The module of a file: `src/a/b.rs` and `src/a/b/mod.rs` are `a::b`.
pub fn module_of(path: &str) -> Vec<String> {
    let inner = path.strip_prefix("src/").unwrap_or(path).trim_end_matches(".rs");
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// Reads a file.
pub fn read(path: &str, text: &str) -> Result<Source, String> {
    let file = syn::parse_file(text).map_err(|error| format!("{path}: does not parse: {error}"))?;
    let mut reader = Reader { module: module_of(path), found: Source::default() };
    reader.visit_file(&file);
    Ok(reader.found)
}

struct Reader {
    module: Vec<String>,
    found: Source,
}

impl Reader {
    /// Takes note of a path as written in the current module.
    fn note(&mut self, written: &[String], line: usize) {
        let Some(first) = written.first() else { return };
        let mut path: Vec<String>;
        let inside = matches!(first.as_str(), "crate" | "super" | "self");
        match first.as_str() {
            "crate" => path = written[1..].to_vec(),
            "self" | "super" => {
                path = self.module.clone();
                let mut rest = written;
                if rest[0] == "self" {
                    rest = &rest[1..];
                }
                while rest.first().is_some_and(|part| part == "super") {
                    if path.pop().is_none() {
                        self.found.lost.push(line);
                        return;
                    }
                    rest = &rest[1..];
                }
                path.extend(rest.iter().cloned());
            }
            _ => path = written.to_vec(),
        }
        self.found.named.push(Named { path, inside, line });
    }

    fn tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        let leaf = |ident: &Ident, reader: &mut Self| {
            let mut path = before.clone();
            if ident != "self" || path.is_empty() {
                path.push(ident.to_string());
            }
            reader.note(&path, ident.span().start().line);
        };
        match tree {
            UseTree::Name(name) => leaf(&name.ident, self),
            UseTree::Rename(name) => leaf(&name.ident, self),
            UseTree::Glob(glob) => {
                let mut path = before.clone();
                path.push("*".to_owned());
                self.note(&path, glob.star_token.spans[0].start().line);
            }
            UseTree::Path(inner) => {
                before.push(inner.ident.to_string());
                self.tree(&inner.tree, before);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, before);
                }
            }
        }
    }

    /// Paths in tokens: `a::b`, and `a::{b, c::d}` as in a use tree.
    fn tokens(&mut self, tokens: TokenStream, before: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Ident(ident) => {
                    let line = ident.span().start().line;
                    let mut path = before.to_vec();
                    path.push(ident.to_string());
                    at += 1;
                    let mut group = None;
                    while double_colon(&tokens, at) {
                        match tokens.get(at + 2) {
                            Some(TokenTree::Ident(next)) => {
                                path.push(next.to_string());
                                at += 3;
                            }
                            Some(TokenTree::Group(inner)) => {
                                group = Some(inner.stream());
                                at += 3;
                            }
                            Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                                path.push("*".to_owned());
                                at += 3;
                            }
                            _ => at += 2,
                        }
                    }
                    if matches!(tokens.get(at), Some(TokenTree::Punct(bang)) if bang.as_char() == '!')
                        && matches!(tokens.get(at + 1), Some(TokenTree::Group(_)))
                        && let Some(name) = path.last()
                    {
                        self.found.macros.push((name.clone(), line));
                    }
                    match group {
                        Some(inner) => self.tokens(inner, &path),
                        None => self.note(&path, line),
                    }
                }
                TokenTree::Group(group) => {
                    self.tokens(group.stream(), &[]);
                    at += 1;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
            }
        }
    }
}

fn double_colon(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize, spacing: Option<Spacing>| {
        matches!(tokens.get(at), Some(TokenTree::Punct(punct))
            if punct.as_char() == ':' && spacing.is_none_or(|spacing| punct.spacing() == spacing))
    };
    colon(at, Some(Spacing::Joint)) && colon(at + 1, None)
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.tree(&item.tree, &mut Vec::new());
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if let Some(first) = path.segments.first() {
            self.note(&written, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {
        // `pub(super)` names no import.
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        if let Some(name) = called.path.segments.last() {
            self.found.macros.push((name.ident.to_string(), name.ident.span().start().line));
        }
        self.tokens(called.tokens.clone(), &[]);
        visit::visit_macro(self, called);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        // `#[doc]` links are no imports; `#[serde(with = "crate::a::b")]` is one.
        if attribute.path().is_ident("doc") {
            return;
        }
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone(), &[]);
            for literal in literals(list.tokens.clone()) {
                if literal.value().contains("::")
                    && let Ok(path) = literal.parse::<syn::Path>()
                {
                    self.visit_path(&path);
                }
            }
        }
        visit::visit_attribute(self, attribute);
    }
}

fn literals(tokens: TokenStream) -> Vec<syn::LitStr> {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Literal(_) => syn::parse2(token.into()).into_iter().collect(),
            TokenTree::Group(group) => literals(group.stream()),
            TokenTree::Ident(_) | TokenTree::Punct(_) => Vec::new(),
        })
        .collect()
}
