//! Keys that a server was asked for: for how long they are good, and when it is asked again.
//!
//! A question is a task of its own. The callers who need its answer wait for it, and it goes on if they go
//! away: so nobody can stop the others from getting keys by closing connections.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout;

use super::public_keys::PublicKeys;
use crate::moment::Moment;

/// The times of keys.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// They are good for this time without asking again,
    pub(super) fresh: Duration,
    /// and for that time if the server does not answer.
    pub(super) good: Duration,
    /// Between the answer to a question and the next question.
    pub(super) pause: Duration,
    /// For which a caller whose key is known waits for an answer: a server that works answers within it, so
    /// a key that was withdrawn is noticed.
    pub(super) patience: Duration,
}

/// See the [module](self).
pub(super) struct Kept {
    times: Times,
    known: Mutex<Option<Known>>,
    /// What came of the last question. A question that is under way has this lock.
    asked: Arc<tokio::sync::Mutex<Option<Asked>>>,
}

struct Known {
    keys: Arc<PublicKeys>,
    at: Moment,
}

struct Asked {
    at: Moment,
    trouble: Option<String>,
}

impl Kept {
    /// No keys yet.
    pub(super) fn new(times: Times) -> Kept {
        let (known, asked) = Default::default();
        Kept { times, known, asked }
    }

    /// The keys. `ask` gets them from the server, if these are too old or not the ones that are needed.
    pub(super) async fn keys<Question>(
        self: &Arc<Self>,
        are_needed: impl Fn(&PublicKeys) -> bool,
        ask: impl FnOnce() -> Question,
    ) -> Result<Arc<PublicKeys>, String>
    where
        Question: Future<Output = Result<PublicKeys, String>> + Send + 'static,
    {
        if let Some(keys) = self.known_for(self.times.fresh).filter(|keys| are_needed(keys)) {
            return Ok(keys);
        }
        self.begin_to_ask(ask);
        let answer = self.asked.lock();
        let asked = match self.known_for(self.times.good).filter(|keys| are_needed(keys)) {
            None => answer.await,
            Some(keys) => match timeout(self.times.patience, answer).await {
                Ok(asked) => asked,
                Err(_) => return Ok(keys),
            },
        };
        self.known_for(self.times.good).ok_or_else(|| {
            let trouble = asked.as_ref().and_then(|asked| asked.trouble.clone());
            trouble.unwrap_or_else(|| "its server could not be asked".into())
        })
    }

    /// Asks, if nobody does so already or has done so a moment ago.
    fn begin_to_ask<Question>(self: &Arc<Self>, ask: impl FnOnce() -> Question)
    where
        Question: Future<Output = Result<PublicKeys, String>> + Send + 'static,
    {
        let Ok(mut asked) = self.asked.clone().try_lock_owned() else { return };
        if asked.as_ref().is_some_and(|asked| asked.at.elapsed() < self.times.pause) {
            return;
        }
        let (kept, question) = (self.clone(), ask());
        tokio::spawn(async move {
            let outcome = question.await;
            let at = Moment::now();
            let trouble = outcome.as_ref().err().cloned();
            if let Some(why) = &trouble {
                tracing::warn!(why, "an issuer's keys could not be fetched");
            }
            if let Ok(keys) = outcome {
                *kept.known.lock() = Some(Known { keys: Arc::new(keys), at });
            }
            *asked = Some(Asked { at, trouble });
        });
    }

