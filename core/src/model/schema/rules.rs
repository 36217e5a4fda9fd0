//! A schema as rules that lead to each other by number: each subschema is read once, however often it is referred to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jsonschema::Draft;
use serde_json::{Map, Number, Value};

use super::pattern::{Pattern, Patterns, cache};
use super::reference::{References, Target, address, children, year};

/// The most schemas that lead to each other at one place of a value.
const MAX_CHAIN: usize = 128;

/// The number of a schema.
pub(super) type Id = u32;

#[derive(Debug)]
pub(super) struct Node {
    /// JSON Pointer.
    pub(super) place: Box<str>,
    pub(super) resource: u32,
    /// Its rules; one that takes the rest of what the others have looked at comes last.
    pub(super) rules: Vec<Rule>,
    /// True if one of them does.
    pub(super) tracks: bool,
}

#[derive(Debug)]
pub(super) enum Rule {
    Never,
    Types(Types),
    Const(Value, usize),
    Enum(Vec<Value>, usize),
    Minimum(Number, bool),
    Maximum(Number, bool),
    MultipleOf(Number),
    Length(Option<usize>, Option<usize>),
    Pattern(Arc<Pattern>),
    Items(Option<usize>, Option<usize>),
    Unique,
    Properties(Option<usize>, Option<usize>),
    Required(Vec<String>),
    Needs(Vec<(String, Vec<String>)>),
    Ref(Id),
    Dynamic { first: Id, name: Option<Box<str>> },
    Dialect(Draft),
    AllOf(Vec<Id>),
    AnyOf(Vec<Id>),
    OneOf(Vec<Id>),
    Not(Id),
    If { condition: Id, then: Option<Id>, otherwise: Option<Id> },
    Depends(Vec<(String, Id)>),
    Object { known: HashMap<String, Id>, patterns: Vec<(Arc<Pattern>, Id)>, rest: Option<Id> },
    Names(Id),
    Array { prefix: Vec<Id>, rest: Option<Id> },
    Contains { schema: Id, least: usize, most: Option<usize>, marks: bool },
    RestOfObject(Id),
    RestOfArray(Id),
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Types {
    pub(super) null: bool,
    pub(super) boolean: bool,
    pub(super) object: bool,
    pub(super) array: bool,
    pub(super) number: bool,
    pub(super) integer: bool,
    pub(super) string: bool,
    /// True for draft 4, where `1.0` is no integer.
    pub(super) strict: bool,
}

/// A schema that values can be judged by.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) nodes: Vec<Node>,
    /// Schemas with `$dynamicAnchor`, by their resource and name; an empty name is `$recursiveAnchor`.
    pub(super) dynamic: HashMap<(u32, Box<str>), Id>,
    /// Number of schemas that take the rest of what others have looked at: the library looks at those several times.
    pub(super) tracking: usize,
    /// Memory of each pattern's matches, in bytes.
    pub(super) cache: usize,
    /// The ways from those through schemas of the same value, each of which the library keeps apart.
    pub(super) ways: usize,
}

struct Reader<'a> {
    references: References<'a>,
    patterns: Patterns,
    year: u16,
    ids: HashMap<usize, Id>,
    /// Schemas that have a number and no rules yet.
    open: Vec<(Id, &'a Value)>,
    nodes: Vec<Node>,
    max: usize,
}

