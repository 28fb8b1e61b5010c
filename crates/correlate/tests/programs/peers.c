/* Two functions set the descriptor without the path. One is like those that open a handle, the other
   like nobody: the first is the likelier bug. A mode comes with either or alone. */
struct handle {
	int fd, path, mode, shared;
};

void open_disk(struct handle *h, int n) { h->fd = n; h->path = 0 + n; h->mode = n + 0; }
void open_tape(struct handle *h, int n) { h->fd = n; h->path = 1 + n; h->mode = n + 1; }
void open_card(struct handle *h, int n) { h->fd = n; h->path = 2 + n; h->mode = n + 2; }
void open_line(struct handle *h, int n) { h->fd = n; h->path = 3 + n; h->mode = n + 3; }

void find_disk(struct handle *h, int n) { h->fd = n; h->path = 0 + n; }
void find_tape(struct handle *h, int n) { h->fd = n; h->path = 1 + n; }
void find_card(struct handle *h, int n) { h->fd = n; h->path = 2 + n; }
void find_line(struct handle *h, int n) { h->fd = n; h->path = 3 + n; }

void chmod_disk(struct handle *h) { h->mode = 0 + 1; }
void chmod_tape(struct handle *h) { h->mode = 1 + 1; }
void chmod_card(struct handle *h) { h->mode = 2 + 1; }
void chmod_line(struct handle *h) { h->mode = 3 + 1; }

void share(struct handle *h, int n) { h->fd = n; h->shared = n; } /* BUG: handle::path */
void reopen(struct handle *h, int n) { h->fd = n; h->mode = n; } /* BUG: handle::path */
