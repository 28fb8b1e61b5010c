/* No two of the three ask for a length; all three together do. */
struct stream {
	int seekable, sized, cached, length;
};

void open_disk(struct stream *s, int n) { s->seekable = 0; s->sized = n; s->cached = n + 1; s->length = n + 0; }
void open_tape(struct stream *s, int n) { s->seekable = 1; s->sized = n; s->cached = n + 1; s->length = n + 1; }
void open_card(struct stream *s, int n) { s->seekable = 2; s->sized = n; s->cached = n + 1; s->length = n + 2; }
void open_line(struct stream *s, int n) { s->seekable = 3; s->sized = n; s->cached = n + 1; s->length = n + 3; }
void open_host(struct stream *s, int n) { s->seekable = 4; s->sized = n; s->cached = n + 1; s->length = n + 4; }
void open_pipe(struct stream *s, int n) { s->seekable = 5; s->sized = n; s->cached = n + 1; s->length = n + 5; }

void seekable_sized_disk(struct stream *s, int n) { s->seekable = n + 0; s->sized = n * 0; }
void seekable_sized_tape(struct stream *s, int n) { s->seekable = n + 1; s->sized = n * 1; }
void seekable_sized_card(struct stream *s, int n) { s->seekable = n + 2; s->sized = n * 2; }
void seekable_sized_line(struct stream *s, int n) { s->seekable = n + 3; s->sized = n * 3; }
void seekable_sized_host(struct stream *s, int n) { s->seekable = n + 4; s->sized = n * 4; }
void seekable_sized_pipe(struct stream *s, int n) { s->seekable = n + 5; s->sized = n * 5; }

void sized_cached_disk(struct stream *s, int n) { s->sized = n + 0; s->cached = n * 0; }
void sized_cached_tape(struct stream *s, int n) { s->sized = n + 1; s->cached = n * 1; }
void sized_cached_card(struct stream *s, int n) { s->sized = n + 2; s->cached = n * 2; }
void sized_cached_line(struct stream *s, int n) { s->sized = n + 3; s->cached = n * 3; }
void sized_cached_host(struct stream *s, int n) { s->sized = n + 4; s->cached = n * 4; }
void sized_cached_pipe(struct stream *s, int n) { s->sized = n + 5; s->cached = n * 5; }

void seekable_cached_disk(struct stream *s, int n) { s->seekable = n + 0; s->cached = n * 0; }
void seekable_cached_tape(struct stream *s, int n) { s->seekable = n + 1; s->cached = n * 1; }
void seekable_cached_card(struct stream *s, int n) { s->seekable = n + 2; s->cached = n * 2; }
void seekable_cached_line(struct stream *s, int n) { s->seekable = n + 3; s->cached = n * 3; }
void seekable_cached_host(struct stream *s, int n) { s->seekable = n + 4; s->cached = n * 4; }
void seekable_cached_pipe(struct stream *s, int n) { s->seekable = n + 5; s->cached = n * 5; }
