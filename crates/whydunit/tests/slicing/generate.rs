//! Random programs: expressions over numbers, arrays, structs and pointers, in loops, branches,
//! switches, calls, jumps out of calls, and recursion. Every one ends, and leaves a value in `results`.

use std::fmt::Write;

/// A small generator of numbers; the same seed gives the same programs.
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A file with so many programs `program0` …, and `_start` which runs them all: one after the
/// other, or in two threads that share the globals.
pub fn file(seed: u64, programs: usize, threads: bool) -> String {
    let mut random = Random::new(seed);
    let mut text = String::from(PRELUDE);
    for number in 0..programs {
        program(&mut random, number, &mut text);
    }
    let _ = writeln!(text, "unsigned long results[{programs}];");
    let first = if threads {
        "static void work(long part) {\n    if (part == 0) {"
    } else {
        "void run(void) {"
    };
    let _ = writeln!(text, "{first}");
    for number in 0..programs {
        if threads && number == programs / 2 {
            text += "    } else {\n";
        }
        let _ = writeln!(text, "    results[{number}] = program{number}({}u);", random.below(100));
    }
    if threads {
        text += "    }\n    __sync_fetch_and_add(&done, 1);\n    futex(1, 2);\n}\n";
        text += "void run(void) {\n    spawn(work, 0);\n    spawn(work, 1);\n";
        text += "    for (int n; (n = done) < 2;) futex(0, n);\n";
    }
    text += "    call3(1, 1, (long)results, sizeof results);\n    call3(231, 0, 0, 0);\n}\n";
    text
}

const PRELUDE: &str = r#"
typedef unsigned int u32;
typedef unsigned long u64;
struct pair { u32 a; unsigned char b; unsigned short c; struct pair *next; unsigned long d; };
static long call3(long n, long a, long b, long c) {
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return r;
}
void *memcpy(void *to, const void *from, unsigned long n) {
    void *result = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
    return result;
}
void *memset(void *to, int value, unsigned long n) {
    void *result = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(value) : "memory");
    return result;
}
static u32 globals[8];
static volatile int done;
/* Waits (0) while `done` is `value`, or wakes (1) who waits. */
static void futex(long what, long value) {
    register long timeout __asm__("r10") = 0;
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(202), "D"(&done), "S"(what), "d"(value), "r"(timeout)
                     : "rcx", "r11", "memory");
}
static long stacks[2][8192];
__asm__("thread: xor %ebp,%ebp\n pop %rdi\n pop %rax\n call *%rax\n"
        " mov $60,%eax\n xor %edi,%edi\n syscall\n");
/* A thread that runs work(part); the registers that it begins with are not the parent's. */
static void spawn(void (*work)(long), long part) {
    long *top = &stacks[part][8000], flags = 0x50f00, r;
    extern char thread[];
    *--top = (long)work;
    *--top = part;
    *--top = (long)thread;
    __asm__ volatile("syscall\n test %%eax,%%eax\n jnz 1f\n ret\n 1:"
                     : "=a"(r) : "a"(56), "D"(flags), "S"(top), "d"(0) : "rcx", "r11", "memory");
}
struct buffer { u64 words[8]; };
int save(struct buffer *) __attribute__((returns_twice));
void jump(struct buffer *, int) __attribute__((noreturn));
__asm__(".text\nsave: mov %rbx,(%rdi)\n mov %rbp,8(%rdi)\n mov %r12,16(%rdi)\n mov %r13,24(%rdi)\n"
        " mov %r14,32(%rdi)\n mov %r15,40(%rdi)\n lea 8(%rsp),%rdx\n mov %rdx,48(%rdi)\n"
        " mov (%rsp),%rdx\n mov %rdx,56(%rdi)\n xor %eax,%eax\n ret\n"
        "jump: mov (%rdi),%rbx\n mov 8(%rdi),%rbp\n mov 16(%rdi),%r12\n mov 24(%rdi),%r13\n"
        " mov 32(%rdi),%r14\n mov 40(%rdi),%r15\n mov %esi,%eax\n mov 48(%rdi),%rsp\n jmp *56(%rdi)\n");
