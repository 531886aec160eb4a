//! What a path asks for, and of which store.

use super::error::{Kind, Result};

/// What the path of every store ends with.
const END: &str = "/kms/xks/v1";

/// An operation of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    GetHealthStatus,
    GetKeyMetadata,
    Encrypt,
    Decrypt,
}

impl Operation {
    /// A word for the log and the counts.
    pub(super) fn name(self) -> &'static str {
        match self {
            Operation::GetHealthStatus => "get-health-status",
            Operation::GetKeyMetadata => "get-key-metadata",
            Operation::Encrypt => "encrypt",
            Operation::Decrypt => "decrypt",
        }
    }
}

/// What an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of<'p> {
    Store,
    /// The key with this external key id.
    Key(&'p str),
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route<'p> {
    /// The place of the store among all.
    pub(super) store: usize,
    pub(super) operation: Operation,
    pub(super) of: Of<'p>,
}

/// Whether a path is one of an external key store, also of one that does not exist.
pub(super) fn is_of_a_store(path: &str) -> bool {
    let ends = |(at, _): (usize, &str)| matches!(path.as_bytes().get(at + END.len()), None | Some(b'/'));
    path.match_indices(END).any(ends)
}

impl<'p> Route<'p> {
    /// Reads the path of a request. `paths` are those of the stores.
    pub(super) fn of<'s>(
        method: &str,
        path: &'p str,
        mut paths: impl Iterator<Item = &'s str>,
    ) -> Result<Route<'p>> {
        let nothing = || Kind::InvalidUriPath.exception("there is nothing under this path");
        let (at, end) = path.match_indices(END).next().ok_or_else(nothing)?;
        let (of_store, rest) = path.split_at(at + end.len());
        let store = paths.position(|known| known == of_store);
        let store = store.ok_or_else(|| {
            Kind::InvalidUriPath.exception("there is no external key store under this path")
        })?;
        let (operation, of) = match rest.split('/').collect::<Vec<_>>()[..] {
            ["", "health"] => (Operation::GetHealthStatus, Of::Store),
            ["", "keys", id, "metadata"] => (Operation::GetKeyMetadata, Of::Key(id)),
            ["", "keys", id, "encrypt"] => (Operation::Encrypt, Of::Key(id)),
            ["", "keys", id, "decrypt"] => (Operation::Decrypt, Of::Key(id)),
            _ => return Err(nothing()),
        };
        if of == Of::Key("") {
            return Err(nothing());
        }
        match method {
            "POST" => Ok(Route { store, operation, of }),
            _ => Err(Kind::MethodNotAllowed.exception("all operations are asked for with POST")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: &str, path: &'static str) -> std::result::Result<Route<'static>, Kind> {
        let paths = ["/a/kms/xks/v1", "/kms/xks/v1"];
        Route::of(method, path, paths.into_iter()).map_err(|e| e.kind)
    }

    #[test]
    fn each_store_has_its_operations_and_no_path_beside_them() {
        let of = |store, operation, of| Ok(Route { store, operation, of });
        assert_eq!(route("POST", "/kms/xks/v1/health"), of(1, Operation::GetHealthStatus, Of::Store));
        for (word, operation) in [
            ("metadata", Operation::GetKeyMetadata),
            ("encrypt", Operation::Encrypt),
            ("decrypt", Operation::Decrypt),
        ] {
            let path: &str = format!("/a/kms/xks/v1/keys/a-1._B/{word}").leak();
            assert!(is_of_a_store(path));
            assert_eq!(route("POST", path), of(0, operation, Of::Key("a-1._B")));
            for method in ["GET", "PUT", "HEAD", "post"] {
                assert_eq!(route(method, path), Err(Kind::MethodNotAllowed), "{method}");
            }
        }
        for nothing in [
            "/b/kms/xks/v1/health",
            "/a/b/kms/xks/v1/health",
            "//kms/xks/v1/health",
            "/kms/xks/v1",
            "/kms/xks/v1/",
            "/kms/xks/v1//health",
            "/kms/xks/v1/health/",
            "/kms/xks/v1/keys/encrypt",
            "/kms/xks/v1/keys//encrypt",
            "/kms/xks/v1/keys/a/b/encrypt",
            "/kms/xks/v1/keys/a/sign",
            "/kms/xks/v1/kms/xks/v1/health",
            "/kms/xks/v10/health",
        ] {
            assert_eq!(route("POST", nothing), Err(Kind::InvalidUriPath), "{nothing}");
            assert_eq!(route("GET", nothing), Err(Kind::InvalidUriPath), "{nothing}");
        }
    }

    #[test]
    fn paths_of_other_apis_are_left_to_them() {
        for other in ["/", "/v1/transit/keys/a", "/kms/xks/v10/health", "/kms/xks", "/kms/xks/v1a"] {
            assert!(!is_of_a_store(other), "{other}");
        }
    }
}
