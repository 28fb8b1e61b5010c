/* Both coordinates are set together, and always reached through the same pointer. */
struct inner { int x, y; };
struct outer { struct inner *in; };
struct outer *top;
void move_left(int n) { top->in->x = n + 0; top->in->y = n - 0; }
void move_right(int n) { top->in->x = n + 1; top->in->y = n - 1; }
void move_up(int n) { top->in->x = n + 2; top->in->y = n - 2; }
void move_down(int n) { top->in->x = n + 3; top->in->y = n - 3; }
void move_home(int n) { top->in->x = n + 4; top->in->y = n - 4; }
void move_back(int n) { top->in->x = n + 5; top->in->y = n - 5; }