/* Comes back, or jumps from some depth. */
static __attribute__((noinline)) u32 jumper(u32 x, u32 *p, struct buffer *to, u32 deep) {
    if (((x ^ p[deep]) & 3) == 1) jump(to, (x & 15) | 1);
    if (deep == 0) return x + p[1];
    u32 r = jumper(x >> 1, p, to, deep - 1);
    return r & 4 ? r + p[deep] : r ^ x;
}
__asm__(".globl _start\n_start: xor %ebp,%ebp\n and $-16,%rsp\n call run\n ud2\n");
"#;

/// What a body may use.
struct Scope<'r> {
    random: &'r mut Random,
    number: usize,
    depth: u32,
    indent: usize,
    /// Loop counters, which must not be assigned.
    counters: usize,
}

fn program(random: &mut Random, number: usize, text: &mut String) {
    let noinline = if random.below(2) == 0 { "__attribute__((noinline)) " } else { "" };
    let _ = writeln!(
        text,
        "static {noinline}u32 helper{number}(u32 x, u32 *p, struct pair *q, u32 deep) {{\n    \
         u32 v[4] = {{x, x + 1, deep, 7}}; u32 t[8]; struct pair s = *q; double f = x;\n    \
         for (int i = 0; i < 8; i++) t[i] = p[i & 3] ^ i;"
    );
    let mut scope = Scope { random, number, depth: 0, indent: 1, counters: 0 };
    for _ in 0..3 {
        scope.statement(text);
    }
    let _ = writeln!(
        text,
        "    if (deep > 0 && (x & 3) != 0) v[0] += helper{number}(x >> 1, t, &s, deep - 1);\n    \
         p[x & 3] += v[1]; q->a ^= v[2];\n    \
         return v[0] + t[v[1] & 7] + s.b + (u32)f;\n}}"
    );
    let _ = writeln!(
        text,
        "static __attribute__((noinline)) u32 program{number}(u32 x) {{\n    \
         u32 v[4] = {{x, 3, 5, x * 9}}; u32 t[8] = {{1, 2, 3, 4, 5, 6, 7, x}};\n    \
         struct pair o = {{x, 2, 3, 0, 4}}; struct pair s = {{5, x, 7, &o, 8}};\n    \
         u32 *p = t; struct pair *q = &s; double f = 1.5; u32 deep = 2;"
    );
    let mut scope = Scope { random, number, depth: 0, indent: 1, counters: 0 };
    for _ in 0..6 {
        scope.statement(text);
    }
    let last = scope.expression(2);
    let _ = writeln!(text, "    (void)p; (void)q; (void)f; (void)deep;\n    return {last};\n}}");
}

