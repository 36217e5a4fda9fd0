//! The server's progress, as a bar on standard error.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Deserialize;
use tricorn::jsonrpc::RawJson;

use super::screen::Screen;
use super::text::one_line;

/// Steps of a bar, whatever the server counts.
const STEPS: u64 = 1000;

#[derive(Deserialize)]
struct Told {
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

/// A bar that appears with the first progress and goes with this.
pub(crate) struct Progress(Screen);

impl Progress {
    pub(crate) fn new(screen: &Screen) -> Self {
        Self(screen.clone())
    }

    /// Returns the listener for the progress of one request.
    pub(crate) fn listener(&self) -> impl Fn(RawJson) + Send + Sync + 'static {
        let (screen, bar) = (self.0.clone(), std::sync::OnceLock::<ProgressBar>::new());
        move |told: RawJson| {
            let Ok(told) = told.to::<Told>() else { return };
            if screen.can_move() && !screen.is_held() {
                let bar = bar.get_or_init(|| made(&screen, told.total));
                show(bar, &told);
                screen.set_bar_once(bar);
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.set_bar(None);
    }
}

fn made(screen: &Screen, total: Option<f64>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
    let green = if screen.error_style().colours { ".green" } else { "" };
    let template = match total {
        Some(_) => format!("{{bar:24{green}}} {{wide_msg}}"),
        None => format!("{{spinner{green}}} {{wide_msg}}"),
    };
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("━━╌"));
    }
    if total.is_none() {
        bar.enable_steady_tick(Duration::from_millis(120));
    }
    bar
}

fn show(bar: &ProgressBar, told: &Told) {
    let message = told.message.as_deref().map(one_line).unwrap_or_default();
    match told.total.filter(|total| *total > 0.0) {
        Some(total) => {
            let share = (told.progress / total).clamp(0.0, 1.0);
            bar.set_message(format!("{}/{} {message}", number(told.progress), number(total)));
            bar.set_position((share * STEPS as f64) as u64);
        }
        None => bar.set_message(format!("{} {message}", number(told.progress))),
    }
    bar.tick();
}

/// A number without a fraction that nobody needs.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:.2}") }
}
