//! Numbers for metrics.

/// What an open store holds, and what it has done since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Rows, those that have expired and were not swept yet included.
    pub rows: u64,
    /// Those of the current secret.
    pub rows_of_secret: u64,
    /// Bytes that the rows take up in the log, about.
    pub live_bytes: u64,
    /// Bytes of memory for the rows, without the allocator's own.
    pub memory_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of all files, the prepared and the spare ones included.
    pub disk_bytes: u64,
    /// Segments of the log.
    pub segments: u64,
    /// Frames written.
    pub frames: u64,
    /// Bytes written to the log.
    pub written_bytes: u64,
    /// Of those, copies of rows that let old segments go.
    pub copied_bytes: u64,
    /// Times that the log was flushed.
    pub flushes: u64,
}