impl Scope<'_> {
    fn line(&self, text: &mut String, line: &str) {
        let _ = writeln!(text, "{:width$}{line}", "", width = self.indent * 4);
    }

    /// Something that can be assigned to.
    fn place(&mut self) -> String {
        match self.random.below(9) {
            0..=2 => format!("v[{}]", self.random.below(4)),
            3 => format!("t[{} & 7]", self.expression(0)),
            4 => "p[v[1] & 3]".into(),
            5 => format!("globals[{}]", self.random.below(8)),
            6 => ["q->a", "q->b", "q->c", "q->d"][self.random.below(4) as usize].into(),
            7 => ["s.a", "s.b", "s.c"][self.random.below(3) as usize].into(),
            _ => "((unsigned char *)t)[v[2] & 31]".into(),
        }
    }

    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 {
            return match self.random.below(8) {
                0 => format!("{}u", self.random.below(1000)),
                1 => "x".into(),
                2 => format!("v[{}]", self.random.below(4)),
                3 => format!("t[{}]", self.random.below(8)),
                4 => "q->a".into(),
                5 => "(u32)s.b".into(),
                6 => format!("globals[{}]", self.random.below(8)),
                _ => "*p".into(),
            };
        }
        let (left, right) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.random.below(12) {
            0..=2 => format!("({left} + {right})"),
            3 => format!("({left} - {right})"),
            4 => format!("({left} * {right})"),
            5 => format!("({left} ^ {right})"),
            6 => format!("({left} >> ({right} & 7))"),
            7 => format!("({left} / ({right} | 1))"),
            8 => format!("({left} < {right} ? {left} : {right})"),
            9 => format!("(u32)(unsigned char){left}"),
            10 => format!("({left} && {right})"),
            _ => format!("({left} & {right})"),
        }
    }

    fn block(&mut self, text: &mut String, statements: u64) {
        self.depth += 1;
        self.indent += 1;
        for _ in 0..statements {
            self.statement(text);
        }
        self.indent -= 1;
        self.depth -= 1;
    }

    fn statement(&mut self, text: &mut String) {
        let compound = self.depth < 3;
        let number = self.number;
        match self.random.below(15) {
            0 if compound => {
                let condition = self.expression(1);
                self.line(text, &format!("if ({condition}) {{"));
                let count = 1 + self.random.below(2);
                self.block(text, count);
                self.line(text, "} else {");
                self.block(text, 1);
                self.line(text, "}");
            }
            1 | 2 if compound => {
                let (counter, times) = (self.counters, 1 + self.random.below(5));
                self.counters += 1;
                let head =
                    format!("for (u32 i{counter} = 0; i{counter} < {times}; i{counter}++) {{");
                self.line(text, &head);
                let stop = self.expression(1);
                self.block(text, 2);
                if self.random.below(3) == 0 {
                    self.line(text, &format!("    if ({stop} == i{counter}) break;"));
                }
                let target = self.random.below(4);
                self.line(text, &format!("    v[{target}] += i{counter};"));
                self.line(text, "}");
            }
            3 if compound => {
                let value = self.expression(1);
                self.line(text, &format!("switch ({value} & 7) {{"));
                for case in 0..6 {
                    let (place, value) = (self.place(), self.expression(1));
                    let end = if self.random.below(4) == 0 { "" } else { " break;" };
                    self.line(text, &format!("case {case}: {place} = {value};{end}"));
                }
                self.line(text, "default: v[3]++; }");
            }
            4 if self.indent == 1 => {
                // Only outermost, so that calls do not multiply.
                let (target, value) = (self.random.below(4), self.expression(1));
                let deep = self.random.below(3);
                let line = format!(
                    "if (deep) v[{target}] = helper{number}({value}, t, q, {deep} < deep ? {deep} : deep - 1);"
                );
                self.line(text, &line);
            }
            5 => self.line(text, "p = t + (v[0] & 3);"),
            6 => self.line(text, "s = *q; q = s.next ? s.next : q;"),
            7 => {
                let value = self.expression(1);
                self.line(text, &format!("f = f * 0.5 + ({value} & 255);"));
            }
            8 => self.line(text, "v[1] += (u32)f;"),
            10 if compound => {
                let (target, value) = (self.random.below(4), self.expression(1));
                let deep = self.random.below(4);
                self.line(text, "{ struct buffer b; int came = save(&b);");
                let call =
                    format!("if (!came) v[{target}] += jumper({value}, t, &b, {deep}); else {{");
                self.line(text, &call);
                self.line(text, "    v[2] ^= came;");
                self.block(text, 1);
                self.line(text, "} }");
            }
            9 => self.line(text, "__builtin_memcpy(t, v, 12 + (v[0] & 3));"),
            _ => {
                let (place, value) = (self.place(), self.expression(2));
                let operator = ["=", "+=", "^="][self.random.below(3) as usize];
                self.line(text, &format!("{place} {operator} {value};"));
            }
        }
    }
}