impl Rules {
    /// # Errors
    /// The place and the bound, or the reference that leads nowhere.
    pub(super) fn read(source: &Value, draft: Draft, is_foreign: bool, max: usize) -> Result<Self, String> {
        let year = year(draft);
        let references = References::new(source, year)?;
        let count = count_patterns(source);
        let patterns = Patterns::new(count, is_foreign);
        let mut reader =
            Reader { references, patterns, year, ids: HashMap::new(), open: Vec::new(), nodes: Vec::new(), max };
        reader.number(source)?;
        let mut dynamic = HashMap::new();
        while let Some((id, schema)) = reader.open.pop() {
            let rules = reader.rules(id, schema)?;
            let node = &mut reader.nodes[id as usize];
            node.tracks = rules.iter().any(|rule| matches!(rule, Rule::RestOfObject(_) | Rule::RestOfArray(_)));
            node.rules = rules;
        }
        let named: Vec<_> = reader.references.dynamic.iter().map(|(key, at)| (key.clone(), *at)).collect();
        for ((resource, name), schema) in named {
            if let Some(id) = reader.ids.get(&address(schema)) {
                dynamic.insert((resource, name.into_boxed_str()), *id);
            }
        }
        if year == 2019 {
            for id in reader.ids.values() {
                let resource = reader.nodes[*id as usize].resource;
                let root = reader.references.root(resource);
                if reader.ids.get(&address(root)) == Some(id) && root["$recursiveAnchor"] == Value::Bool(true) {
                    dynamic.insert((resource, "".into()), *id);
                }
            }
        }
        let tracking = reader.nodes.iter().filter(|node| node.tracks).count();
        let mut all = Self { nodes: reader.nodes, dynamic, tracking, cache: cache(count), ways: 0 };
        all.ways = all.ends()?;
        Ok(all)
    }

    /// True if no schema leads back to itself without another place of the value between, and the ways from those that
    /// take the rest.
    fn ends(&self) -> Result<usize, String> {
        #[derive(Clone, Copy)]
        enum Seen {
            No,
            Open,
            Height(usize),
        }
        let mut seen = vec![Seen::No; self.nodes.len()];
        let mut ways = vec![1usize; self.nodes.len()];
        for start in 0..self.nodes.len() {
            // Each with what it leads to and the longest way below it.
            let mut path: Vec<(usize, Vec<Id>, usize)> = Vec::new();
            if matches!(seen[start], Seen::No) {
                seen[start] = Seen::Open;
                path.push((start, self.leads(start), 0));
            }
            while let Some((at, next, height)) = path.last_mut() {
                let Some(to) = next.pop() else {
                    let (at, height) = (*at, *height + 1);
                    if height > MAX_CHAIN {
                        let place = &self.nodes[at].place;
                        return Err(format!("{place:?}: more than {MAX_CHAIN} schemas lead to each other there"));
                    }
                    seen[at] = Seen::Height(height);
                    ways[at] = self.leads(at).iter().fold(1, |sum, to| ways[*to as usize].saturating_add(sum));
                    path.pop();
                    if let Some((_, _, above)) = path.last_mut() {
                        *above = (*above).max(height);
                    }
                    continue;
                };
                match seen[to as usize] {
                    Seen::Open => {
                        let place = &self.nodes[*at].place;
                        return Err(format!("{place:?}: the schema refers to itself at one place of a value"));
                    }
                    Seen::Height(known) => *height = (*height).max(known),
                    Seen::No => {
                        seen[to as usize] = Seen::Open;
                        path.push((to as usize, self.leads(to as usize), 0));
                    }
                }
            }
        }
        let tracking = self.nodes.iter().zip(&ways).filter(|(node, _)| node.tracks);
        Ok(tracking.fold(0, |sum, (_, ways)| ways.saturating_add(sum)))
    }

    /// The schemas that look at the same value.
    fn leads(&self, id: usize) -> Vec<Id> {
        let mut out = Vec::new();
        for rule in &self.nodes[id].rules {
            match rule {
                Rule::Ref(to) | Rule::Not(to) | Rule::Dynamic { first: to, .. } => out.push(*to),
                Rule::AllOf(all) | Rule::AnyOf(all) | Rule::OneOf(all) => out.extend(all),
                Rule::If { condition, then, otherwise } => {
                    out.push(*condition);
                    out.extend(then.iter().chain(otherwise));
                }
                Rule::Depends(all) => out.extend(all.iter().map(|(_, to)| to)),
                _ => {}
            }
        }
        out
    }
}