    /// The keys, if they are not older than this.
    fn known_for(&self, good_for: Duration) -> Option<Arc<PublicKeys>> {
        let known = self.known.lock();
        known.as_ref().filter(|known| known.at.elapsed() < good_for).map(|known| known.keys.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use tokio::time::sleep;

    use super::super::tests::EXAMPLES;
    use super::*;

    const NEVER: Duration = Duration::from_secs(3600);
    const SHORT: Duration = Duration::from_millis(20);
    /// Keys are asked for once, and are good for ever.
    const ONCE: Times = Times { fresh: NEVER, good: NEVER, pause: NEVER, patience: NEVER };

    fn keys(example: usize) -> Result<PublicKeys, String> {
        PublicKeys::parse(EXAMPLES[example].1.as_bytes())
    }

    /// Keeps the keys of the first example.
    async fn kept(times: Times) -> Arc<Kept> {
        let kept = Arc::new(Kept::new(times));
        kept.keys(|_| true, async || keys(0)).await.expect("keys");
        kept
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_leaves_the_answer_to_the_others() {
        let kept = Arc::new(Kept::new(ONCE));
        let (answers, slow) = tokio::sync::oneshot::channel::<()>();
        let ask = async || {
            slow.await.map_err(|e| e.to_string())?;
            keys(0)
        };
        timeout(SHORT, kept.keys(|_| true, ask)).await.expect_err("it goes away before the answer");
        answers.send(()).expect("the question is still under way");
        kept.keys(|_| true, async || Err("asked twice".into())).await.expect("the answer");
    }

    #[tokio::test]
    async fn keys_that_are_old_are_asked_for_again_and_those_that_were_withdrawn_end() {
        let times = Times { fresh: SHORT, pause: Duration::ZERO, ..ONCE };
        let kept = kept(times).await;
        sleep(SHORT).await;
        let answer = kept.keys(|_| true, async || keys(1)).await.expect("keys");
        let before = kept.known_for(NEVER).expect("known");
        assert!(Arc::ptr_eq(&answer, &before), "the new ones");
        assert_eq!(answer.usable(), 1);
        let token = super::super::compact::Compact::parse(EXAMPLES[0].0).expect("a token");
        assert!(answer.verify(&token).is_err(), "its key was withdrawn");
    }

    #[tokio::test]
    async fn keys_grow_old_while_the_machine_is_suspended() {
        let kept = kept(Times { pause: Duration::ZERO, ..ONCE }).await;
        // As long ago by the clock of the day as that clock went on alone.
        let long_ago = Moment::now().before_suspension(NEVER);
        kept.known.lock().as_mut().expect("known").at = long_ago;
        let trouble = kept.keys(|_| true, async || Err("silent".into())).await.err();
        assert_eq!(trouble, Some("silent".to_owned()));
    }

    #[tokio::test]
    async fn fresh_keys_are_not_asked_for_unless_they_lack_one_and_never_without_a_pause() {
        for (pause, questions) in [(NEVER, 0), (Duration::ZERO, 3)] {
            let kept = kept(Times { pause, ..ONCE }).await;
            let asked = AtomicUsize::new(0);
            let ask = || {
                asked.fetch_add(1, Relaxed);
                async { keys(0) }
            };
            kept.keys(|_| true, ask).await.expect("keys");
            assert_eq!(asked.load(Relaxed), 0, "they are fresh");
            for _ in 0..3 {
                kept.keys(|_| false, ask).await.expect("keys, though not the one that is needed");
            }
            assert_eq!(asked.load(Relaxed), questions);
        }
    }

    #[tokio::test]
    async fn a_server_that_does_not_answer_delays_nobody_whose_key_is_known() {
        let kept =
            kept(Times { fresh: Duration::ZERO, pause: Duration::ZERO, patience: SHORT, ..ONCE }).await;
        let answer = timeout(NEVER / 60, kept.keys(|_| true, pending)).await.expect("it waits a moment only");
        answer.expect("the keys of before");
        timeout(SHORT, kept.keys(|_| false, pending)).await.expect_err("others wait for the answer");
    }

    #[tokio::test]
    async fn keys_of_a_server_that_does_not_answer_any_more_end() {
        let fails = async || Err("silent".to_owned());
        for (good, is_good) in [(NEVER, true), (Duration::ZERO, false)] {
            let times = Times { fresh: Duration::ZERO, good, pause: Duration::ZERO, ..ONCE };
            let kept = Arc::new(Kept::new(times));
            let answer = kept.keys(|_| true, async || keys(0)).await;
            assert_eq!(answer.is_ok(), is_good);
            let trouble = kept.keys(|_| true, fails).await.err();
            assert_eq!(trouble, Some("silent".to_owned()).filter(|_| !is_good));
        }
    }
}
