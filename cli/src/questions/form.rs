//! Forms in the terminal.

use console::Term;
use dialoguer::theme::{ColorfulTheme, SimpleTheme, Theme};
use dialoguer::{Input, MultiSelect, Select};
use serde_json::{Map, Value};

use super::field::{Choice, Field, Kind};
use crate::output::{Screen, one_line, wrapped};

/// Lets the user fill in a form; `None` when he declines.
///
/// # Errors
/// The terminal is gone, or the user cancels.
pub(super) fn fill(screen: &Screen, message: &str, schema: &Value) -> dialoguer::Result<Option<Map<String, Value>>> {
    let term = Term::stderr();
    let theme = theme(screen);
    term.write_line(&format!("{}\n{}", screen.error_style().bold("The server asks:"), wrapped(screen, message, "  ")))?;
    let fields = Field::all(schema);
    let choices = if fields.is_empty() { ["Accept", "Decline"] } else { ["Answer", "Decline"] };
    let chosen = Select::with_theme(&*theme).with_prompt("Your answer").items(choices).default(0).interact_on(&term)?;
    if chosen != 0 {
        return Ok(None);
    }
    let mut content = Map::new();
    for field in &fields {
        if let Some(description) = &field.description {
            term.write_line(&screen.error_style().dim(&wrapped(screen, description, "  ")))?;
        }
        if let Some(value) = ask(&term, &*theme, field)? {
            content.insert(field.name.clone(), value);
        }
    }
    Ok(Some(content))
}

/// The look of questions.
pub(super) fn theme(screen: &Screen) -> Box<dyn Theme> {
    if screen.error_style().colours { Box::new(ColorfulTheme::default()) } else { Box::new(SimpleTheme) }
}

fn ask(term: &Term, theme: &dyn Theme, field: &Field) -> dialoguer::Result<Option<Value>> {
    match &field.kind {
        Kind::Text => text(term, theme, field),
        Kind::One(choices) => one(term, theme, field, choices),
        Kind::Many(choices) => many(term, theme, field, choices),
    }
}

fn text(term: &Term, theme: &dyn Theme, field: &Field) -> dialoguer::Result<Option<Value>> {
    let mut input = Input::<String>::with_theme(theme).with_prompt(field.prompt()).allow_empty(!field.is_required);
    let default = field.default.as_ref().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    // What cannot be shown as it is is no default.
    if let Some(default) = default.filter(|text| one_line(text) == *text) {
        input = input.with_initial_text(default);
    }
    let given = input.validate_with(|text: &String| field.value(text).map(drop)).interact_text_on(term)?;
    Ok(field.value(&given).ok().flatten())
}

fn one(term: &Term, theme: &dyn Theme, field: &Field, choices: &[Choice]) -> dialoguer::Result<Option<Value>> {
    const NOTHING: &str = "(no answer)";
    let titles = choices.iter().map(|choice| choice.title.as_str()).chain((!field.is_required).then_some(NOTHING));
    let default = choices.iter().position(|choice| Some(&choice.value) == field.default.as_ref());
    let default = default.unwrap_or(if field.is_required { 0 } else { choices.len() });
    let select = Select::with_theme(theme).with_prompt(field.prompt()).items(titles).default(default);
    let chosen = select.interact_on(term)?;
    Ok(choices.get(chosen).map(|choice| choice.value.clone()))
}

fn many(term: &Term, theme: &dyn Theme, field: &Field, choices: &[Choice]) -> dialoguer::Result<Option<Value>> {
    let before = field.default.as_ref().and_then(Value::as_array);
    let defaults: Vec<_> =
        choices.iter().map(|choice| before.is_some_and(|before| before.contains(&choice.value))).collect();
    let titles: Vec<_> = choices.iter().map(|choice| choice.title.as_str()).collect();
    loop {
        let select = MultiSelect::with_theme(theme).with_prompt(field.prompt()).items(&titles).defaults(&defaults);
        let chosen = select.interact_on(term)?;
        if chosen.is_empty() && !field.is_required {
            return Ok(None);
        }
        match field.check_count(chosen.len()) {
            Ok(()) => {
                let chosen = chosen.into_iter().filter_map(|at| choices.get(at));
                return Ok(Some(chosen.map(|choice| choice.value.clone()).collect()));
            }
            Err(why) => term.write_line(&why)?,
        }
    }
}
