//! The log itself: open and repair, append a batch, roll, remove what is no longer needed.
//!
//! Not here: the judgement about a bad tail (`scan`) and reading (`read`).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, RealDisk, is_full};
use crate::error::{AppendError, OpenError, ReadError, TruncateError};
use crate::frame;
use crate::lock::Lock;
use crate::read::{Frames, follows};
use crate::scan::{Cut, Scanner, Step};
use crate::segment::{self, Segment};

/// Bounds of a log, and the disk it uses.
pub struct Options {
    /// A segment that has reached this size is finished and a new one begun.
    pub segment_bytes: u64,
    /// The largest batch accepted, as written.
    pub batch_bytes_max: u64,
    /// How much is read and checked at open, newest segments first; the last one always is.
    pub check_bytes_max: u64,
    /// The disk; tests put one here that fails.
    pub disk: Box<dyn Disk>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 20,
            batch_bytes_max: 80 << 20,
            check_bytes_max: 1 << 30,
            disk: Box::new(RealDisk),
        }
    }
}

/// What opening found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The log did not exist before.
    pub created: bool,
    /// How many segments there are.
    pub segments: usize,
    /// How many of them, the oldest, were not read because of `check_bytes_max`.
    pub unchecked_segments: usize,
    /// The unfinished batch that was cut off the end.
    pub cut: Option<Cut>,
    /// The first frame there is, or the one to come when there is none.
    pub first_log_seq: u64,
    /// The number the next frame gets.
    pub next_log_seq: u64,
}

/// An open log; the only one of its directory.
pub struct Log {
    dir: PathBuf,
    sealed: Vec<Segment>,
    active: Segment,
    file: File,
    next: u64,
    options: Options,
    /// Why nothing is accepted any more.
    failed: Option<String>,
    syncs: u64,
    buffer: Vec<u8>,
    _lock: Lock,
}

impl Log {
    /// Opens the log in `dir`, creates it when there is none, and cuts off a torn tail.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, Report), OpenError> {
        let io = |source| OpenError::Io { path: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(io)?;
        let lock = Lock::take(&dir.join("lock"))?;
        let mut sealed = segment::list(dir).map_err(io)?;
        let last = sealed.pop();
        let created = last.is_none();
        let mut active = match last {
            Some(segment) => segment,
            None => segment::create(dir, 1).map_err(io)?.0,
        };
        if created {
            segment::sync_dir(&dir.join("..")).map_err(io)?;
        }
        let segments: Vec<&Segment> = sealed.iter().chain([&active]).collect();
        let mut checked = check(&segments, options.check_bytes_max)?;
        let file = reopen(&mut active, checked.cut.as_ref())?;
        segment::sync_dir(dir).map_err(io)?;
        checked.report.created = created;
        checked.report.cut = checked.cut;
        let next = checked.report.next_log_seq;
        let log = Self {
            dir: dir.to_owned(),
            sealed,
            active,
            file,
            next,
            options,
            failed: None,
            syncs: 2,
            buffer: Vec::new(),
            _lock: lock,
        };
        Ok((log, checked.report))
    }

    /// Appends all payloads or none, and returns their numbers once they are on the disk.
    pub fn append_batch<P: AsRef<str>>(
        &mut self,
        payloads: &[P],
    ) -> Result<RangeInclusive<u64>, AppendError> {
        self.still_good()?;
        self.encode(payloads)?;
        let bytes = self.buffer.len() as u64;
        if bytes > self.options.batch_bytes_max {
            return Err(AppendError::TooLarge { bytes, max: self.options.batch_bytes_max });
        }
        if self.active.bytes > 0 && self.active.bytes + bytes > self.options.segment_bytes {
            self.roll()?;
        }
        if let Err(error) = self.options.disk.write(&mut self.file, &self.buffer) {
            return Err(self.take_back(&error));
        }
        self.syncs += 1;
        if let Err(error) = self.options.disk.sync(&self.file) {
            return Err(self.fail(format!("sync failed: {error}")));
        }
        self.active.bytes += bytes;
        let first = self.next;
        self.next += payloads.len() as u64;
        Ok(first..=self.next - 1)
    }

    /// Streams the frames from `log_seq` on, up to the last one appended so far.
    pub fn read_from(&self, log_seq: u64) -> Result<Frames, ReadError> {
        let mut segments = self.sealed.clone();
        segments.push(self.active.clone());
        Frames::new(segments, log_seq)
    }

    /// Removes the finished segments that hold only frames before `log_seq`; returns how many.
    pub fn truncate_before(&mut self, log_seq: u64) -> Result<usize, TruncateError> {
        if let Some(reason) = &self.failed {
            return Err(TruncateError::Failed { reason: reason.clone() });
        }
        let mut removed = 0;
        while !self.sealed.is_empty() && self.second_first() <= log_seq {
            let path = self.sealed[0].path.clone();
            fs::remove_file(&path).map_err(|source| TruncateError::Io { path, source })?;
            self.sealed.remove(0);
            removed += 1;
        }
        if removed > 0 {
            segment::sync_dir(&self.dir)
                .map_err(|source| TruncateError::Io { path: self.dir.clone(), source })?;
        }
        Ok(removed)
    }

