//! Answers that are looked for once.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What is known of each key that was asked for.
#[derive(Debug)]
pub struct Memo<K, V>(Mutex<BTreeMap<K, V>>);

impl<K: Ord + Clone, V: Clone> Memo<K, V> {
    /// The answer for a key, by `make` where nobody asked for it before. `make` may ask for other keys.
    pub fn get(&self, key: &K, make: impl FnOnce() -> V) -> V {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned();
        known.unwrap_or_else(|| {
            let made = make();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), made.clone());
            made
        })
    }
}

impl<K, V> Default for Memo<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A copy looks anew.
impl<K, V> Clone for Memo<K, V> {
    fn clone(&self) -> Self {
        Self::default()
    }
}
