# PostgreSQL of Debian or of the official image: makes its files once, with checksums, and knows one user by password.
set -eu
if [ "$(id -u)" = 0 ]; then
    chown postgres /data
    chmod 700 /data
    install -o postgres -m 600 /pgpass /tmp/pgpass
    exec setpriv --reuid=postgres --regid=postgres --clear-groups sh "$0"
fi
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
if [ ! -s /data/PG_VERSION ]; then
    cut -d: -f5 /tmp/pgpass >/tmp/password
    "$bin/initdb" -D /data -U fss --pwfile=/tmp/password --auth=scram-sha-256 --encoding=UTF8 --data-checksums
    rm /tmp/password
    echo "host all fss all scram-sha-256" >>/data/pg_hba.conf
    "$bin/postgres" --single -D /data postgres <<-END
	CREATE DATABASE fss
	END
fi
exec "$bin/postgres" -D /data -c listen_addresses='*' -c unix_socket_directories=/tmp
