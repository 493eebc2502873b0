-- Makes a database for the journal of zotd, and two roles that can do what they have to and nothing else:
--
--   zot         the daemon: owns the schema `zot` of the database `zot`, and makes and changes its tables
--   zot_backup  reads these tables, for pg_dump
--
-- Run it once, as an administrator of the server; then give the roles a way to log in (docs/postgresql.md):
--
--   psql -v ON_ERROR_STOP=1 -f roles.sql postgres
--   psql -v ON_ERROR_STOP=1 -v daemons=30 -f roles.sql postgres
--
-- Each daemon has up to six connections. Those of one more are for a daemon that starts while the server still ends the
-- connections of the one that it replaces. `max_connections` of the server has to be higher.

\if :{?daemons}
\else
    \set daemons 10
\endif
SELECT 6 * (:daemons + 1) AS connections \gset

CREATE ROLE zot LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT :connections;
CREATE ROLE zot_backup LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 5;

CREATE DATABASE zot ENCODING 'UTF8' TEMPLATE template0;
REVOKE ALL ON DATABASE zot FROM PUBLIC;
GRANT CONNECT ON DATABASE zot TO zot, zot_backup;

\connect zot

REVOKE ALL ON SCHEMA public FROM PUBLIC;
CREATE SCHEMA zot AUTHORIZATION zot;
ALTER ROLE zot IN DATABASE zot SET search_path = zot;
ALTER ROLE zot_backup IN DATABASE zot SET search_path = zot;
ALTER ROLE zot_backup IN DATABASE zot SET default_transaction_read_only = on;
GRANT USAGE ON SCHEMA zot TO zot_backup;
ALTER DEFAULT PRIVILEGES FOR ROLE zot IN SCHEMA zot GRANT SELECT ON TABLES TO zot_backup;
ALTER DEFAULT PRIVILEGES FOR ROLE zot IN SCHEMA zot GRANT SELECT ON SEQUENCES TO zot_backup;
