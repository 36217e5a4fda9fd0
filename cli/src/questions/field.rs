//! The fields of a form: what they take.

use serde_json::{Number, Value};

use crate::output::one_line;

/// One field.
pub(super) struct Field {
    pub(super) name: String,
    title: String,
    pub(super) description: Option<String>,
    pub(super) is_required: bool,
    pub(super) default: Option<Value>,
    pub(super) kind: Kind,
    schema: Value,
}

/// Ways to ask.
pub(super) enum Kind {
    /// A line of text, a number.
    Text,
    /// One of these.
    One(Vec<Choice>),
    /// Some of these.
    Many(Vec<Choice>),
}

/// A value and its title for people.
pub(super) struct Choice {
    pub(super) value: Value,
    pub(super) title: String,
}

impl Field {
    /// The fields of a form, in their order.
    pub(super) fn all(form: &Value) -> Vec<Self> {
        let required = form["required"].as_array();
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|known| known == name));
        let properties = form["properties"].as_object();
        properties.into_iter().flatten().map(|(name, schema)| Self::of(name, schema, is_required(name))).collect()
    }

    fn of(name: &str, schema: &Value, is_required: bool) -> Self {
        let text = |member: &str| schema[member].as_str();
        let kind = match text("type") {
            Some("boolean") => {
                let choice = |value: bool, title: &str| Choice { value: value.into(), title: title.to_owned() };
                Kind::One(vec![choice(true, "yes"), choice(false, "no")])
            }
            Some("array") => Kind::Many(choices(&schema["items"])),
            _ => match choices(schema) {
                choices if choices.is_empty() => Kind::Text,
                choices => Kind::One(choices),
            },
        };
        Self {
            name: name.to_owned(),
            title: one_line(text("title").unwrap_or(name)),
            description: text("description").map(str::to_owned),
            is_required,
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            kind,
            schema: schema.clone(),
        }
    }

    fn limit(&self, name: &str) -> Option<f64> {
        self.schema[name].as_f64()
    }

    fn range(&self, least: &str, most: &str) -> Option<String> {
        match (self.limit(least), self.limit(most)) {
            (Some(least), Some(most)) => Some(format!("{least} to {most}")),
            (Some(least), None) => Some(format!("at least {least}")),
            (None, Some(most)) => Some(format!("at most {most}")),
            (None, None) => None,
        }
    }

    /// Describes the values that it takes, in a few words.
    fn hint(&self) -> Option<String> {
        let named = |kind: &str, range: Option<String>| match range {
            Some(range) => Some(format!("{kind}, {range}")),
            None => Some(kind.to_owned()),
        };
        match (&self.kind, self.schema["type"].as_str()) {
            (Kind::Many(_), _) => self.range("minItems", "maxItems").map(|range| format!("space selects, {range}")),
            (Kind::One(_), _) => None,
            (Kind::Text, Some("integer")) => named("an integer", self.range("minimum", "maximum")),
            (Kind::Text, Some("number")) => named("a number", self.range("minimum", "maximum")),
            (Kind::Text, _) => {
                let length = self.range("minLength", "maxLength").map(|range| format!("{range} characters"));
                match (self.schema["format"].as_str(), length) {
                    (Some(format), length) => named(&one_line(format), length),
                    (None, length) => length,
                }
            }
        }
    }

    /// The question's own line.
    pub(super) fn prompt(&self) -> String {
        let optional = (!self.is_required && matches!(self.kind, Kind::Text)).then(|| "may be empty".to_owned());
        let notes: Vec<_> = self.hint().into_iter().chain(optional).collect();
        if notes.is_empty() { self.title.clone() } else { format!("{} ({})", self.title, notes.join(", ")) }
    }

    /// The value of what was typed; `None` for no answer.
    ///
    /// # Errors
    /// Says which value is expected.
    pub(super) fn value(&self, text: &str) -> Result<Option<Value>, String> {
        if text.is_empty() && !self.is_required {
            return Ok(None);
        }
        match self.schema["type"].as_str() {
            Some(kind @ ("integer" | "number")) => self.number(kind, text.trim()).map(Some),
            _ => self.text(text).map(|()| Some(text.into())),
        }
    }

    fn number(&self, kind: &str, text: &str) -> Result<Value, String> {
        let expected = self.hint().unwrap_or_default();
        let wrong = || format!("expected {expected}");
        let number: Number = serde_json::from_str(text).map_err(|_| wrong())?;
        let value = number.as_f64().unwrap_or(f64::NAN);
        let is_whole = kind != "integer" || value.fract() == 0.0;
        let fits = self.limit("minimum").is_none_or(|least| value >= least)
            && self.limit("maximum").is_none_or(|most| value <= most);
        if is_whole && fits && value.is_finite() { Ok(Value::Number(number)) } else { Err(wrong()) }
    }

    fn text(&self, text: &str) -> Result<(), String> {
        let length = text.chars().count() as f64;
        let fits = self.limit("minLength").is_none_or(|least| length >= least)
            && self.limit("maxLength").is_none_or(|most| length <= most);
        let is_formed = match self.schema["format"].as_str() {
            Some("email") => is_email(text),
            Some("uri") => is_uri(text),
            Some("date") => is_date(text),
            Some("date-time") => is_date_time(text),
            _ => true,
        };
        let example = match self.schema["format"].as_str() {
            Some("email") => " such as ada@example.com",
            Some("uri") => " such as https://example.com",
            Some("date") => " such as 2026-07-28",
            Some("date-time") => " such as 2026-07-28T12:00:00Z",
            _ => "",
        };
        if fits && is_formed { Ok(()) } else { Err(format!("expected {}{example}", self.hint().unwrap_or_default())) }
    }

    /// Checks that so many may be chosen.
    ///
    /// # Errors
    /// Says how many may be chosen.
    pub(super) fn check_count(&self, count: usize) -> Result<(), String> {
        let count = count as f64;
        let least = self.limit("minItems").unwrap_or(0.0);
        let fits = count >= least && self.limit("maxItems").is_none_or(|most| count <= most);
        if fits { Ok(()) } else { Err(format!("choose {}", self.range("minItems", "maxItems").unwrap_or_default())) }
    }
}

