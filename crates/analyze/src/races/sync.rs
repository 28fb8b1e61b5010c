//! What functions of thread libraries do to the order of threads: those that are known, and a program's own,
//! which its user names in a file ([`read`]).

/// What a call does, of the object that its first argument points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes a lock alone when it returns 0.
    Lock,
    /// The same, but never waits for it.
    TryLock,
    /// Takes a lock together with other readers when it returns 0.
    LockShared,
    /// The same, but never waits for it.
    TryLockShared,
    /// Gives a lock back.
    Unlock,
    /// Gives the lock in its second argument back, waits, and takes it again.
    Wait,
    /// Whoever waits, now or later, comes after.
    Signal,
    /// Comes after what was signalled when it returns 0.
    Await,
    /// Nobody goes on before all have come.
    Barrier,
    /// The first caller does something that comes before every return.
    Once,
    /// Makes a thread.
    Create,
    /// Comes after the end of a thread when it returns 0.
    Join,
    /// The object is made or destroyed: a use of it by other threads must be ordered with that.
    Other,
}

/// The functions, and what they do.
const FUNCTIONS: &[(&str, Role)] = &[
    ("pthread_mutex_lock", Role::Lock),
    ("pthread_mutex_trylock", Role::TryLock),
    ("pthread_mutex_timedlock", Role::Lock),
    ("pthread_mutex_clocklock", Role::Lock),
    ("pthread_mutex_unlock", Role::Unlock),
    ("pthread_spin_lock", Role::Lock),
    ("pthread_spin_trylock", Role::TryLock),
    ("pthread_spin_unlock", Role::Unlock),
    ("pthread_rwlock_rdlock", Role::LockShared),
    ("pthread_rwlock_tryrdlock", Role::TryLockShared),
    ("pthread_rwlock_timedrdlock", Role::LockShared),
    ("pthread_rwlock_clockrdlock", Role::LockShared),
    ("pthread_rwlock_wrlock", Role::Lock),
    ("pthread_rwlock_trywrlock", Role::TryLock),
    ("pthread_rwlock_timedwrlock", Role::Lock),
    ("pthread_rwlock_clockwrlock", Role::Lock),
    ("pthread_rwlock_unlock", Role::Unlock),
    ("pthread_cond_wait", Role::Wait),
    ("pthread_cond_timedwait", Role::Wait),
    ("pthread_cond_clockwait", Role::Wait),
    ("pthread_cond_signal", Role::Signal),
    ("pthread_cond_broadcast", Role::Signal),
    ("sem_post", Role::Signal),
    ("sem_wait", Role::Await),
    ("sem_trywait", Role::Await),
    ("sem_timedwait", Role::Await),
    ("sem_clockwait", Role::Await),
    ("pthread_barrier_wait", Role::Barrier),
    ("pthread_once", Role::Once),
    ("__pthread_once", Role::Once),
    ("call_once", Role::Once),
    ("pthread_create", Role::Create),
    ("pthread_join", Role::Join),
    ("pthread_tryjoin_np", Role::Join),
    ("pthread_timedjoin_np", Role::Join),
    ("pthread_clockjoin_np", Role::Join),
    ("mtx_lock", Role::Lock),
    ("mtx_trylock", Role::TryLock),
    ("mtx_timedlock", Role::Lock),
    ("mtx_unlock", Role::Unlock),
    ("cnd_wait", Role::Wait),
    ("cnd_timedwait", Role::Wait),
    ("cnd_signal", Role::Signal),
    ("cnd_broadcast", Role::Signal),
    ("thrd_create", Role::Create),
    ("thrd_join", Role::Join),
    ("pthread_mutex_init", Role::Other),
    ("pthread_mutex_destroy", Role::Other),
    ("pthread_cond_init", Role::Other),
    ("pthread_cond_destroy", Role::Other),
    ("pthread_exit", Role::Other),
    ("pthread_detach", Role::Other),
    ("pthread_cancel", Role::Other),
    ("pthread_key_create", Role::Other),
    ("pthread_getspecific", Role::Other),
    ("pthread_setspecific", Role::Other),
    ("sem_init", Role::Other),
    ("pthread_barrier_init", Role::Other),
    ("pthread_barrier_destroy", Role::Other),
];

impl Role {
    /// Whether threads meet here: who comes first may matter.
    #[must_use]
    pub fn meets(self) -> bool {
        !matches!(self, Self::Once | Self::Create | Self::Other)
    }
}

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|(name, _)| *name)
}

/// What a function of this name does.
#[must_use]
pub fn role(name: &str) -> Option<Role> {
    FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, role)| *role)
}

/// When a function that takes a lock, or waits, has done so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Success {
    /// When it returns 0, as those of the C library do.
    #[default]
    Zero,
    /// When it returns something else.
    NonZero,
    /// Whenever it returns.
    Always,
}

impl Success {
    /// Whether a call that returned this has worked.
    #[must_use]
    pub fn is(self, value: u64) -> bool {
        match self {
            Self::Zero => value as u32 == 0,
            Self::NonZero => value as u32 != 0,
            Self::Always => true,
        }
    }
}

/// A function of the program's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its name.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// When it has done so.
    pub success: Success,
}

/// What the roles are called in a file.
const WORDS: [(&str, Role); 13] = [
    ("lock", Role::Lock),
    ("try-lock", Role::TryLock),
    ("lock-shared", Role::LockShared),
    ("try-lock-shared", Role::TryLockShared),
    ("unlock", Role::Unlock),
    ("wait", Role::Wait),
    ("signal", Role::Signal),
    ("await", Role::Await),
    ("barrier", Role::Barrier),
    ("once", Role::Once),
    ("create", Role::Create),
    ("join", Role::Join),
    ("inside", Role::Other),
];

/// Reads a file of lines `ROLE FUNCTION [if zero|if nonzero]`; without a condition a call that returns has worked.
/// An error names the line.
pub fn read(text: &str) -> Result<Vec<Own>, String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        let (role, name, success) = match words[..] {
            [] => continue,
            [role, name] => (role, name, Success::Always),
            [role, name, "if", "zero"] => (role, name, Success::Zero),
            [role, name, "if", "nonzero"] => (role, name, Success::NonZero),
            _ => {
                return Err(format!(
                    "line {number}: expected ROLE FUNCTION, or ROLE FUNCTION if zero|nonzero, found `{line}`"
                ));
            }
        };
        let Some((_, role)) = WORDS.iter().find(|(word, _)| *word == role) else {
            let known: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
            return Err(format!(
                "line {number}: there is no role `{role}`; known are {}",
                known.join(", ")
            ));
        };
        found.push(Own { name: name.to_owned(), role: *role, success });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primitives_of_a_program_are_read_line_by_line() {
        let own = |name: &str, role, success| Own { name: name.into(), role, success };
        let text = "# ours\nlock gate_enter\ntry-lock gate_try if nonzero # 1 if it has it\n\nawait latch if zero\n";
        let expected = vec![
            own("gate_enter", Role::Lock, Success::Always),
            own("gate_try", Role::TryLock, Success::NonZero),
            own("latch", Role::Await, Success::Zero),
        ];
        assert_eq!(read(text), Ok(expected));
        assert!(read("lock\n").expect_err("no function").contains("line 1"));
        assert!(read("\nfence f\n").expect_err("no role").contains("line 2"));
    }
}
