//! Judgement of a value by a schema, in steps that are counted as they are taken: each one is a rule at a place of the
//! value.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jsonschema::Draft;
use serde_json::{Map, Number, Value};

use super::pattern::{Match, Pattern};
use super::rules::{Id, Node, Rule, Rules, Types, reading, weight};

/// The deepest that schemas and values lead into each other.
const MAX_DEPTH: usize = 512;
/// Steps between two looks at the clock, and at where they are taken.
const SLICE: usize = 1_024;
/// The most bytes that all problems together take when each is told with its place, and those of one beside its place.
const MAX_TOLD: usize = 4 << 20;
const TOLD: usize = 256;
/// Those of a member that there may not be: all of an object are told as one problem.
const TOLD_NAME: usize = 16;

/// Reason for ending a judgement early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stop {
    /// More steps than there may be; most of them were taken at this place of the schema.
    Steps(String),
    Deep(String),
    /// A pattern that looks around or back, and goes on too long.
    Pattern(String),
    /// Nobody waits for it.
    Left,
}

/// A rule that a value is against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// JSON Pointers: of the value, and of the schema.
    pub(super) at: String,
    pub(super) place: String,
}

/// One judgement.
pub(super) struct Run<'r> {
    rules: &'r Rules,
    left: usize,
    slice: usize,
    hot: HashMap<Id, u32>,
    /// Everything is looked at, as the library does to find all problems, and these bytes are left to tell them.
    is_thorough: bool,
    told: usize,
    /// The problem is kept.
    explains: bool,
    problem: Option<Problem>,
    stop: Option<Arc<AtomicBool>>,
}

/// The way to a value.
#[derive(Clone, Copy)]
enum Path<'p> {
    Top,
    Member(&'p Self, &'p str),
    Item(&'p Self, usize),
}

impl Path<'_> {
    fn pointer(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        match self {
            Path::Top => {}
            Path::Member(above, name) => {
                above.write(out);
                out.push('/');
                out.push_str(&super::reference::escaped(name));
            }
            Path::Item(above, at) => {
                above.write(out);
                out.push_str(&format!("/{at}"));
            }
        }
    }

    /// The bytes that its text takes, and some for each part.
    fn length(&self) -> usize {
        let (mut at, mut length) = (self, 0);
        loop {
            let (above, own) = match at {
                Path::Top => return length,
                Path::Member(above, name) => (above, name.len()),
                Path::Item(above, _) => (above, 0),
            };
            (at, length) = (above, length + own + 8);
        }
    }
}

/// The resources that were entered on the way, the outermost last.
#[derive(Clone, Copy)]
struct Scope<'s> {
    resource: u32,
    outer: Option<&'s Self>,
}

/// Place of a rule.
#[derive(Clone, Copy)]
struct Here<'h> {
    id: Id,
    path: &'h Path<'h>,
    scope: &'h Scope<'h>,
    depth: usize,
}

/// Members or items of one value that some schema has looked at.
#[derive(Default)]
struct Seen {
    all: bool,
    marks: Vec<bool>,
}

impl Seen {
    fn mark(&mut self, at: usize) {
        if self.marks.len() <= at {
            self.marks.resize(at + 1, false);
        }
        self.marks[at] = true;
    }

    fn has(&self, at: usize) -> bool {
        self.all || self.marks.get(at).copied().unwrap_or(false)
    }

    fn add(&mut self, other: &Self) {
        self.all |= other.all;
        for at in other.marks.iter().enumerate().filter_map(|(at, seen)| seen.then_some(at)) {
            self.mark(at);
        }
    }
}

type Judged = Result<bool, Stop>;

impl<'r> Run<'r> {
    pub(super) fn new(rules: &'r Rules, steps: usize) -> Self {
        Self {
            rules,
            left: steps,
            slice: SLICE,
            hot: HashMap::new(),
            is_thorough: false,
            told: MAX_TOLD,
            explains: false,
            problem: None,
            stop: None,
        }
    }

    /// Looks at everything.
    pub(super) fn thorough(self) -> Self {
        Self { is_thorough: true, ..self }
    }

    /// Remembers the problem that it ends with.
    pub(super) fn explaining(self) -> Self {
        Self { explains: true, ..self }
    }

