//! Output: answers on standard output, all else on standard error.

mod content;
mod media;
mod progress;
mod screen;
mod table;
mod text;
pub(crate) mod version;

pub(crate) use content::{blocks, contents, plain, pretty};
pub(crate) use media::{Media, Place, size};
pub(crate) use progress::Progress;
pub(crate) use screen::Screen;
pub(crate) use table::{Table, wrapped};
pub(crate) use text::{first_line, one_line, shown};
