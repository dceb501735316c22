//! mariadb.
