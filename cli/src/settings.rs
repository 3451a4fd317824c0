//! What the program is told: flags go before the environment, that before the configuration file,
//! that before the defaults.
//!
//! clap merges flags and environment; here the file is read and put below them. What the words mean
//! is the commands'.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use thiserror::Error as ThisError;

use crate::args::Common;
use crate::error::Error;
use crate::output::Format;
use crate::state_dir::StateDir;

pub mod file;

use file::ConfigFile;

/// Why the configuration cannot be followed.
#[derive(Debug, ThisError)]
pub enum SettingsError {
    /// The file that was named cannot be read.
    #[error("read the configuration {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It is not what a configuration is.
    #[error("read the configuration {}: {reason}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong, with line and column.
        reason: String,
    },
}

/// What every command is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The coordinator to speak to.
    pub server: Option<String>,
    /// The file that holds the token.
    pub token_file: Option<PathBuf>,
    /// How answers look.
    pub format: Format,
    /// Where the embedded parts live.
    pub state: StateDir,
    /// The configuration file that was named, for processes of our own.
    pub config: Option<PathBuf>,
    /// What else the configuration file says.
    pub file: ConfigFile,
}

impl Settings {
    /// Reads the file and merges; `env` is the process's environment.
    pub fn load(
        common: &Common,
        env: impl Fn(&str) -> Option<OsString> + Copy,
    ) -> Result<Self, Error> {
        let state = StateDir::find(env)?;
        let file = match &common.config {
            Some(path) => read(path)?,
            None => match default_path(env) {
                Some(path) if path.exists() => read(&path)?,
                Some(_) | None => ConfigFile::default(),
            },
        };
        let said = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        Ok(Self {
            server: said(&common.server).or_else(|| said(&file.server)),
            token_file: common
                .token_file
                .clone()
                .filter(|path| !path.as_os_str().is_empty())
                .or_else(|| file.token_file.clone()),
            format: common.output.or(file.output).unwrap_or_default(),
            state,
            config: common.config.clone(),
            file,
        })
    }
}

fn default_path(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(base.join("ganger/config.yaml"))
}

fn read(path: &Path) -> Result<ConfigFile, SettingsError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| SettingsError::Read { path: path.to_owned(), source })?;
    let mut file = ConfigFile::parse(&text)
        .map_err(|reason| SettingsError::Malformed { path: path.to_owned(), reason })?;
    if let Some(dir) = path.parent() {
        file.resolve(dir);
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed call is the failed test")]
    use super::*;

    fn common(server: Option<&str>, config: &Path) -> Common {
        Common {
            server: server.map(str::to_owned),
            token_file: None,
            output: None,
            config: Some(config.to_owned()),
        }
    }

    fn env(name: &str) -> Option<OsString> {
        (name == "HOME").then(|| "/home/anna".into())
    }

    #[test]
    fn what_is_said_on_the_command_line_goes_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.yaml");
        std::fs::write(&path, "server: http://file:1\noutput: json\ntoken_file: my.token\n")
            .unwrap();
        let told = Settings::load(&common(Some("http://flag:1"), &path), env).unwrap();
        assert_eq!(told.server.as_deref(), Some("http://flag:1"));
        assert_eq!(told.format, Format::Json);
        assert_eq!(told.token_file, Some(dir.path().join("my.token")));
        let told = Settings::load(&common(None, &path), env).unwrap();
        assert_eq!(told.server.as_deref(), Some("http://file:1"));
        // An empty variable counts as unset.
        let told = Settings::load(&common(Some(""), &path), env).unwrap();
        assert_eq!(told.server.as_deref(), Some("http://file:1"));
    }

    #[test]
    fn a_key_nobody_knows_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.yaml");
        std::fs::write(&path, "coordinator:\n  listne: 127.0.0.1:1\n").unwrap();
        let refused = Settings::load(&common(None, &path), env).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("listne") && text.contains("config.yaml"), "{text}");
        assert_eq!(refused.exit(), crate::exit::Exit::Usage);
    }

    #[test]
    fn a_file_that_was_named_must_be_there() {
        let refused = Settings::load(&common(None, Path::new("/nowhere/c.yaml")), env);
        assert!(refused.is_err());
        let unnamed = Common { config: None, ..common(None, Path::new("")) };
        assert!(Settings::load(&unnamed, env).is_ok());
    }
}
