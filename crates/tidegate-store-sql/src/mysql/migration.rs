//! The tables on the server, and whether the server and they are what this program works with.

use sqlx::Row;

use super::connection::{Connection, Failure, NO_TABLE};
use crate::{OpenError, schema};

/// The tables, a step for each version. A step that was released is never changed.
///
/// The server commits after every `CREATE`: a step that was cut off is made again, and must bear that.
const STEPS: &[&str] = &["
    CREATE TABLE IF NOT EXISTS tidegate_rows (
        secret_id BIGINT UNSIGNED NOT NULL,
        id BINARY(24) NOT NULL,
        value VARBINARY(4096) NOT NULL,
        expires_at_ms BIGINT UNSIGNED NOT NULL,
        PRIMARY KEY (secret_id, id),
        KEY by_expiry (expires_at_ms)
    ) ENGINE = InnoDB;
    CREATE TABLE IF NOT EXISTS tidegate_held (
        secret_id BIGINT UNSIGNED NOT NULL,
        slot TINYINT UNSIGNED NOT NULL,
        held BIGINT NOT NULL,
        PRIMARY KEY (secret_id, slot)
    ) ENGINE = InnoDB
"];

const VERSION_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS tidegate_schema (
        only_row TINYINT UNSIGNED NOT NULL PRIMARY KEY,
        version INT UNSIGNED NOT NULL
    ) ENGINE = InnoDB";

/// The lock's name, of one database: the server's locks are for all of them, and have names of 64 characters.
const LOCK: &str = "LEFT(CONCAT('tidegate migrate ', DATABASE()), 64)";
/// Another migration may be under way for so long.
const LOCK_PATIENCE_S: u32 = 60;

/// Brings the tables to the newest version.
pub(super) async fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    check_server(connection).await?;
    let lock = format!("SELECT COALESCE(GET_LOCK({LOCK}, {LOCK_PATIENCE_S}), 0) = 1");
    let locking = "waiting for the lock to migrate under";
    let got: bool = number(connection, lock).await.map_err(at(locking))? == 1;
    if !got {
        return Err(OpenError::at(locking)("another migration has it"));
    }
    // The lock goes with the connection, whatever happens.
    make_steps(connection).await?;
    number(connection, format!("SELECT RELEASE_LOCK({LOCK})")).await.map(|_| ()).map_err(at(locking))
}

async fn make_steps(connection: &mut Connection) -> Result<(), OpenError> {
    let found = version(connection).await?;
    let steps = schema::steps_from(found, STEPS)?;
    let making = "making a step of the migration";
    connection.ask(VERSION_TABLE.to_owned()).await.map_err(at(making))?;
    for (version, step) in steps {
        connection.ask(step.to_owned()).await.map_err(at(making))?;
        let note = format!("REPLACE INTO tidegate_schema (only_row, version) VALUES (1, {version})");
        connection.ask(note).await.map_err(at("writing the version of the tables"))?;
    }
    Ok(())
}

/// Refuses a server, and tables, that this program does not work with.
pub(super) async fn check(connection: &mut Connection) -> Result<(), OpenError> {
    check_server(connection).await?;
    schema::check(version(connection).await?, STEPS)
}

/// The version of the tables; 0 where there are none.
async fn version(connection: &mut Connection) -> Result<u32, OpenError> {
    let doing = "reading the version of the tables";
    let version = "SELECT CAST(COALESCE(MAX(version), 0) AS SIGNED) FROM tidegate_schema";
    match number(connection, version.to_owned()).await {
        Ok(version) => u32::try_from(version).map_err(OpenError::at(doing)),
        Err(Failure::Refused(NO_TABLE, _)) => Ok(0),
        Err(failure) => Err(at(doing)(failure)),
    }
}

async fn check_server(connection: &mut Connection) -> Result<(), OpenError> {
    let doing = "asking the server for its version";
    let rows = connection.ask("SELECT VERSION()".to_owned()).await.map_err(at(doing))?;
    let row = rows.first().ok_or_else(|| OpenError::at(doing)("no answer"))?;
    let found: String = row.try_get(0).map_err(OpenError::at(doing))?;
    if is_new_enough(&found) { Ok(()) } else { Err(OpenError::ServerOld { found }) }
}

/// Whether it can skip rows that others have locked.
fn is_new_enough(found: &str) -> bool {
    let mut numbers = found.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    version >= if found.contains("MariaDB") { (10, 6) } else { (8, 0) }
}

async fn number(connection: &mut Connection, statement: String) -> Result<i64, Failure> {
    let rows = connection.ask(statement).await?;
    let row = rows.first().ok_or_else(|| Failure::Broken("no answer".into()))?;
    Ok(row.try_get(0)?)
}

/// For `map_err`: the server's failure, with what was being done.
pub(super) fn at(doing: &'static str) -> impl FnOnce(Failure) -> OpenError {
    move |failure| OpenError::at(doing)(failure.cause())
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn servers() {
        let table = [
            ("10.11.6-MariaDB-0+deb12u1", true),
            ("10.6.0-MariaDB", true),
            ("11.4.2-MariaDB-log", true),
            ("10.5.23-MariaDB", false),
            ("8.0.36", true),
            ("8.0.mysql_aurora.3.05.2", true),
            ("9.1.0-commercial", true),
            ("5.7.44-log", false),
            ("", false),
        ];
        for (found, enough) in table {
            assert_eq!(is_new_enough(found), enough, "{found}");
        }
    }
}