    /// Ends when this is set.
    pub(super) fn until(self, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { stop, ..self }
    }

    pub(super) fn problem(self) -> Option<Problem> {
        self.problem
    }

    pub(super) fn judge(&mut self, value: &Value) -> Judged {
        let scope = Scope { resource: self.node(0).resource, outer: None };
        self.visit(Here { id: 0, path: &Path::Top, scope: &scope, depth: 0 }, value, None)
    }

    fn node(&self, id: Id) -> &'r Node {
        &self.rules.nodes[id as usize]
    }

    fn place(&self, id: Id) -> String {
        self.node(id).place.to_string()
    }

    fn spend(&mut self, here: Here<'_>, steps: usize) -> Result<(), Stop> {
        let enough = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        self.slice = self.slice.saturating_sub(steps);
        if self.slice == 0 || !enough {
            self.slice = SLICE;
            *self.hot.entry(here.id).or_default() += 1;
            if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(Stop::Left);
            }
        }
        if enough {
            return Ok(());
        }
        let hottest = self.hot.iter().max_by_key(|(id, times)| (**times, std::cmp::Reverse(**id)));
        Err(Stop::Steps(self.place(hottest.map_or(here.id, |(id, _)| *id))))
    }

    /// A rule that the value is against. `more`: bytes that the problem takes beside its place.
    ///
    /// # Errors
    /// All problems together are more than can be told.
    fn against(&mut self, here: Here<'_>, keyword: &str, more: usize) -> Judged {
        if self.is_thorough {
            let own = if keyword.is_empty() { TOLD_NAME } else { TOLD };
            let bytes = here.path.length().saturating_add(own).saturating_add(more);
            self.spend(here, bytes / 256)?;
            match self.told.checked_sub(bytes) {
                Some(left) => self.told = left,
                None => return Err(Stop::Steps(self.place(here.id))),
            }
        }
        if self.explains {
            let place = format!("{}{}{keyword}", self.place(here.id), if keyword.is_empty() { "" } else { "/" });
            self.problem = Some(Problem { at: here.path.pointer(), place });
        }
        Ok(false)
    }

    /// Judges what makes no problem of the value by itself.
    fn quietly(&mut self, judge: impl FnOnce(&mut Self) -> Judged) -> Judged {
        let told = self.told;
        let judged = self.alternative(judge);
        self.told = told;
        judged
    }

    /// Judges an alternative, of which problems are told when no other fits.
    fn alternative(&mut self, judge: impl FnOnce(&mut Self) -> Judged) -> Judged {
        let explains = std::mem::take(&mut self.explains);
        let judged = judge(self);
        self.explains = explains;
        judged
    }

    fn is_match(&mut self, here: Here<'_>, pattern: &Pattern, text: &str, keyword: &str) -> Judged {
        self.spend(here, pattern.steps(text.len()))?;
        match pattern.is_match(text) {
            Match::Is(found, steps) => {
                self.spend(here, steps)?;
                Ok(found)
            }
            Match::Slow(steps) => {
                self.spend(here, steps)?;
                Ok(pattern.is_match_slowly(text))
            }
            Match::Endless => Err(Stop::Pattern(self.place(here.id) + keyword)),
        }
    }

    fn visit(&mut self, here: Here<'_>, value: &Value, seen: Option<&mut Seen>) -> Judged {
        self.spend(here, 1)?;
        if here.depth > MAX_DEPTH {
            return Err(Stop::Deep(self.place(here.id)));
        }
        let node = self.node(here.id);
        if node.resource == here.scope.resource {
            return self.rules(here, node, value, seen);
        }
        let scope = Scope { resource: node.resource, outer: Some(here.scope) };
        self.rules(Here { scope: &scope, ..here }, node, value, seen)
    }

    fn rules(&mut self, here: Here<'_>, node: &'r Node, value: &Value, seen: Option<&mut Seen>) -> Judged {
        if !node.tracks {
            return self.each(here, node, value, seen);
        }
        let mut own = Seen::default();
        let fits = self.each(here, node, value, Some(&mut own))?;
        if let (true, Some(seen)) = (fits, seen) {
            self.spend(here, 1 + own.marks.len() / 8)?;
            seen.add(&own);
        }
        Ok(fits)
    }

    fn each(&mut self, here: Here<'_>, node: &'r Node, value: &Value, mut seen: Option<&mut Seen>) -> Judged {
        let mut fits = true;
        for rule in &node.rules {
            self.spend(here, 1)?;
            if !self.rule(here, rule, value, seen.as_deref_mut())? {
                fits = false;
                if !self.is_thorough {
                    break;
                }
            }
        }
        Ok(fits)
    }

    fn rule(&mut self, here: Here<'_>, rule: &'r Rule, value: &Value, seen: Option<&mut Seen>) -> Judged {
        // Problems tell the values that there might be.
        let mut more = 0;
        let (fits, keyword) = match (rule, value) {
            (Rule::Never, _) => (false, ""),
            (Rule::Types(types), _) => (is_of(*types, value), "type"),
            (Rule::Const(one, cost), _) => {
                self.spend(here, *cost)?;
                more = cost.saturating_mul(64);
                (equal(one, value), "const")
            }
            (Rule::Enum(all, cost), _) => {
                self.spend(here, *cost)?;
                more = cost.saturating_mul(64);
                (all.iter().any(|one| equal(one, value)), "enum")
            }
            (Rule::Minimum(limit, is_open), Value::Number(number)) => {
                let order = compare(number, limit);
                (order.is_gt() || (order.is_eq() && !is_open), "minimum")
            }
            (Rule::Maximum(limit, is_open), Value::Number(number)) => {
                let order = compare(number, limit);
                (order.is_lt() || (order.is_eq() && !is_open), "maximum")
            }
            (Rule::MultipleOf(step), Value::Number(number)) => (is_multiple(number, step), "multipleOf"),
            (Rule::Length(least, most), Value::String(text)) => {
                self.spend(here, text.len() / 64)?;
                (is_within(text.chars().count(), *least, *most), "minLength")
            }
            (Rule::Pattern(pattern), Value::String(text)) => {
                (self.is_match(here, pattern, text, "/pattern")?, "pattern")
            }
            (Rule::Items(least, most), Value::Array(items)) => (is_within(items.len(), *least, *most), "minItems"),
            (Rule::Unique, Value::Array(items)) => {
                self.spend(here, items.iter().map(weight).sum())?;
                (self.is_unique(here, items)?, "uniqueItems")
            }
            (Rule::Properties(least, most), Value::Object(members)) => {
                (is_within(members.len(), *least, *most), "minProperties")
            }
            (Rule::Required(names), Value::Object(members)) => {
                self.spend(here, names.iter().map(|name| reading(name)).sum())?;
                (names.iter().all(|name| members.contains_key(name)), "required")
            }
            (Rule::Needs(needs), Value::Object(members)) => {
                let all = needs.iter().flat_map(|(name, names)| std::iter::once(name).chain(names));
                self.spend(here, all.map(|name| reading(name)).sum())?;
                let has = |name: &String| members.contains_key(name);
                (needs.iter().all(|(name, names)| !has(name) || names.iter().all(has)), "dependentRequired")
            }
            (Rule::Dialect(draft), _) => {
                self.spend(here, 100 * weight(value))?;
                (is_schema(*draft, value).is_ok(), "$ref")
            }
            (Rule::Names(names), Value::Object(members)) => return self.names(here, *names, members),
            (Rule::Contains { schema, least, most, marks }, Value::Array(items)) => {
                let seen = if *marks { seen } else { None };
                (self.contains(here, *schema, (*least, *most), items, seen)?, "contains")
            }
            (Rule::Object { .. }, Value::Object(members)) => return self.object(here, rule, members, seen),
            (Rule::Array { prefix, rest }, Value::Array(items)) => {
                return self.array(here, prefix, *rest, items, seen);
            }
            (Rule::RestOfObject(rest), Value::Object(members)) => {
                return self.rest_of_object(here, *rest, members, seen);
            }
            (Rule::RestOfArray(rest), Value::Array(items)) => return self.rest_of_array(here, *rest, items, seen),
            _ => return self.applied(here, rule, value, seen),
        };
        if fits { Ok(true) } else { self.against(here, keyword, more) }
    }

    /// Judges by a rule that applies other schemas to the same value.
    fn applied(&mut self, here: Here<'_>, rule: &'r Rule, value: &Value, mut seen: Option<&mut Seen>) -> Judged {
        match rule {
            Rule::Ref(to) => self.visit(here.at(*to), value, seen),
            Rule::Dynamic { first, name } => {
                let to = match name {
                    Some(name) => self.dynamic(here, name, *first)?,
                    None => *first,
                };
                self.visit(here.at(to), value, seen)
            }
            Rule::AllOf(all) => {
                let mut fits = true;
                for one in all {
                    fits &= self.visit(here.at(*one), value, seen.as_deref_mut())?;
                    if !fits && !self.is_thorough {
                        break;
                    }
                }
                Ok(fits)
            }
            Rule::AnyOf(all) => self.any_of(here, all, value, seen),
            Rule::OneOf(all) => self.one_of(here, all, value, seen),
            Rule::Not(not) => {
                let fits = !self.quietly(|run| run.visit(here.at(*not), value, None))?;
                if fits { Ok(true) } else { self.against(here, "not", 0) }
            }
            Rule::If { condition, then, otherwise } => {
                let told = self.told;
                let holds = self.branch(here.at(*condition), value, seen.as_deref_mut())?;
                self.told = told;
                match if holds { then } else { otherwise } {
                    Some(next) => self.visit(here.at(*next), value, seen),
                    None => Ok(true),
                }
            }
            Rule::Depends(all) => {
                let Value::Object(members) = value else { return Ok(true) };
                let mut fits = true;
                for (name, schema) in all {
                    self.spend(here, reading(name))?;
                    if members.contains_key(name) {
                        fits &= self.visit(here.at(*schema), value, seen.as_deref_mut())?;
                    }
                }
                Ok(fits)
            }
            // It is about values of another type.
            _ => Ok(true),
        }
    }

    fn any_of(&mut self, here: Here<'_>, all: &[Id], value: &Value, mut seen: Option<&mut Seen>) -> Judged {
        let (mut fits, told) = (false, self.told);
        for one in all {
            fits |= self.branch(here.at(*one), value, seen.as_deref_mut())?;
            // Each that fits counts if it matters what was looked at.
            if fits && seen.is_none() && !self.is_thorough {
                break;
            }
        }
        if fits {
            self.told = told;
            return Ok(true);
        }
        self.against(here, "anyOf", 0)
    }

    fn one_of(&mut self, here: Here<'_>, all: &[Id], value: &Value, seen: Option<&mut Seen>) -> Judged {
        let (mut fitting, mut own) = (0, seen.is_some().then(Seen::default));
        let told = self.told;
        for one in all {
            fitting += usize::from(self.branch(here.at(*one), value, own.as_mut())?);
            if fitting > 1 && !self.is_thorough {
                break;
            }
        }
        if let (1, Some(own), Some(seen)) = (fitting, &own, seen) {
            seen.add(own);
        }
        if fitting == 1 {
            self.told = told;
            return Ok(true);
        }
        self.against(here, "oneOf", 0)
    }

    /// An alternative: what it has looked at counts when it fits.
    fn branch(&mut self, here: Here<'_>, value: &Value, seen: Option<&mut Seen>) -> Judged {
        let Some(seen) = seen else { return self.alternative(|run| run.visit(here, value, None)) };
        let mut own = Seen::default();
        let fits = self.alternative(|run| run.visit(here, value, Some(&mut own)))?;
        if fits {
            self.spend(here, own.marks.len() / 8)?;
            seen.add(&own);
        }
        Ok(fits)
    }

    /// The outermost resource on the way that has a schema of this name.
    fn dynamic(&mut self, here: Here<'_>, name: &str, first: Id) -> Result<Id, Stop> {
        let mut key = (0, Box::from(name));
        let mut found = first;
        let mut at = Some(here.scope);
        while let Some(scope) = at {
            self.spend(here, reading(name))?;
            key.0 = scope.resource;
            if let Some(id) = self.rules.dynamic.get(&key) {
                found = *id;
            }
            at = scope.outer;
        }
        Ok(found)
    }

    /// Numbers that differ may have one digest, so comparisons are steps as well.
    fn is_unique(&mut self, here: Here<'_>, items: &[Value]) -> Judged {
        let keys = RandomState::new();
        // Nearly all have a digest of their own.
        let mut known: HashMap<u64, (&Value, Vec<&Value>)> = HashMap::with_capacity(items.len());
        for item in items {
            match known.entry(digest(&keys, item)) {
                Entry::Vacant(place) => drop(place.insert((item, Vec::new()))),
                Entry::Occupied(mut place) => {
                    let (first, others) = place.get_mut();
                    self.spend(here, (others.len() + 1).saturating_mul(weight(item)))?;
                    if equal(first, item) || others.iter().any(|one| equal(one, item)) {
                        return Ok(false);
                    }
                    others.push(item);
                }
            }
        }
        Ok(true)
    }

    fn names(&mut self, here: Here<'_>, names: Id, members: &Map<String, Value>) -> Judged {
        let mut fits = true;
        for name in members.keys() {
            self.spend(here, reading(name))?;
            let path = Path::Member(here.path, name);
            fits &= self.visit(here.at(names).inside(&path), &Value::String(name.clone()), None)?;
            if !fits && !self.is_thorough {
                break;
            }
        }
        Ok(fits)
    }

    fn contains(
        &mut self,
        here: Here<'_>,
        schema: Id,
        (least, most): (usize, Option<usize>),
        items: &[Value],
        mut seen: Option<&mut Seen>,
    ) -> Judged {
        let mut found = 0;
        for (at, item) in items.iter().enumerate() {
            let path = Path::Item(here.path, at);
            if self.quietly(|run| run.visit(here.at(schema).inside(&path), item, None))? {
                found += 1;
                if let Some(seen) = seen.as_deref_mut() {
                    seen.mark(at);
                } else if found >= least && most.is_none() && !self.is_thorough {
                    break;
                }
            }
        }
        Ok(is_within(found, Some(least), most))
    }

    fn object(
        &mut self,
        here: Here<'_>,
        rule: &'r Rule,
        members: &Map<String, Value>,
        mut seen: Option<&mut Seen>,
    ) -> Judged {
        let Rule::Object { known, patterns, rest } = rule else { return Ok(true) };
        let mut fits = true;
        for (at, (name, member)) in members.iter().enumerate() {
            self.spend(here, reading(name))?;
            let path = Path::Member(here.path, name);
            let mut is_known = false;
            if let Some(schema) = known.get(name) {
                is_known = true;
                fits &= self.visit(here.at(*schema).inside(&path), member, None)?;
            }
            for (pattern, schema) in patterns {
                if self.is_match(here, pattern, name, "/patternProperties")? {
                    is_known = true;
                    fits &= self.visit(here.at(*schema).inside(&path), member, None)?;
                }
            }
            if let (false, Some(rest)) = (is_known, rest) {
                is_known = true;
                fits &= self.visit(here.at(*rest).inside(&path), member, None)?;
            }
            if !fits && !self.is_thorough {
                return Ok(false);
            }
            if let (true, Some(seen)) = (is_known, seen.as_deref_mut()) {
                seen.mark(at);
            }
        }
        Ok(fits)
    }

    fn array(
        &mut self,
        here: Here<'_>,
        prefix: &[Id],
        rest: Option<Id>,
        items: &[Value],
        mut seen: Option<&mut Seen>,
    ) -> Judged {
        let mut fits = true;
        for (at, item) in items.iter().enumerate() {
            let Some(schema) = prefix.get(at).copied().or(rest) else { break };
            let path = Path::Item(here.path, at);
            fits &= self.visit(here.at(schema).inside(&path), item, None)?;
            if !fits && !self.is_thorough {
                return Ok(false);
            }
            if let Some(seen) = seen.as_deref_mut() {
                seen.mark(at);
            }
        }
        Ok(fits)
    }

    fn rest_of_object(
        &mut self,
        here: Here<'_>,
        rest: Id,
        members: &Map<String, Value>,
        seen: Option<&mut Seen>,
    ) -> Judged {
        let mut fits = true;
        for (at, (name, member)) in members.iter().enumerate() {
            self.spend(here, 1)?;
            if !seen.as_ref().is_some_and(|seen| seen.has(at)) {
                let path = Path::Member(here.path, name);
                fits &= self.visit(here.at(rest).inside(&path), member, None)?;
                if !fits && !self.is_thorough {
                    return Ok(false);
                }
            }
        }
        if let Some(seen) = seen {
            seen.all = true;
        }
        Ok(fits)
    }

    fn rest_of_array(&mut self, here: Here<'_>, rest: Id, items: &[Value], seen: Option<&mut Seen>) -> Judged {
        let mut fits = true;
        for (at, item) in items.iter().enumerate() {
            self.spend(here, 1)?;
            if !seen.as_ref().is_some_and(|seen| seen.has(at)) {
                let path = Path::Item(here.path, at);
                fits &= self.visit(here.at(rest).inside(&path), item, None)?;
                if !fits && !self.is_thorough {
                    return Ok(false);
                }
            }
        }
        if let Some(seen) = seen {
            seen.all = true;
        }
        Ok(fits)
    }
}

