//! The thread that owns the connection: SQLite blocks whoever calls it.

use std::{
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use tokio::sync::oneshot;

use super::database::{Database, Failure};

type Work = Box<dyn FnOnce(&mut Database) + Send>;

/// Where work for the connection's thread goes. The thread ends with the last clone.
#[derive(Debug, Clone)]
pub(super) struct DatabaseThread(Sender<Work>);

impl DatabaseThread {
    /// Starts the thread.
    pub(super) fn start(database: Database) -> std::io::Result<Self> {
        let (works, received) = channel();
        std::thread::Builder::new().name("tidegate-sqlite".to_owned()).spawn(|| serve(database, received))?;
        Ok(Self(works))
    }

    /// Has `work` done, unless `patience` has run out before it begins. A transaction that it opens is rolled back
    /// if nobody waits for the answer any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut Database) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |database| {
            if answer.is_closed() {
                return;
            }
            let of_another = database.in_transaction().is_some();
            if answer.send(database.guard(work)).is_err() && !of_another {
                database.abandon();
            }
        });
        // A thread that has ended drops the work, and with it the answer's sender.
        let _ = self.0.send(work);
        match tokio::time::timeout(patience, answered).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(Failure::Other("the thread of the database has ended".into())),
            Err(_) => Err(Failure::Other(format!("no answer within {patience:?}").into())),
        }
    }

    /// Rolls back the open transaction, if there is one.
    pub(super) fn abandon(&self) {
        let _ = self.0.send(Box::new(Database::abandon));
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the thread owns both, and closes the file when it ends")]
fn serve(mut database: Database, works: Receiver<Work>) {
    for work in &works {
        work(&mut database);
    }
}
