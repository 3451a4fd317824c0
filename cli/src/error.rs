//! Everything a command can end with, its exit code, and the lines it is told in.
//!
//! Each part has its own error; here they come together. Printing is `output`'s.

use std::io;
use std::path::PathBuf;

use ganger_proto::{Malformed, Refusal};
use thiserror::Error as ThisError;
use tonic::Status;

use crate::exit::Exit;
use crate::hand_over::HandOverError;
use crate::server::ServerError;
use crate::settings::SettingsError;
use crate::submission::{PlanRefused, SubmissionError};
use crate::transfer::TransferError;
use crate::up::UpError;

/// Why a command was not carried out.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The program's home cannot be found.
    #[error("find {wants}: neither {variable} nor HOME is an absolute path; set one of them")]
    NoHome {
        /// What is wanted there.
        wants: &'static str,
        /// The variable that names it.
        variable: &'static str,
    },
    /// The command line says what cannot be.
    #[error("{0}")]
    Usage(String),
    /// The configuration file.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// No coordinator can be spoken to.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The coordinator refused.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// Nobody answers.
    #[error("no coordinator answers at {address}: {refusal}")]
    Unreachable {
        /// Where.
        address: String,
        /// What the transport said.
        refusal: Box<Refusal>,
    },
    /// The coordinator's answer cannot be read.
    #[error("read the coordinator's answer: {0}; is it of another version?")]
    Answer(#[from] Malformed),
    /// The plan has problems.
    #[error(transparent)]
    Plan(#[from] PlanRefused),
    /// The plan could not be sent.
    #[error(transparent)]
    Submission(#[from] SubmissionError),
    /// A body could not be moved.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// A branch could not be brought here.
    #[error(transparent)]
    HandOver(#[from] HandOverError),
    /// A coordinator or worker of our own did not start, or broke.
    #[error(transparent)]
    Up(#[from] UpError),
    /// A worker ended by itself.
    #[error(transparent)]
    Worker(#[from] ganger_worker::RunError),
    /// The journal in a directory could not be checked.
    #[error(transparent)]
    Verify(#[from] ganger_coordinator::journal::VerifyError),
    /// The journal in a directory could not be written out.
    #[error(transparent)]
    Export(#[from] ganger_coordinator::journal::ExportError),
    /// There is nothing of what was asked for.
    #[error("{0}")]
    Nothing(String),
    /// Telemetry.
    #[error("start telemetry: {0}")]
    Telemetry(#[from] ganger_telemetry::InitError),
    /// There is no runtime.
    #[error("start the runtime")]
    Runtime(#[source] io::Error),
    /// Standard output does not take what it should.
    #[error("write to standard output")]
    Output(#[source] io::Error),
    /// A file that was to be written.
    #[error("write {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Whoever read standard output has gone.
    #[error("standard output is closed")]
    ClosedPipe,
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Refused(Box::new(Refusal::from(&status)))
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl From<Box<Refusal>> for Error {
    fn from(refusal: Box<Refusal>) -> Self {
        Self::Refused(refusal)
    }
}

impl Error {
    /// The same error, with the address where nobody answered.
    #[must_use]
    pub fn at(self, address: &str) -> Self {
        if let Self::Refused(refusal) = self {
            if refusal.is_unreachable() {
                return Self::Unreachable { address: address.to_owned(), refusal };
            }
            return Self::Refused(refusal);
        }
        self
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NoHome { .. } | Self::Usage(_) | Self::Settings(_) => Exit::Usage,
            Self::Server(error) => error.exit(),
            Self::Refused(refusal) => Exit::of_refusal(refusal),
            Self::Unreachable { .. } => Exit::Unreachable,
            Self::Plan(_) => Exit::Refused,
            Self::Submission(error) => error.exit(),
            Self::Transfer(error) => error.exit(),
            Self::HandOver(error) => error.exit(),
            Self::Up(error) => error.exit(),
            Self::Nothing(_)
            | Self::Verify(ganger_coordinator::journal::VerifyError::Absent { .. }) => {
                Exit::NotFound
            }
            Self::ClosedPipe => Exit::Ok,
            Self::Answer(_)
            | Self::Worker(_)
            | Self::Verify(_)
            | Self::Export(_)
            | Self::Telemetry(_)
            | Self::Runtime(_)
            | Self::Output(_)
            | Self::File { .. } => Exit::Failed,
        }
    }

    /// What is told: what went wrong, where, and the way out; one line each.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.first_line()];
        match self {
            Self::Refused(refusal) => lines.extend(refusal_lines(refusal)),
            Self::Plan(refused) => lines.extend(refused.lines()),
            Self::Unreachable { .. } => {
                lines.push("  is it running? `ganger up` starts one here".to_owned());
            }
            Self::NoHome { .. }
            | Self::Usage(_)
            | Self::Settings(_)
            | Self::Server(_)
            | Self::Answer(_)
            | Self::Submission(_)
            | Self::Transfer(_)
            | Self::HandOver(_)
            | Self::Up(_)
            | Self::Worker(_)
            | Self::Verify(_)
            | Self::Export(_)
            | Self::Nothing(_)
            | Self::Telemetry(_)
            | Self::Runtime(_)
            | Self::Output(_)
            | Self::File { .. }
            | Self::ClosedPipe => {}
        }
        lines
    }

    /// The error and what caused it, as one sentence.
    fn first_line(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(source) = cause {
            let said = source.to_string();
            if !text.contains(&said) {
                text = format!("{text}: {said}");
            }
            cause = source.source();
        }
        match self {
            // These are whole sentences; the others read after "failed to".
            Self::Usage(_)
            | Self::Refused(_)
            | Self::Unreachable { .. }
            | Self::Plan(_)
            | Self::Nothing(_)
            | Self::Server(_)
            | Self::ClosedPipe => text,
            Self::NoHome { .. }
            | Self::Settings(_)
            | Self::Answer(_)
            | Self::Submission(_)
            | Self::Transfer(_)
            | Self::HandOver(_)
            | Self::Up(_)
            | Self::Worker(_)
            | Self::Verify(_)
            | Self::Export(_)
            | Self::Telemetry(_)
            | Self::Runtime(_)
            | Self::Output(_)
            | Self::File { .. } => format!("failed to {text}"),
        }
    }
}

fn refusal_lines(refusal: &Refusal) -> Vec<String> {
    let mut lines: Vec<String> =
        refusal.problems.iter().map(|problem| format!("  {problem}")).collect();
    let hidden = refusal.problems_total.saturating_sub(refusal.problems.len());
    if hidden > 0 {
        lines.push(format!("  and {hidden} more; `ganger plan check` lists them all"));
    }
    // The fields of a plan's refusal are its problems again, for programs.
    if refusal.problems.is_empty() {
        let told = |text: &String| !refusal.message.contains(text.as_str());
        let fields = refusal.fields.iter().filter(|(_, what)| told(what));
        lines.extend(fields.map(|(field, what)| format!("  {field}: {what}")));
    }
    if refusal.fields.iter().any(|(field, _)| field == "reason") {
        lines.push("  say why with -m REASON".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use ganger_proto::status;
    use ganger_shared::problem::{Code, Problem};
    use ganger_shared::rejection::Rejection;

    use super::*;

    #[test]
    fn a_refused_plan_is_told_with_place_and_way_out() {
        let problem = Problem::error(Code::UnknownName, "units[1].after[0]", "no unit `buld`")
            .with_fix("did you mean `build`?")
            .at(Some((12, 5)));
        let refused = Error::from(status::of(&Rejection::Plan { problems: vec![problem] }));
        let expected = [
            "the plan has 1 problem(s)",
            "  12:5 units[1].after[0]: no unit `buld`; did you mean `build`?",
        ];
        assert_eq!(refused.lines(), expected);
        assert_eq!(refused.exit(), Exit::Refused);
    }

    #[test]
    fn a_missing_reason_comes_with_the_flag_for_it() {
        let missing = Malformed::new("reason", ganger_proto::Reason::Missing);
        let error = Error::from(Status::from(missing));
        assert_eq!(error.lines(), ["malformed reason: it is missing", "  say why with -m REASON"]);
        assert_eq!(error.exit(), Exit::Refused);
    }

    #[test]
    fn an_error_names_its_causes() {
        let source = io::Error::other("no room");
        let error = Error::File { path: "/a/b".into(), source };
        assert_eq!(error.lines(), ["failed to write /a/b: no room"]);
    }

    #[test]
    fn silence_comes_with_a_hint() {
        let error = Error::from(Status::unavailable("tcp connect error")).at("http://x:1");
        assert_eq!(error.exit(), Exit::Unreachable);
        assert_eq!(error.lines()[0], "no coordinator answers at http://x:1: tcp connect error");
        assert!(error.lines()[1].contains("ganger up"));
    }
}
