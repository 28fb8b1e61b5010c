//! What is worth telling the user while an investigation goes on. Who listens decides what becomes of it:
//! a terminal prints it, a protocol sends it, a test keeps it.

use std::sync::Arc;

type Listener = dyn Fn(&str) + Send + Sync;

/// Takes sentences for the user, in the order in which they come up.
#[derive(Clone, Default)]
pub struct Notices(Option<Arc<Listener>>);

impl Notices {
    /// Nobody listens.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Each sentence goes to this function, from whichever thread it comes up in.
    pub fn to(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Passes a sentence on; it has no full stop.
    pub fn tell(&self, text: &str) {
        if let Some(listener) = &self.0 {
            listener(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn what_is_told_comes_in_order() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = told.clone();
        let notices = Notices::to(move |text| kept.lock().expect("no panic").push(text.to_owned()));
        notices.tell("one");
        notices.clone().tell("two");
        Notices::none().tell("nobody hears this");
        assert_eq!(*told.lock().expect("no panic"), ["one", "two"]);
    }
}