/// Returns the number of patterns that there can be.
fn count_patterns(schema: &Value) -> usize {
    match schema {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match (key.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(all)) => all.len() + count_patterns(value),
                _ => count_patterns(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(count_patterns).sum(),
        _ => 0,
    }
}

/// The cost of looking a name up.
pub(super) fn reading(name: &str) -> usize {
    1 + name.len() / 64
}

/// The cost of comparing with a value.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => {
            1 + members.iter().map(|(name, member)| reading(name) + weight(member)).sum::<usize>()
        }
        _ => 1,
    }
}

impl<'a> Reader<'a> {
    /// The number of a schema, which is read later.
    fn number(&mut self, schema: &'a Value) -> Result<Id, String> {
        if let Some(known) = self.ids.get(&address(schema)) {
            return Ok(*known);
        }
        let place = self.references.place(schema);
        if self.nodes.len() >= self.max {
            return Err(format!("{:?}: more than {} subschemas", place.pointer, self.max));
        }
        let id = Id::try_from(self.nodes.len()).unwrap_or(Id::MAX);
        let node = Node { place: place.pointer.into(), resource: place.resource, rules: Vec::new(), tracks: false };
        self.nodes.push(node);
        self.ids.insert(address(schema), id);
        self.open.push((id, schema));
        Ok(id)
    }

    fn all(&mut self, schemas: &'a [Value]) -> Result<Vec<Id>, String> {
        schemas.iter().map(|schema| self.number(schema)).collect()
    }

