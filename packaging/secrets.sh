#!/bin/sh
# Makes what daemons of one database keep secret: `sh packaging/secrets.sh DIRECTORY`. What is there already is kept.
#
#   fleet-key       with it the daemons forward clients to each other
#   pgpass          password of the role `zot`, as a password file of libpq
#   admin-password  of the administrator of the database that the compose file starts
#   tls.crt tls.key of the WebSocket door; signed by itself, because daemons trust the fleet key instead
set -eu
umask 077
[ $# = 1 ] || { echo "usage: sh secrets.sh DIRECTORY" >&2; exit 2; }
command -v openssl >/dev/null || { echo "secrets.sh: openssl is not installed" >&2; exit 1; }
mkdir -p "$1"
cd "$1"
[ -e fleet-key ] || openssl rand -hex 32 >fleet-key
[ -e admin-password ] || openssl rand -hex 16 >admin-password
[ -e pgpass ] || echo "*:*:zot:zot:$(openssl rand -hex 16)" >pgpass
[ -e tls.key ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
    -subj /CN=zotd -keyout tls.key -out tls.crt 2>/dev/null
