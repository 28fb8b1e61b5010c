//! A map that makes its values when they are first asked for, and may be shared by threads.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) struct Cache<K, V>(Mutex<HashMap<K, Arc<V>>>);

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Copy, V> Cache<K, V> {
    /// The value for `key`, made by `make` the first time. `make` runs unlocked, so it may use
    /// the cache itself; two threads at once may both make the value, and one is kept.
    pub fn get(&self, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = lock().get(&key) {
            return value.clone();
        }
        let value = Arc::new(make());
        lock().entry(key).or_insert(value).clone()
    }
}
