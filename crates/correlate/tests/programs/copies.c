/* One macro and one inline function, used everywhere, are one supporter each: no rule. */
struct pair { int first, second; };
#define SET(p, v) do { (p)->first = (v); (p)->second = (v); } while (0)
static inline void both(struct pair *p) { p->first = 1; p->second = 2; }
void use0(struct pair *p) { both(p); step(p, 0); }
void use1(struct pair *p) { SET(p, 1); step(p, 1); }
void use2(struct pair *p) { both(p); step(p, 2); }
void use3(struct pair *p) { SET(p, 3); step(p, 3); }
void use4(struct pair *p) { both(p); step(p, 4); }
void use5(struct pair *p) { SET(p, 5); step(p, 5); }
void use6(struct pair *p) { both(p); step(p, 6); }
void use7(struct pair *p) { SET(p, 7); step(p, 7); }
void use8(struct pair *p) { both(p); step(p, 8); }
void use9(struct pair *p) { SET(p, 9); step(p, 9); }
void use10(struct pair *p) { both(p); step(p, 10); }
void use11(struct pair *p) { SET(p, 11); step(p, 11); }
void use12(struct pair *p) { both(p); step(p, 12); }
void use13(struct pair *p) { SET(p, 13); step(p, 13); }
void only(struct pair *p) { p->first = 3; }
