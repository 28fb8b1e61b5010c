# initdb, a server on a unix socket, pgbench and queries, all of it the guest, as an ordinary user.
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as() { setpriv --reuid nobody --regid nogroup --clear-groups env HOME="$PWD" "$@"; }
as $RUN "$bin/initdb" -D data -A trust -U me --no-sync -E UTF8 --locale=C >/dev/null 2>initdb.err || { cat initdb.err; exit 1; }
printf "unix_socket_directories = '%s'\nlisten_addresses = ''\nfsync = off\nmax_connections = 20\nautovacuum = off\n" "$PWD" >> data/postgresql.conf
as $RUN "$bin/postgres" -D data >server.log 2>&1 & server=$!
for _ in $(seq 600); do as "$bin/pg_isready" -q -h "$PWD" && break; sleep 0.1; done
q() { as $RUN "$bin/psql" -X -q -At -h "$PWD" -U me -d postgres "$@"; }
q -c "create table t as select i, i * 7919 % 10007 as v, md5(i::text) as m from generate_series(1, 20000) i; create index on t(v)"
q -c "select count(*), sum(v), max(m) from t where v between 100 and 5000"
q -c "select v % 10, count(*) from t group by 1 order by 1"
as $RUN "$bin/pgbench" -q -i -h "$PWD" -U me postgres >/dev/null 2>&1; echo "init $?"
as $RUN "$bin/pgbench" -h "$PWD" -U me -c 3 -j 1 -t 40 -n postgres 2>/dev/null | grep -E 'actually processed|failed'
q -c "select count(*), sum(abalance) = (select sum(delta) from pgbench_history) from pgbench_accounts"
pid=$(head -1 data/postmaster.pid); kill -INT "$pid"; wait "$server"; echo "server exit $?"