impl<'h> Here<'h> {
    fn at(self, id: Id) -> Self {
        Self { id, depth: self.depth + 1, ..self }
    }

    fn inside<'n>(self, path: &'n Path<'n>) -> Here<'n>
    where
        'h: 'n,
    {
        Here { path, ..self }
    }
}

fn is_within(count: usize, least: Option<usize>, most: Option<usize>) -> bool {
    least.is_none_or(|least| count >= least) && most.is_none_or(|most| count <= most)
}

fn is_of(types: Types, value: &Value) -> bool {
    match value {
        Value::Null => types.null,
        Value::Bool(_) => types.boolean,
        Value::Object(_) => types.object,
        Value::Array(_) => types.array,
        Value::String(_) => types.string,
        Value::Number(number) => {
            let is_whole = || !number.is_f64() || (!types.strict && number.as_f64().is_some_and(|n| n.fract() == 0.0));
            types.number || (types.integer && is_whole())
        }
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn compare(a: &Number, b: &Number) -> std::cmp::Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let of = |number: &Number| number.as_f64().unwrap_or_default();
            of(a).partial_cmp(&of(b)).unwrap_or(std::cmp::Ordering::Equal)
        }
    }
}

fn is_multiple(number: &Number, step: &Number) -> bool {
    if let (Some(number), Some(step)) = (whole(number), whole(step)) {
        return step == 0 || number % step == 0;
    }
    let (number, step) = (number.as_f64().unwrap_or_default(), step.as_f64().unwrap_or(1.0));
    let times = number / step;
    // Decimal fractions are not what they look like: 0.3 is three times 0.1.
    times.is_finite() && (times - times.round()).abs() <= 1e-9 * times.abs().clamp(1.0, 1e6)
}

fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// Equal values have equal digests.
fn digest(keys: &RandomState, value: &Value) -> u64 {
    let mut hasher = keys.build_hasher();
    match value {
        Value::Null => 0u8.hash(&mut hasher),
        Value::Bool(is) => (1u8, is).hash(&mut hasher),
        Value::Number(number) => (2u8, (number.as_f64().unwrap_or_default() + 0.0).to_bits()).hash(&mut hasher),
        Value::String(text) => (3u8, text).hash(&mut hasher),
        Value::Array(items) => {
            (4u8, items.len()).hash(&mut hasher);
            items.iter().for_each(|item| digest(keys, item).hash(&mut hasher));
        }
        Value::Object(members) => {
            let each = members.iter().map(|(name, member)| keys.hash_one((name, digest(keys, member))));
            (5u8, members.len(), each.fold(0u64, u64::wrapping_add)).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Checks that `value` is a schema of that dialect.
///
/// # Errors
/// The reason why it is none.
pub(super) fn is_schema(draft: Draft, value: &Value) -> Result<(), String> {
    let checked = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validate(value),
        Draft::Draft6 => jsonschema::draft6::meta::validate(value),
        Draft::Draft7 => jsonschema::draft7::meta::validate(value),
        Draft::Draft201909 => jsonschema::draft201909::meta::validate(value),
        _ => jsonschema::draft202012::meta::validate(value),
    };
    checked.map_err(|error| {
        let at = error.instance_path().as_str().to_owned();
        crate::error::shortened(&format!("{at:?}: {error}"), 300).into_owned()
    })
}
