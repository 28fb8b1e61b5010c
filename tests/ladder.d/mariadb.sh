# A database that is set up, a server on a unix socket, queries, its shutdown; the server is the guest. It asks for
# io_uring and for native AIO.
mariadb-install-db --no-defaults --user=root --datadir="$PWD/data" --auth-root-authentication-method=normal --skip-test-db >/dev/null 2>&1
$RUN /usr/sbin/mariadbd --no-defaults --user=root --datadir="$PWD/data" --socket="$PWD/s" --skip-networking --skip-grant-tables --pid-file="$PWD/pid" >server.log 2>&1 & server=$!
for _ in $(seq 600); do mariadb-admin --no-defaults -uroot --socket="$PWD/s" ping >/dev/null 2>&1 && break; sleep 0.1; done
mariadb --no-defaults -uroot --socket="$PWD/s" <<'SQL'
create database w; use w;
create table t(id int primary key auto_increment, a int, b varchar(40), key(a)) engine=innodb;
insert into t(a,b) select seq, md5(seq) from seq_1_to_2000;
select count(*), sum(a), max(b) from t;
update t set a=a+1 where id%3=0;
select a,b from t where a between 100 and 110 order by a;
SQL
mariadb-admin --no-defaults -uroot --socket="$PWD/s" shutdown
wait "$server"; echo "server exit $?"
