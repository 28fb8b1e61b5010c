/* Everybody uses strings, so their fields go with everything. The name of a session is a string as well,
   and whoever sets its text sets its length. */
struct str {
	char *text;
	int length;
};

struct session {
	struct str name;
	struct str host;
};

void note(struct str *s);
void fill(struct str *s, char *p);

void login(struct session *s, char *p, int n) { s->name.text = p; s->name.length = n; }
void relogin(struct session *s, char *p, int n) { s->name.text = p + 1; s->name.length = n - 1; }
void rename(struct session *s, char *p, int n) { s->name.text = p + 2; s->name.length = n - 2; }
void guest(struct session *s, char *p) { s->name.text = p; s->name.length = 5; }
void cut(struct session *s, char *p, int n) { s->name.text = p; s->name.length = n / 2; }
void show(struct str *s) { note(s); }

int lines(struct str *s) { return s->text[0] == '\n'; }
char *text_of(struct str *s) { return s->text; }
int is_empty(struct str *s) { return s->length == 0; }
int first(struct str *s) { return s->text[0]; }
int second(struct str *s) { return s->text[1]; }
int last(struct str *s) { return s->text[s->length - 1]; }
int ends(struct str *s, int c) { return s->text[s->length] == c; }

void given_away(struct session *s, char *p) { s->name.text = p; fill(&s->name, p); }
int looks(struct str *s) { return s->length; }
void forgets(struct session *s) { looks(&s->name); s->name.text = 0; } /* BUG: session::name.length */
void assigned(struct session *s, struct str *t, char *p) { s->name.text = p; s->name = *t; }