    fn refer(&mut self, id: Id, keyword: &str, reference: &str) -> Result<Target<'a>, String> {
        let node = &self.nodes[id as usize];
        let (resource, place) = (node.resource, node.place.clone());
        self.references.resolve(resource, reference).map_err(|why| {
            let reference = crate::error::shortened(reference, 200);
            format!("{place:?}: \"{keyword}\" to {reference}: {why}")
        })
    }

    fn reference(&mut self, id: Id, keyword: &str, reference: &str) -> Result<Rule, String> {
        Ok(match self.refer(id, keyword, reference)? {
            Target::Schema(to) => Rule::Ref(self.number(to)?),
            Target::Dialect(draft) => Rule::Dialect(draft),
        })
    }

    fn pattern(&mut self, id: Id, keyword: &str, pattern: &str) -> Result<Arc<Pattern>, String> {
        self.patterns.compile(pattern).map_err(|why| {
            format!("{:?}: \"{keyword}\": {why}", format!("{}/{keyword}", self.nodes[id as usize].place))
        })
    }

    fn rules(&mut self, id: Id, schema: &'a Value) -> Result<Vec<Rule>, String> {
        let members = match schema {
            Value::Bool(true) => return Ok(Vec::new()),
            Value::Bool(false) => return Ok(vec![Rule::Never]),
            Value::Object(members) => members,
            _ => return Err(format!("{:?}: expected a schema", self.nodes[id as usize].place)),
        };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str)
            && self.year <= 7
        {
            return Ok(vec![self.reference(id, "$ref", reference)?]);
        }
        // Each is read where values of it will be checked; those that nothing leads to have to be right, too.
        for (_, inner) in children(members) {
            self.number(inner)?;
        }
        let mut rules = Vec::new();
        self.assertions(id, members, &mut rules)?;
        self.applicators(members, &mut rules)?;
        for key in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(Value::String(reference)) = members.get(key) else { continue };
            match (key, self.year) {
                ("$ref", _) => rules.push(self.reference(id, key, reference)?),
                ("$dynamicRef", 2020) | ("$recursiveRef", 2019) => match self.refer(id, key, reference)? {
                    Target::Dialect(draft) => rules.push(Rule::Dialect(draft)),
                    Target::Schema(to) => {
                        let named = if self.year == 2019 {
                            (to["$recursiveAnchor"] == Value::Bool(true)).then_some("")
                        } else {
                            let name = reference.rsplit_once('#').map(|(_, name)| name);
                            name.filter(|name| to["$dynamicAnchor"].as_str() == Some(name))
                        };
                        let first = self.number(to)?;
                        rules.push(Rule::Dynamic { first, name: named.map(Into::into) });
                    }
                },
                _ => {}
            }
        }
        self.objects(id, members, &mut rules)?;
        self.arrays(members, &mut rules)?;
        if self.year >= 2019 {
            if let Some(rest) = members.get("unevaluatedProperties") {
                rules.push(Rule::RestOfObject(self.number(rest)?));
            }
            if let Some(rest) = members.get("unevaluatedItems") {
                rules.push(Rule::RestOfArray(self.number(rest)?));
            }
        }
        Ok(rules)
    }

    fn assertions(&mut self, id: Id, members: &'a Map<String, Value>, rules: &mut Vec<Rule>) -> Result<(), String> {
        if let Some(types) = members.get("type") {
            rules.push(Rule::Types(self.types(types)));
        }
        if let (Some(value), true) = (members.get("const"), self.year > 4) {
            rules.push(Rule::Const(value.clone(), weight(value)));
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            rules.push(Rule::Enum(values.clone(), values.iter().map(weight).sum()));
        }
        let number =
            |key: &str| members.get(key).and_then(|value| if let Value::Number(n) = value { Some(n) } else { None });
        let is = |key: &str| members.get(key) == Some(&Value::Bool(true));
        if let Some(limit) = number("minimum") {
            rules.push(Rule::Minimum(limit.clone(), self.year == 4 && is("exclusiveMinimum")));
        }
        if let Some(limit) = number("maximum") {
            rules.push(Rule::Maximum(limit.clone(), self.year == 4 && is("exclusiveMaximum")));
        }
        if let (Some(limit), true) = (number("exclusiveMinimum"), self.year > 4) {
            rules.push(Rule::Minimum(limit.clone(), true));
        }
        if let (Some(limit), true) = (number("exclusiveMaximum"), self.year > 4) {
            rules.push(Rule::Maximum(limit.clone(), true));
        }
        if let Some(step) = number("multipleOf") {
            rules.push(Rule::MultipleOf(step.clone()));
        }
        let (least, most) = (size(members, "minLength"), size(members, "maxLength"));
        if least.is_some() || most.is_some() {
            rules.push(Rule::Length(least, most));
        }
        if let Some(Value::String(pattern)) = members.get("pattern") {
            rules.push(Rule::Pattern(self.pattern(id, "pattern", pattern)?));
        }
        let (least, most) = (size(members, "minItems"), size(members, "maxItems"));
        if least.is_some() || most.is_some() {
            rules.push(Rule::Items(least, most));
        }
        if is("uniqueItems") {
            rules.push(Rule::Unique);
        }
        let (least, most) = (size(members, "minProperties"), size(members, "maxProperties"));
        if least.is_some() || most.is_some() {
            rules.push(Rule::Properties(least, most));
        }
        if let Some(required) = members.get("required").filter(|required| required.is_array()) {
            rules.push(Rule::Required(names(required)));
        }
        let mut needs = Vec::new();
        for key in ["dependentRequired", "dependencies"] {
            if let (Some(Value::Object(all)), true) = (members.get(key), self.year >= 2019 || key == "dependencies") {
                needs.extend(all.iter().filter(|(_, v)| v.is_array()).map(|(name, v)| (name.clone(), names(v))));
            }
        }
        if !needs.is_empty() {
            rules.push(Rule::Needs(needs));
        }
        Ok(())
    }

    fn applicators(&mut self, members: &'a Map<String, Value>, rules: &mut Vec<Rule>) -> Result<(), String> {
        let list = |key: &str| members.get(key).and_then(Value::as_array);
        if let Some(all) = list("allOf") {
            rules.push(Rule::AllOf(self.all(all)?));
        }
        if let Some(all) = list("anyOf") {
            rules.push(Rule::AnyOf(self.all(all)?));
        }
        if let Some(all) = list("oneOf") {
            rules.push(Rule::OneOf(self.all(all)?));
        }
        if let Some(not) = members.get("not") {
            rules.push(Rule::Not(self.number(not)?));
        }
        if let (Some(condition), true) = (members.get("if"), self.year >= 7) {
            let mut branch = |key: &str| members.get(key).map(|schema| self.number(schema)).transpose();
            let (then, otherwise) = (branch("then")?, branch("else")?);
            rules.push(Rule::If { condition: self.number(condition)?, then, otherwise });
        }
        let mut depends = Vec::new();
        for key in ["dependentSchemas", "dependencies"] {
            if let (Some(Value::Object(all)), true) = (members.get(key), self.year >= 2019 || key == "dependencies") {
                for (name, schema) in all.iter().filter(|(_, v)| !v.is_array()) {
                    depends.push((name.clone(), self.number(schema)?));
                }
            }
        }
        if !depends.is_empty() {
            rules.push(Rule::Depends(depends));
        }
        Ok(())
    }

    fn objects(&mut self, id: Id, members: &'a Map<String, Value>, rules: &mut Vec<Rule>) -> Result<(), String> {
        let map = |key: &str| members.get(key).and_then(Value::as_object);
        let (known, patterned) = (map("properties"), map("patternProperties"));
        let rest = members.get("additionalProperties");
        if known.is_some() || patterned.is_some() || rest.is_some() {
            let mut properties = HashMap::new();
            for (name, schema) in known.into_iter().flatten() {
                properties.insert(name.clone(), self.number(schema)?);
            }
            let mut patterns = Vec::new();
            for (pattern, schema) in patterned.into_iter().flatten() {
                patterns.push((self.pattern(id, "patternProperties", pattern)?, self.number(schema)?));
            }
            let rest = rest.map(|rest| self.number(rest)).transpose()?;
            rules.push(Rule::Object { known: properties, patterns, rest });
        }
        if let (Some(names), true) = (members.get("propertyNames"), self.year > 4) {
            rules.push(Rule::Names(self.number(names)?));
        }
        Ok(())
    }

    fn arrays(&mut self, members: &'a Map<String, Value>, rules: &mut Vec<Rule>) -> Result<(), String> {
        let (prefix, rest) = match (self.year, members.get("items")) {
            (2020, items) => (members.get("prefixItems"), items),
            (_, Some(Value::Array(_))) => (members.get("items"), members.get("additionalItems")),
            (_, items) => (None, items),
        };
        if prefix.is_some() || rest.is_some() {
            let prefix = match prefix {
                Some(Value::Array(all)) => self.all(all)?,
                _ => Vec::new(),
            };
            let rest = rest.filter(|rest| !rest.is_array()).map(|rest| self.number(rest)).transpose()?;
            rules.push(Rule::Array { prefix, rest });
        }
        if let (Some(contains), true) = (members.get("contains"), self.year > 4) {
            let of = |key: &str| if self.year >= 2019 { size(members, key) } else { None };
            let (least, most) = (of("minContains").unwrap_or(1), of("maxContains"));
            rules.push(Rule::Contains { schema: self.number(contains)?, least, most, marks: self.year >= 2020 });
        }
        Ok(())
    }

    fn types(&self, types: &Value) -> Types {
        let mut out = Types { strict: self.year == 4, ..Types::default() };
        let names: HashSet<&str> = match types {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        for name in names {
            match name {
                "null" => out.null = true,
                "boolean" => out.boolean = true,
                "object" => out.object = true,
                "array" => out.array = true,
                "number" => out.number = true,
                "integer" => out.integer = true,
                "string" => out.string = true,
                _ => {}
            }
        }
        out
    }
}

/// A count, which may be written as `2.0`.
fn size(members: &Map<String, Value>, key: &str) -> Option<usize> {
    let value = members.get(key)?;
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=9.0e15).contains(number))?;
        format!("{number:.0}").parse().ok()
    })?;
    Some(usize::try_from(whole).unwrap_or(usize::MAX))
}

fn names(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
