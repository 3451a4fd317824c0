//! `ganger token`: issues, lists and revokes tokens.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use ganger_proto::{read, v1};
use ganger_shared::plan::Length;
use ganger_shared::time::Timestamp;
use serde::Serialize;

use super::done;
use crate::args::Mutation;
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::note;
use crate::output::style::Style;
use crate::output::table::{Cell, table};
use crate::output::words;
use crate::session;

/// The commands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a token and show it, this once.
    Issue(IssueArgs),
    /// Show tokens, without their secrets.
    List {
        /// Revoked and expired ones, too.
        #[arg(long)]
        all: bool,
    },
    /// End a token.
    Revoke {
        /// Its id, or the name its bearer acts under where only one token has it.
        token: String,
        /// Name of this call.
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
    },
}

/// The token to make.
#[derive(Debug, clap::Args)]
pub struct IssueArgs {
    /// The name its bearer acts under [default: the role].
    pub name: Option<String>,
    /// What the bearer may do.
    #[arg(long, value_name = "ROLE")]
    pub role: Role,
    /// The project it holds for; may be given often [default: all].
    #[arg(long = "project", value_name = "PROJECT")]
    pub projects: Vec<String>,
    /// When it ends, from now on [default: never].
    #[arg(long, value_name = "TIME", value_parser = Length::parse)]
    pub expires_in: Option<Length>,
    /// Write it to this file, for its owner alone, instead of showing it.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Name of this call: a repeat makes no second token, and cannot show the first again.
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// What a bearer may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// See everything.
    Read,
    /// Read, and submit plans.
    Submit,
    /// Read, and give verdicts and answers.
    Judge,
    /// All of the above, and control of runs and workers.
    Operate,
    /// Attach as a worker; nothing else.
    Worker,
}

impl Role {
    fn wire(self) -> v1::Role {
        match self {
            Self::Read => v1::Role::Read,
            Self::Submit => v1::Role::Submit,
            Self::Judge => v1::Role::Judge,
            Self::Operate => v1::Role::Operate,
            Self::Worker => v1::Role::Worker,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Judge => "judge",
            Self::Operate => "operate",
            Self::Worker => "worker",
        }
    }
}

/// A token without its secret.
#[derive(Debug, Serialize)]
struct Shown {
    id: String,
    name: String,
    role: String,
    projects: Vec<String>,
    issued_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

impl TryFrom<v1::Token> for Shown {
    type Error = ganger_proto::Malformed;
    fn try_from(wire: v1::Token) -> Result<Self, Self::Error> {
        let role: ganger_shared::actor::Role = read::word("role", wire.role)?;
        Ok(Self {
            id: wire.id,
            name: wire.name,
            role: role.to_string(),
            projects: wire.projects,
            issued_at: read::optional_time("issued_at", wire.issued_at)?,
            expires_at: read::optional_time("expires_at", wire.expires_at)?,
            revoked_at: read::optional_time("revoked_at", wire.revoked_at)?,
        })
    }
}

/// Carries one out.
pub async fn run(command: Command, context: &Context) -> Result<Exit, Error> {
    match command {
        Command::Issue(args) => issue(args, context).await,
        Command::List { all } => list(all, context).await,
        Command::Revoke { token, key } => revoke(token, key, context).await,
    }
}

async fn issue(args: IssueArgs, context: &Context) -> Result<Exit, Error> {
    let request = v1::TokenServiceIssueRequest {
        idempotency_key: Mutation { expect: None, key: args.key }.key(),
        name: args.name.unwrap_or_else(|| args.role.word().to_owned()),
        role: args.role.wire().into(),
        projects: args.projects,
        expires_at: args.expires_in.map(|length| read::to_wire_time(now().plus(length.0))),
    };
    let answer = session::with(context, async |server| {
        Ok(server.clients().tokens().issue(request).await?.into_inner())
    })
    .await?;
    let token: Shown = read::required("token", answer.token)?;
    if answer.replayed {
        note("this token was made before, by this key; its secret was shown then");
        return Ok(Exit::Ok);
    }
    if let Some(path) = args.out {
        write_private(&path, &answer.secret)?;
        context.out.one(&token, |_| path.display().to_string())?;
    } else {
        let shown = serde_json::json!({ "secret": answer.secret, "token": token });
        context.out.one(&shown, |_| answer.secret.clone())?;
    }
    Ok(Exit::Ok)
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ms = since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Timestamp::from_unix_ms(ms)
}

fn write_private(path: &Path, secret: &str) -> Result<(), Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let mut options = std::fs::OpenOptions::new();
    // Never over a file whose mode or contents are somebody else's.
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    writeln!(file, "{secret}").map_err(failed)
}

async fn list(all: bool, context: &Context) -> Result<Exit, Error> {
    let rows = session::with(context, async |server| {
        let (mut rows, mut page_token) = (Vec::new(), String::new());
        loop {
            let filter = v1::TokenFilter { ended: all, ..v1::TokenFilter::default() };
            let request = v1::TokenServiceListRequest {
                page_size: 0,
                page_token,
                filter: Some(filter),
                order_by: String::new(),
            };
            let page = server.clients().tokens().list(request).await?.into_inner();
            rows.extend(read::each::<_, Shown>("tokens", page.tokens)?);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(rows);
            }
        }
    })
    .await?;
    context.out.list("tokens", &rows, |style| tokens(&rows, style))?;
    Ok(Exit::Ok)
}

fn tokens(rows: &[Shown], style: Style) -> String {
    let cells = rows.iter().map(|token| {
        vec![
            Cell::text(&token.name),
            Cell::text(&token.role),
            Cell::text(words::short(&token.id)),
            Cell::maybe(token.expires_at),
            Cell::maybe(token.revoked_at),
        ]
    });
    table(&["name", "role", "id", "expires", "revoked"], &cells.collect::<Vec<_>>(), style)
}

async fn revoke(token: String, key: Option<String>, context: &Context) -> Result<Exit, Error> {
    let what = format!("token {token} is revoked");
    let idempotency_key = Mutation { expect: None, key }.key();
    let request = v1::TokenServiceRevokeRequest { idempotency_key, token };
    let answer = session::with(context, async |server| {
        Ok(server.clients().tokens().revoke(request).await?.into_inner())
    })
    .await?;
    done(context, &what, answer.sequence, answer.replayed)
}
