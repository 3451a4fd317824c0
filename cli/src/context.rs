//! What every command is handed: the settings, and where its answers go.

use crate::args::Common;
use crate::error::Error;
use crate::output::Output;
use crate::settings::Settings;

/// What every command is handed.
#[derive(Debug)]
pub struct Context {
    /// What the program is told.
    pub settings: Settings,
    /// Where answers go.
    pub out: Output,
}

impl Context {
    /// From the words every command has, and the process's environment.
    pub fn new(common: &Common) -> Result<Self, Error> {
        let settings = Settings::load(common, |name| std::env::var_os(name))?;
        let out = Output::of_process(settings.format);
        Ok(Self { settings, out })
    }
}
