//! What functions of the C library take and return in general registers. Only what calls say about a program
//! is here: no formatted output, whose number of arguments varies, and no mathematics.

use invariants::layout::Function;

/// Name, bytes of each argument, bytes of the result (0: none).
const TABLE: &[(&str, &[u8], u8)] = &[
    ("accept", &[4, 8, 8], 4),
    ("access", &[8, 4], 4),
    ("atoi", &[8], 4),
    ("atol", &[8], 8),
    ("bind", &[4, 8, 4], 4),
    ("calloc", &[8, 8], 8),
    ("close", &[4], 4),
    ("connect", &[4, 8, 4], 4),
    ("dup2", &[4, 4], 4),
    ("exit", &[4], 0),
    ("fclose", &[8], 4),
    ("feof", &[8], 4),
    ("ferror", &[8], 4),
    ("fgetc", &[8], 4),
    ("fgets", &[8, 4, 8], 8),
    ("fileno", &[8], 4),
    ("fopen", &[8, 8], 8),
    ("fputc", &[4, 8], 4),
    ("fputs", &[8, 8], 4),
    ("fread", &[8, 8, 8, 8], 8),
    ("free", &[8], 0),
    ("fseek", &[8, 8, 4], 4),
    ("fsync", &[4], 4),
    ("ftell", &[8], 8),
    ("ftruncate", &[4, 8], 4),
    ("fwrite", &[8, 8, 8, 8], 8),
    ("getc", &[8], 4),
    ("getenv", &[8], 8),
    ("getline", &[8, 8, 8], 8),
    ("kill", &[4, 4], 4),
    ("listen", &[4, 4], 4),
    ("lseek", &[4, 8, 4], 8),
    ("malloc", &[8], 8),
    ("memchr", &[8, 4, 8], 8),
    ("memcmp", &[8, 8, 8], 4),
    ("memcpy", &[8, 8, 8], 0),
    ("memmove", &[8, 8, 8], 0),
    ("memset", &[8, 4, 8], 0),
    ("pread", &[4, 8, 8, 8], 8),
    ("pthread_join", &[8, 8], 4),
    ("pthread_mutex_trylock", &[8], 4),
    ("putc", &[4, 8], 4),
    ("pwrite", &[4, 8, 8, 8], 8),
    ("read", &[4, 8, 8], 8),
    ("realloc", &[8, 8], 8),
    ("recv", &[4, 8, 8, 4], 8),
    ("rename", &[8, 8], 4),
    ("select", &[4, 8, 8, 8, 8], 4),
    ("send", &[4, 8, 8, 4], 8),
    ("setsockopt", &[4, 4, 4, 8, 4], 4),
    ("socket", &[4, 4, 4], 4),
    ("strcasecmp", &[8, 8], 4),
    ("strchr", &[8, 4], 8),
    ("strcmp", &[8, 8], 4),
    ("strdup", &[8], 8),
    ("strlen", &[8], 8),
    ("strncmp", &[8, 8, 8], 4),
    ("strncpy", &[8, 8, 8], 0),
    ("strrchr", &[8, 4], 8),
    ("strstr", &[8, 8], 8),
    ("strtol", &[8, 8, 4], 8),
    ("strtoul", &[8, 8, 4], 8),
    ("ungetc", &[4, 8], 4),
    ("unlink", &[8], 4),
    ("waitpid", &[4, 8, 4], 4),
    ("write", &[4, 8, 8], 8),
];

/// What is known of a function.
#[must_use]
pub fn of(name: &str) -> Option<Function> {
    let (name, arguments, result) = *TABLE.iter().find(|(known, ..)| *known == name)?;
    let result = (result > 0).then_some(result);
    Some(Function { name: name.into(), arguments: arguments.to_vec(), result, own: false })
}
