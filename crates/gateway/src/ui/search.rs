//! Keys by name, a page at a time. The nodes list all their keys to answer that, and write a line into their
//! audit logs, so a list is kept for a while, and one is fetched at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_client::{Client, Listing};
use serde_json::json;
use tokio::sync::Mutex;

/// How long a list is kept.
const KEEP: Duration = Duration::from_secs(10);
/// A search begins this long after the one before, of anybody: thousands a second would take a processor of
/// the gateway.
const APART: Duration = Duration::from_millis(5);
/// Keys on a page.
const PAGE: usize = 25;
/// The longest name, or part of one.
const LONGEST: usize = 64;

/// See the [module](self).
pub(super) struct Search {
    client: Arc<Client>,
    kept: Mutex<Option<(Instant, Arc<Listing>)>>,
    /// Held by the search that begins next. The others wait in the order in which they came.
    next: Mutex<()>,
}

/// What is looked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    part: String,
    page: usize,
}

impl Wanted {
    /// Reads `part=PART&page=N`. Names of keys need no escapes, so there are none.
    pub(super) fn of(query: &str) -> Option<Wanted> {
        let mut wanted = Wanted { part: String::new(), page: 0 };
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            match name {
                "part" => wanted.part = value.into(),
                "page" => wanted.page = value.parse().ok()?,
                _ => return None,
            }
        }
        let in_names = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        (wanted.part.len() <= LONGEST && wanted.part.chars().all(in_names)).then_some(wanted)
    }
}

impl Search {
    pub(super) fn new(client: Arc<Client>) -> Search {
        Search { client, kept: Mutex::default(), next: Mutex::default() }
    }

    /// A page of the keys that fit, as JSON.
    pub(super) async fn find(
        &self,
        wanted: Wanted,
        may_list: impl Fn(&str) -> bool,
    ) -> Result<String, String> {
        next(&self.next).await;
        let listing = self.listing().await?;
        let fits = listing.keys.iter().filter(|listed| {
            let name = &listed.info.properties.name;
            name.contains(&wanted.part) && may_list(name)
        });
        let found: Vec<_> = fits.collect();
        let begin = wanted.page.saturating_mul(PAGE).min(found.len());
        let rows = found[begin..].iter().take(PAGE).map(|listed| {
            let info = &listed.info;
            json!({
                "name": info.properties.name,
                "version": info.version,
                "label": info.properties.label,
                "cipher": info.properties.cipher,
                "modes": info.properties.modes,
                "state": info.state,
                "expires": info.properties.expires,
                "ends": info.ends(),
                "budget": info.properties.budget_blocks,
                "at": listed.at.iter().map(|node| self.client.node_name(node)).collect::<Vec<_>>(),
            })
        });
        let missing: Vec<&str> =
            listing.missing.iter().map(|(node, _)| self.client.node_name(*node)).collect();
        let rows: Vec<_> = rows.collect();
        let document = json!({
            "rows": rows, "found": found.len(), "page": wanted.page, "pages": found.len().div_ceil(PAGE), "missing": missing,
        });
        Ok(document.to_string())
    }

    async fn listing(&self) -> Result<Arc<Listing>, String> {
        // Requests that come meanwhile wait for the same list.
        let mut kept = self.kept.lock().await;
        if let Some((at, listing)) = &*kept
            && at.elapsed() < KEEP
        {
            return Ok(listing.clone());
        }
        let client = self.client.clone();
        let listed = tokio::task::spawn_blocking(move || client.keys()).await;
        let listed = listed.map_err(|_| "the list ended with an error of this program; see its log")?;
        let listing = Arc::new(listed.map_err(|e| format!("the nodes did not list keys: {e}"))?);
        *kept = Some((Instant::now(), listing.clone()));
        Ok(listing)
    }
}

/// Waits until the next search may begin.
async fn next(next: &Mutex<()>) {
    let _next = next.lock().await;
    tokio::time::sleep(APART).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_at_the_same_time_begin_apart() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let begun = Instant::now();
        let turns = Mutex::default();
        runtime.block_on(futures_util::future::join_all((0..4).map(|_| next(&turns))));
        assert!(begun.elapsed() >= 4 * APART);
    }

    #[test]
    fn a_search_has_a_part_of_a_name_and_a_page() {
        let wanted = |part: &str, page| Some(Wanted { part: part.into(), page });
        assert_eq!(Wanted::of(""), wanted("", 0));
        assert_eq!(Wanted::of("part=pay-&page=3"), wanted("pay-", 3));
        for wrong in ["page=-1", "page=x", "part=%3Cimg", "part=a b", "token=x"] {
            assert_eq!(Wanted::of(wrong), None, "{wrong}");
        }
        assert!(Wanted::of(&format!("part={}", "a".repeat(65))).is_none());
    }
}