    /// The number the next frame gets.
    pub fn next_log_seq(&self) -> u64 {
        self.next
    }

    /// The first frame there is, or the one to come when there is none.
    pub fn first_log_seq(&self) -> u64 {
        self.sealed.first().unwrap_or(&self.active).first
    }

    /// The first frame that is not in a finished segment.
    pub fn active_from(&self) -> u64 {
        self.active.first
    }

    /// How many times the log has synced a file since it was opened.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }

    /// How many bytes the log's disk still takes.
    pub fn free_bytes(&mut self) -> io::Result<u64> {
        self.options.disk.free_bytes(&self.dir)
    }

    /// Where the segment after the oldest starts.
    fn second_first(&self) -> u64 {
        self.sealed.get(1).unwrap_or(&self.active).first
    }

    fn still_good(&self) -> Result<(), AppendError> {
        match &self.failed {
            None => Ok(()),
            Some(reason) => {
                Err(AppendError::Failed { path: self.active.path.clone(), reason: reason.clone() })
            }
        }
    }

    /// Writes the batch as frames into the buffer.
    fn encode<P: AsRef<str>>(&mut self, payloads: &[P]) -> Result<(), AppendError> {
        self.buffer.clear();
        let count = match u32::try_from(payloads.len()) {
            Ok(0) => return Err(AppendError::Empty),
            Ok(count) => count,
            Err(_) => {
                let (bytes, max) = (payloads.len() as u64, self.options.batch_bytes_max);
                return Err(AppendError::TooLarge { bytes, max });
            }
        };
        for (index, payload) in (0..count).zip(payloads) {
            let payload = payload.as_ref();
            if payload.contains('\n') {
                return Err(AppendError::Newline { index: index as usize });
            }
            frame::encode(&mut self.buffer, (self.next + u64::from(index), index, count), payload);
        }
        Ok(())
    }

    /// Finishes the active segment and begins a new one.
    fn roll(&mut self) -> Result<(), AppendError> {
        match segment::create(&self.dir, self.next) {
            Ok((segment, file)) => {
                self.syncs += 2;
                self.file = file;
                self.sealed.push(std::mem::replace(&mut self.active, segment));
                Ok(())
            }
            Err(error) if is_full(&error) && !segment::path(&self.dir, self.next).exists() => {
                Err(AppendError::DiskFull { path: self.dir.clone() })
            }
            // Whether the new name is on the disk is unknown: only opening again can tell.
            Err(error) => Err(self.fail(format!("begin a new segment: {error}"))),
        }
    }

    /// Removes what a failed write left, so that the next batch is not glued onto a fragment.
    fn take_back(&mut self, error: &io::Error) -> AppendError {
        match self.file.set_len(self.active.bytes) {
            Ok(()) if is_full(error) => AppendError::DiskFull { path: self.active.path.clone() },
            Ok(()) => self.fail(format!("write failed: {error}")),
            Err(cut) => self.fail(format!("write failed: {error}; cutting it back failed: {cut}")),
        }
    }

    fn fail(&mut self, reason: String) -> AppendError {
        self.failed = Some(reason.clone());
        AppendError::Failed { path: self.active.path.clone(), reason }
    }
}

/// What reading the segments at open showed.
struct Checked {
    report: Report,
    cut: Option<Cut>,
}

/// Reads the newest segments, within the bound, and checks every frame in them.
fn check(segments: &[&Segment], bytes_max: u64) -> Result<Checked, OpenError> {
    let mut left = bytes_max;
    let within = segments.iter().rev().take_while(|segment| {
        let fits = segment.bytes <= left;
        left = left.saturating_sub(segment.bytes);
        fits
    });
    let checked = within.count().max(1);
    let (mut next, mut cut) = (None, None);
    for (place, segment) in segments.iter().enumerate().skip(segments.len() - checked) {
        follows(segment, next)?;
        let last = place + 1 == segments.len();
        let mut scanner = Scanner::open(&segment.path, segment.first, segment.bytes, last)?;
        cut = loop {
            match scanner.step()? {
                Step::Batch => {}
                Step::End => break None,
                Step::Torn(cut) => break Some(cut),
            }
        };
        next = Some(scanner.next_log_seq());
    }
    let report = Report {
        created: false,
        segments: segments.len(),
        unchecked_segments: segments.len() - checked,
        cut: None,
        first_log_seq: segments[0].first,
        next_log_seq: next.expect("at least one segment was read"),
    };
    Ok(Checked { report, cut })
}

/// Opens the last segment for appending, without its torn tail. What is left is synced: a killed
/// process may have left a whole batch that only the page cache holds.
fn reopen(active: &mut Segment, cut: Option<&Cut>) -> Result<File, OpenError> {
    let io = |source| OpenError::Io { path: active.path.clone(), source };
    let file = OpenOptions::new().append(true).open(&active.path).map_err(io)?;
    if let Some(cut) = cut {
        file.set_len(cut.offset).map_err(io)?;
    }
    file.sync_all().map_err(io)?;
    active.bytes = cut.map_or(active.bytes, |cut| cut.offset);
    Ok(file)
}