fn choices(schema: &Value) -> Vec<Choice> {
    let titled = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array());
    if let Some(titled) = titled {
        let choice = |one: &Value| {
            let value = one.get("const")?.clone();
            let title = one["title"].as_str().or(value.as_str()).map(one_line)?;
            Some(Choice { value, title })
        };
        return titled.iter().filter_map(choice).collect();
    }
    let names = schema["enumNames"].as_array();
    let values = schema["enum"].as_array();
    let choice = |(at, value): (usize, &Value)| {
        let name = names.and_then(|names| names.get(at)?.as_str()).or(value.as_str());
        Choice { value: value.clone(), title: name.map_or_else(|| value.to_string(), one_line) }
    };
    values.into_iter().flatten().enumerate().map(choice).collect()
}

fn is_email(text: &str) -> bool {
    let plain =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace() || c == '@' || c.is_control());
    text.split_once('@').is_some_and(|(name, host)| plain(name) && plain(host))
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme && !rest.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// `2026-07-28`
fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |text: &str, digits: usize| {
        let is_plain = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_plain { text.parse::<u32>().ok() } else { None }
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// `2026-07-28T12:00:00Z`, `2026-07-28T12:00:00.5+02:00`
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let Some(zone) = time.find(['Z', 'z', '+', '-']) else { return false };
    let (clock, zone) = time.split_at(zone);
    let pair = |text: &str, most: u32| text.len() == 2 && text.parse::<u32>().is_ok_and(|number| number <= most);
    let (clock, fraction) = clock.split_once('.').map_or((clock, None), |(clock, rest)| (clock, Some(rest)));
    let parts: Vec<_> = clock.split(':').collect();
    let is_clock =
        matches!(parts.as_slice(), [hour, minute, second] if pair(hour, 23) && pair(minute, 59) && pair(second, 60));
    let is_fraction = fraction.is_none_or(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
    let is_zone = zone.eq_ignore_ascii_case("z")
        || zone
            .get(1..)
            .and_then(|zone| zone.split_once(':'))
            .is_some_and(|(hour, minute)| pair(hour, 23) && pair(minute, 59));
    is_date(date) && is_clock && is_fraction && is_zone
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_field_takes_what_it_says() {
        let form = json!({"properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "mail": {"type": "string", "format": "email"},
            "day": {"type": "string", "format": "date"},
            "time": {"type": "string", "format": "date-time"},
            "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"]},
            "sizes": {"type": "array", "minItems": 1, "items": {"anyOf": [{"const": "s", "title": "small"}]}},
        }, "required": ["name", "age"]});
        let fields = Field::all(&form);
        let field = |name: &str| fields.iter().find(|field| field.name == name).expect("a field");
        assert_eq!(field("name").prompt(), "Your name (at least 2 characters)");
        assert_eq!(field("age").prompt(), "age (an integer, 0 to 150)");
        assert_eq!(field("mail").prompt(), "mail (email, may be empty)");
        assert_eq!(field("age").value("36"), Ok(Some(json!(36))));
        assert_eq!(field("age").value("200"), Err("expected an integer, 0 to 150".to_owned()));
        assert_eq!(field("age").value("1.5"), Err("expected an integer, 0 to 150".to_owned()));
        assert_eq!(field("mail").value(""), Ok(None));
        assert!(field("mail").value("ada").is_err() && field("mail").value("ada@example.com").is_ok());
        assert!(field("name").value("").is_err());
        for (day, good) in [("2026-02-28", true), ("2026-02-29", false), ("2024-02-29", true), ("26-1-1", false)] {
            assert_eq!(field("day").value(day).is_ok(), good, "{day}");
        }
        for (time, good) in [
            ("2026-07-28T12:00:00Z", true),
            ("2026-07-28T12:00:00.25+02:00", true),
            ("2026-07-28", false),
            ("2026-07-28T25:00:00Z", false),
        ] {
            assert_eq!(field("time").value(time).is_ok(), good, "{time}");
        }
        assert!(matches!(&field("colour").kind, Kind::One(choices) if choices[1].title == "green"));
        assert!(field("sizes").check_count(0).is_err() && field("sizes").check_count(1).is_ok());
    }
}
