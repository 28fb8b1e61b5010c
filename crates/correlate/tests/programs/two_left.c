/* Neither being seekable nor being sized asks for a length; both together do. */
struct stream {
	int seekable, sized, length;
};

void open_disk(struct stream *s, int n) { s->seekable = 0; s->sized = n; s->length = n + 0; }
void open_tape(struct stream *s, int n) { s->seekable = 1; s->sized = n; s->length = n + 1; }
void open_card(struct stream *s, int n) { s->seekable = 2; s->sized = n; s->length = n + 2; }
void open_line(struct stream *s, int n) { s->seekable = 3; s->sized = n; s->length = n + 3; }
void open_host(struct stream *s, int n) { s->seekable = 4; s->sized = n; s->length = n + 4; }
void open_pipe(struct stream *s, int n) { s->seekable = 5; s->sized = n; s->length = n + 5; }

void seek_disk(struct stream *s) { s->seekable = 0 + 1; }
void seek_tape(struct stream *s) { s->seekable = 1 + 1; }
void seek_card(struct stream *s) { s->seekable = 2 + 1; }
void seek_line(struct stream *s) { s->seekable = 3 + 1; }
void seek_host(struct stream *s) { s->seekable = 4 + 1; }

void size_disk(struct stream *s) { s->sized = 0 + 1; }
void size_tape(struct stream *s) { s->sized = 1 + 1; }
void size_card(struct stream *s) { s->sized = 2 + 1; }
void size_line(struct stream *s) { s->sized = 3 + 1; }
void size_host(struct stream *s) { s->sized = 4 + 1; }
