// A string and its length in a class; members are used with and without `this`.
class THD {
public:
  char *db;
  unsigned db_length;
  int warnings;
  void set_db(char *name, unsigned length) { db = name; db_length = length; }
  void reset_db();
  void steal_db(THD *other);
};

void THD::reset_db() { this->db = nullptr; this->db_length = 0; }
void THD::steal_db(THD *other) { db = other->db; db_length = other->db_length; }
void use_db(THD *thd, char *name) { thd->db = name; thd->db_length = strlen(name); }
void restore(THD &thd, char *saved, unsigned length) { thd.db = saved; thd.db_length = length; }
namespace sql {
void with_default(THD *thd) { thd->db_length = 4; thd->db = default_name(); }
void drop_db(THD *thd) { if (thd->db_length) thd->db = 0; thd->db_length = 0; }
}
void load_fake_db(THD *thd, char *fake)
{
  thd->warnings = 0;
  thd->db = fake; // BUG: THD::db_length
}
