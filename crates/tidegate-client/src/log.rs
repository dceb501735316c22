//! A log that a test reads.

use std::{
    io,
    sync::{Arc, Mutex, Once},
};

use tracing::subscriber::DefaultGuard;

#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Takes all that this thread logs, of every level, until the guard is dropped.
    pub(crate) fn capture(&self) -> DefaultGuard {
        // Whether anybody listens to an event is remembered for all threads: without somebody who always does, a
        // test that listens to nothing can make this one deaf.
        static EVERYBODY: Once = Once::new();
        EVERYBODY.call_once(|| {
            let deaf = tracing_subscriber::fmt().with_writer(io::sink).with_max_level(tracing::Level::TRACE);
            let _ = tracing::subscriber::set_global_default(deaf.finish());
        });
        let writer = self.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false);
        tracing::subscriber::set_default(subscriber.with_max_level(tracing::Level::TRACE).finish())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
