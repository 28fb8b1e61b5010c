//! Which accesses one function is found to make: a row of source, a row of accesses.

use correlate::access::{Kind, Owner};
use correlate::library::Library;
use correlate::names::Names;
use correlate::sources::{self, Exclusions};
use correlate::tree::{self, Silent, Tree};

fn read(files: &[(&str, &str)]) -> Tree {
    read_with(files, &Library::builtin())
}

fn read_with(files: &[(&str, &str)], library: &Library) -> Tree {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("inside")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let sources = sources::find(&[folder.path().to_path_buf()], &[], &Exclusions::default());
    tree::read(sources, library, 1 << 20, &Silent)
}

/// The accesses of the function `f`: `r`, `w`, `rw` or `&`, and the variable.
fn accesses_of_f(tree: &Tree) -> String {
    let function = tree.functions.iter().find(|it| tree.names.text(it.name) == "f");
    let accesses = function.map(|it| it.accesses.as_slice()).unwrap_or_default();
    let shown = accesses.iter().map(|access| {
        let owner = owner(&tree.names, tree, access.owner);
        let has = |kind, text| if access.kind.meets(kind) { text } else { "" };
        format!(
            "{}{}{} {owner}{}",
            has(Kind::READ, "r"),
            has(Kind::WRITE, "w"),
            has(Kind::ADDRESS, "&"),
            tree.names.text(access.field)
        )
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn owner(names: &Names, tree: &Tree, owner: Owner) -> String {
    match owner {
        Owner::Struct(id) => format!("{}::", names.text(tree.types.structure(id).name)),
        Owner::Opaque(name) => format!("{}::", names.text(name)),
        Owner::Member(id) => {
            let member = tree.members.get(id);
            format!("{}::", names.text(tree.types.structure(member.inner).name))
        }
        Owner::Global | Owner::Static(_) => String::new(),
    }
}

const TYPES: &str = "
struct D { int d; };
struct C { struct D *c[4]; struct { int deep; union { int left, right; }; } in; };
typedef struct { struct C b; int n, *p; char name[8]; struct D (*make)(int); } A, *PA;
struct D *get_d(void); PA get_a(void);
int total; static int mine; extern struct D *shared; const int fixed = 3;
#define AS_D(x) ((struct D *)(x))
#define to_c(ptr) container_of(ptr, struct C, in)
#define short_name b.in.deep
#define LENGTH(a) ((a)->n)
#define ARGS A *hidden
#define API __attribute__((used))
";

fn check(body: &str, expected: &str) {
    let tree = read(&[("f.c", &format!("{TYPES}{body}"))]);
    assert_eq!(accesses_of_f(&tree), expected, "in {body}");
}

#[test]
fn the_base_type_is_found_through_everything() {
    let rows = [
        ("void f(A *a) { a->n = 1; }", "w A::n"),
        ("void f(A *a, int i) { a->b.c[i]->d = 1; }", "r C::c, w D::d"),
        ("void f(A *a) { a->b.in.deep++; a->b.in.left--; }", "rw C.in::deep, rw C.in::left"),
        ("void f(PA a) { (*a).n += 2; }", "rw A::n"),
        ("void f(void *v) { ((A *)v)->n = ((struct D *)v)->d; }", "r D::d, w A::n"),
        ("void f(void) { get_d()->d = get_a()->n; }", "r A::n, w D::d"),
        ("void f(A *a) { a->make(1).d; }", "r A::make, r D::d"),
        ("int f(a, x) A *a; int x; { return a->n; }", "r A::n"),
        ("void f(void *v) { AS_D(v)->d = 1; }", "w D::d"),
        ("void f(int *m) { to_c(m)->in.deep = 1; }", "w C.in::deep"),
        ("void f(A *a) { a->short_name = 1; }", "w C.in::deep"),
        ("void f(ARGS) { hidden->n = 1; }", "w A::n"),
        ("static API void f(A *a) { a->n = 1; }", "w A::n"),
        ("void f(struct unseen *u) { u->field = 1; }", "w unseen::field"),
        ("void f(int c, A *a, PA b) { (c ? a : b)->n = 1; }", "w A::n"),
        ("void f(A *a) { (a + 1)->n = 1; (&a[2])->n = 2; }", "w A::n, w A::n"),
        ("void f(A *a) { { struct D *a; a->d = 1; } a->n = 1; }", "w D::d, w A::n"),
        ("void f(struct mystery *m) { typeof(m) q = m; q->z = 1; }", "w mystery::z"),
    ];
    for (body, expected) in rows {
        check(body, expected);
    }
}

#[test]
fn reads_writes_and_addresses_are_told_apart() {
    let rows = [
        ("void f(A *a) { a->n = a->n + 1; }", "r A::n, w A::n"),
        ("void f(A *a) { a->name[0] = 1; *a->p = 2; }", "w A::name, r A::p"),
        ("void f(A *a, int i) { a->p[i] += 2; *a->p++ = 1; }", "r A::p, rw A::p"),
        ("void f(A *a) { strcpy((char *)a->p, a->name); }", "r A::p, r A::name"),
        ("void f(A *a) { memset(&a->n, 0, sizeof(a->n)); }", "w A::n"),
        ("void f(A *a, char *s) { strcpy(a->name, s); strlen(a->name); }", "w A::name, r A::name"),
        ("void f(A *a) { use(&a->n); }", "& A::n"),
        ("void f(int i) { A a = { .n = i, .name = \"x\" }; use(&a); }", "w A::n, w A::name"),
        (
            "void f(void) { A a = { .b = { .in.deep = 1 }, .n = 2 }; use(&a); }",
            "w C.in::deep, w A::n",
        ),
        ("void f(void) { use(&(A) { .n = 1 }); }", "w A::n"),
        ("void f(void) { A a[2] = { { .n = 1 }, [1] = { .p = 0 } }; use(a); }", "w A::n, w A::p"),
        ("void f(A *a) { return sizeof(a->n) + offsetof(A, n); }", ""),
        ("void f(void) { total = mine; shared->d = fixed; }", "r mine, w total, r shared, w D::d"),
        ("void f(int total) { total = 1; }", ""),
        (
            "void f(A *a) { if (a->n) for (; a->p;) while (a->name[1]) ; }",
            "r A::n, r A::p, r A::name",
        ),
    ];
    for (body, expected) in rows {
        check(body, expected);
    }
}

/// A macro with parameters that means nothing may have the name of a member.
#[test]
fn a_member_may_have_the_name_of_an_empty_macro() {
    let text = "#define error(S,s)\n#define used\nstruct E { int error; void (*fail)(int); };
        void f(used struct E *e) { e->error = 1; error(e, e->fail); e->fail(2); }";
    assert_eq!(accesses_of_f(&read(&[("f.c", text)])), "w E::error, r E::fail");
}

#[test]
fn users_say_what_functions_outside_the_tree_do() {
    let text = format!("{TYPES}void f(A *a, A *b) {{ my_copy(a->name, b->name); }}");
    assert_eq!(accesses_of_f(&read(&[("f.c", &text)])), "r A::name, r A::name");
    let mut library = Library::builtin();
    library.extend("my_copy write 1 read 2").expect("well formed");
    assert_eq!(accesses_of_f(&read_with(&[("f.c", &text)], &library)), "w A::name, r A::name");
}

#[test]
fn broken_code_still_gives_its_accesses() {
    let rows = [
        ("void f(A *a) { for_each_thing(a, x) { a->n = 1; } }", "w A::n"),
        ("void f(A *a) { UNKNOWN_MACRO a->n = 1; a->p = 0; }", "w A::p"),
        ("void f(A *a) {\n#if X\nif (1) {\n#else\nif (2) {\n#endif\na->n = 1; } }", "w A::n"),
        (
            "void f(A *a) { a->n = 1;\n#ifdef Y\na->p = 0;\n#else\na->p = 1;\n#endif\n}",
            "w A::n, w A::p, w A::p",
        ),
    ];
    for (body, expected) in rows {
        check(body, expected);
    }
}

#[test]
fn classes_have_fields_bases_and_methods() {
    let text = "
        struct Base { int base_field; };
        class K : public Base { int own; std::unique_ptr<Base> smart; void f(); };
        void K::f() { own = 1; this->own++; base_field = 2; smart->base_field = 3;
                      auto made = new Base(); made->base_field = 4; }";
    let tree = read(&[("k.cpp", text)]);
    let expected = "w K::own, rw K::own, w Base::base_field, r K::smart, w Base::base_field, w Base::base_field";
    assert_eq!(accesses_of_f(&tree), expected);
}

#[test]
fn of_two_structs_of_one_name_the_nearest_is_meant() {
    let tree = read(&[
        ("net/a.h", "struct priv { int len; };"),
        ("net/a.c", "#include \"a.h\"\nvoid f(struct priv *p) { p->len = 1; }"),
        ("usb/b.h", "struct priv { int len; };"),
        ("usb/b.c", "#include \"b.h\"\nvoid g(struct priv *p) { p->len = 1; }"),
    ]);
    let owners: Vec<_> = tree.functions.iter().map(|it| it.accesses[0].owner).collect();
    let file = |owner| match owner {
        Owner::Struct(id) => tree.types.path(tree.types.structure(id).file).to_string(),
        _ => String::new(),
    };
    assert_eq!(owners.iter().map(|it| file(*it)).collect::<Vec<_>>(), ["net/a.h", "usb/b.h"]);
}

#[test]
fn a_field_name_that_only_one_struct_has_is_a_guess() {
    let text = "struct S { int rare_name, common; }; struct T { int common; };
                void f(void) { mystery()->rare_name = 1; mystery()->common = 2; }";
    let tree = read(&[("f.c", text)]);
    assert_eq!(accesses_of_f(&tree), "w S::rare_name");
    let counts = (tree.resolution.resolved, tree.resolution.guessed, tree.resolution.dropped);
    assert_eq!(counts, (0, 1, 1));
}

#[test]
fn a_file_read_again_gives_what_a_changed_tree_gives() {
    let before = "#include \"s.h\"\nvoid g(struct S *s) { BOTH(s); }\n\
                  void f(struct S *s) { s->a = 1; s->b = 2; }";
    let after = before.replace("s->b = 2;", ";");
    let files = |text| {
        let header = "struct S { int a, b; };\n#define BOTH(s) ((s)->a = (s)->b)";
        [("m.c", text), ("s.h", header), ("z.c", "void last(struct S *s) { s->b = 3; }")]
    };
    let names = |tree: &Tree| -> Vec<String> {
        tree.functions.iter().map(|it| tree.names.text(it.name).to_string()).collect()
    };
    let mut tree = read(&files(before));
    let changed = read(&files(&after));
    let again = tree.reread(0, after.as_bytes(), &Library::builtin());
    let former = tree.replace(0, again);
    assert_eq!(accesses_of_f(&tree), "w S::a");
    assert_eq!((accesses_of_f(&tree), names(&tree)), (accesses_of_f(&changed), names(&changed)));
    tree.replace(0, former);
    assert_eq!(accesses_of_f(&tree), "w S::a, w S::b");
}
