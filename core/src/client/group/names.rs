//! Public names: unique in the group, fit for the interfaces of models, the same whenever the same is listed.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::Prefix;
use crate::protocol::Kind;

/// The longest name that the interfaces of models take.
const MAX_CHARS: usize = 64;

/// A public name, and what it is the name of.
pub(super) struct Named {
    pub(super) server: usize,
    /// The place in the server's list.
    pub(super) at: usize,
    pub(super) name: String,
}

/// Names what servers list. Only the first of two equal entries of a server counts.
pub(super) fn named(kind: Kind, servers: &[(&str, &[Map<String, Value>])], prefix: Prefix) -> Vec<Named> {
    let mut seen = HashSet::new();
    let mut things = Vec::new();
    for (server, (_, list)) in servers.iter().enumerate() {
        for (at, definition) in list.iter().enumerate() {
            let text = |key: &str| definition.get(key).and_then(Value::as_str);
            let Some(id) = text(kind.key()) else { continue };
            if seen.insert((server, id)) {
                things.push((server, at, id, text("name").unwrap_or(id)));
            }
        }
    }
    let mut count: HashMap<&str, usize> = HashMap::new();
    for (_, _, _, own) in &things {
        *count.entry(own).or_default() += 1;
    }
    let is_plain = |own: &str| prefix == Prefix::Clash && count[own] == 1;
    let prefixed = |server: usize, own: &str| fitted(&format!("{}_{own}", valid(servers[server].0)), own, 0);
    // The number of things that would have each name: a prefix may make one that another has.
    let mut wanted: HashMap<String, usize> = HashMap::new();
    for (server, _, _, own) in &things {
        let name = if is_plain(own) { (*own).to_owned() } else { prefixed(*server, own) };
        *wanted.entry(name).or_default() += 1;
    }
    let mut taken: HashSet<String> = HashSet::new();
    let name = |server: usize, id: &str, own: &str, taken: &mut HashSet<String>| {
        if is_plain(own) {
            return own.to_owned();
        }
        let mut name = prefixed(server, own);
        let mut round = 0;
        while (round == 0 && wanted[&name] > 1) || (round > 0 && wanted.contains_key(&name)) || taken.contains(&name) {
            round += 1;
            let whole = format!("{}_{own}", valid(servers[server].0));
            name = cut(&whole, digest(&[servers[server].0, id], round));
        }
        taken.insert(name.clone());
        name
    };
    let named =
        things.iter().map(|&(server, at, id, own)| Named { server, at, name: name(server, id, own, &mut taken) });
    named.collect()
}

/// A server's name with what models cannot be given replaced.
fn valid(server: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    server.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

fn fitted(whole: &str, own: &str, round: u32) -> String {
    if whole.chars().count() <= MAX_CHARS { whole.to_owned() } else { cut(whole, digest(&[whole, own], round)) }
}

/// The beginning of a name, with a digest at its end.
fn cut(whole: &str, digest: u32) -> String {
    let suffix = format!("_{digest:08x}");
    let start: String = whole.chars().take(MAX_CHARS - suffix.len()).collect();
    start + &suffix
}

/// FNV-1a: the same in every process, and nobody's secret.
fn digest(parts: &[&str], round: u32) -> u32 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0])).chain(round.to_le_bytes());
    bytes.fold(0x811c_9dc5, |hash: u32, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools(names: &[&str]) -> Vec<Map<String, Value>> {
        names.iter().filter_map(|name| json!({"name": name}).as_object().cloned()).collect()
    }

    fn names(servers: &[(&str, &[&str])], prefix: Prefix) -> Vec<String> {
        let lists: Vec<_> = servers.iter().map(|(name, names)| (*name, tools(names))).collect();
        let views: Vec<_> = lists.iter().map(|(name, list)| (*name, &list[..])).collect();
        named(Kind::Tool, &views, prefix).into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn only_what_clashes_is_prefixed() {
        let servers: [(&str, &[&str]); 2] = [("a", &["add", "one"]), ("my server.b", &["add", "two", "two"])];
        assert_eq!(names(&servers, Prefix::Clash), ["a_add", "one", "my_server_b_add", "two"]);
        assert_eq!(names(&servers, Prefix::Always), ["a_add", "a_one", "my_server_b_add", "my_server_b_two"]);
    }

    #[test]
    fn a_prefix_makes_no_new_clash() {
        // "a_add" is the own name of something, and two servers' names become the same.
        let servers: [(&str, &[&str]); 4] =
            [("a", &["add"]), ("b", &["add", "a_add"]), ("x y", &["go"]), ("x_y", &["go"])];
        let given = names(&servers, Prefix::Clash);
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), 5, "{given:?}");
        assert_eq!((given[1].as_str(), given[2].as_str()), ("b_add", "a_add"));
        assert!(given[0].starts_with("a_add_") && given[3].starts_with("x_y_go_"), "{given:?}");
        let mut turned = servers;
        turned.reverse();
        let mut again = names(&turned, Prefix::Clash);
        let mut sorted = given;
        sorted.sort();
        again.sort();
        assert_eq!(again, sorted, "the order makes no difference");
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let (long, other) = ("n".repeat(80) + "1", "n".repeat(80) + "2");
        let given = names(&[("a", &[&long, &other]), ("b", &[&long, &other])], Prefix::Always);
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), 4, "{given:?}");
        assert!(given.iter().all(|name| name.len() == MAX_CHARS), "{given:?}");
    }

    #[test]
    fn resources_of_the_same_name_are_told_apart() {
        let list: Vec<_> =
            ["x://1", "x://2"].iter().filter_map(|uri| json!({"uri": uri, "name": "n"}).as_object().cloned()).collect();
        let given = named(Kind::Resource, &[("s", &list)], Prefix::Clash);
        assert!(given[0].name != given[1].name && given.iter().all(|it| it.name.starts_with("s_n_")));
    }
}
