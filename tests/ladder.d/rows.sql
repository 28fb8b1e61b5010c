create table person(id integer primary key, name text, age integer, city text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
  insert into person select i, 'name' || (i * 7919 % 10007), i * 31 % 97, 'city' || (i % 211) from n;
create index by_city on person(city, age);
create table visit(person integer references person, day integer);
insert into visit select id, (id * 13) % 365 from person where id % 3 = 0;
select count(*), avg(age), max(name) from person;
select city, count(*), sum(age) from person group by city order by 3 desc, 1 limit 5;
select p.city, count(*) c from person p join visit v on v.person = p.id where v.day < 30 group by 1 order by c desc, 1 limit 5;
begin; update person set age = age + 1 where city like 'city1%'; delete from visit where day % 7 = 0; commit;
select total(age) from person; select count(*) from visit;
with recursive f(a, b, n) as (select 0, 1, 0 union all select b, a + b, n + 1 from f where n < 60) select max(a) from f;
pragma integrity_check;
select printf('%.4f', sum(sqrt(id))) from person where id < 1000;
vacuum;
