//! The class `polyclave.Client`. Every request is made without the interpreter's lock.

use std::io::{BufReader, Cursor};
use std::path::PathBuf;
use std::sync::Arc;

use polyclave_api::{
    CHUNK, CheckKind, KeyInfo, Lifetime, Mode, NewKey, modes_of, most_blocks, usage_of, warnings,
};
use polyclave_client::{CardTemplate, Error, Listed, Padding, Tokenization};
use polyclave_config::ClientDir;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::again::persist;
use crate::convert::{self, Additional, Data};
use crate::ends::{Interruptible, Reader, Target, Watch, Writer, source};
use crate::errors::{misuse, no_such_key, raised, unauthentic};
use crate::task::{Input, Output, Plain, Seal, Task};
use crate::tokenize::{self, Values};

/// More than any format adds to a message, so that its buffer does not grow.
const ROOM: usize = 1024;

/// A client of a cluster: it asks the nodes, and puts their answers together. Many threads may use it at
/// once.
#[pyclass(frozen, module = "polyclave")]
pub struct Client {
    /// Halted by `close`. There is no lock around it, which a child of a fork might find taken.
    inner: Arc<polyclave_client::Client>,
}

#[pymethods]
impl Client {
    /// Opens the client of a directory, such as `try/client` of `polyclave cluster new try`; by default that
    /// of the variable POLYCLAVE_CLIENT. Nothing is asked of the nodes yet.
    #[new]
    #[pyo3(signature = (dir=None))]
    fn new(py: Python<'_>, dir: Option<PathBuf>) -> PyResult<Client> {
        let dir = match dir.or_else(|| std::env::var_os("POLYCLAVE_CLIENT").map(PathBuf::from)) {
            Some(dir) => dir,
            None => return Err(misuse(py, "give a client's directory, or set POLYCLAVE_CLIENT to it")),
        };
        let open = || polyclave_client::Client::open(&ClientDir::open(&dir)?);
        let client = py.detach(open).map_err(|e| raised(py, e))?.on_remark(log);
        Ok(Client { inner: Arc::new(client) })
    }

    /// Ends the requests that are under way in other threads, which raise Ended, and closes the connections.
    /// Later requests are refused.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            self.inner.halt();
            self.inner.end();
        });
    }

    /// The same client for one call of `polyclave.aio`.
    fn _of_call(&self) -> Client {
        Client { inner: Arc::new(self.inner.for_some_requests()) }
    }

    /// Ends that call.
    fn _end_call(&self) {
        self.inner.halt();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        match self.inner.is_halted() {
            false => format!("<polyclave.Client '{}'>", self.inner.name()),
            true => "<polyclave.Client, closed>".into(),
        }
    }

    /// The client's own name.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.opened(py)?.name().to_owned())
    }

    /// The protocol of the cluster.
    #[getter]
    fn protocol(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.opened(py)?.cluster().protocol().to_owned())
    }

    /// The names of the nodes.
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.opened(py)?.cluster().cards().iter().map(|card| card.name.clone()).collect())
    }

    /// The status of each node, or why it does not answer.
    fn status<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let client = self.opened(py)?;
        let answers = py.detach(|| client.status());
        let status = |(node, answer)| convert::status(py, &client, client.node_name(node), &answer);
        answers.into_iter().map(status).collect()
    }

    /// Random bytes to which every node that answers contributes.
    fn random<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyBytes>> {
        let drawn = self.repeated(py, |client| client.random(count))?;
        Ok(PyBytes::new(py, &drawn))
    }

    /// All versions of all keys that this client may see, with the nodes that list each.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let client = self.opened(py)?;
        let listing = py.detach(|| client.keys()).map_err(|e| raised(py, e))?;
        for (node, error) in &listing.missing {
            log(&format!("not listed by {}: {error}", client.node_name(*node)));
        }
        let named =
            |listed: &Listed| listed.at.iter().map(|node| client.node_name(node).to_owned()).collect();
        listing.keys.iter().map(|listed| convert::key(py, &listed.info, Some(named(listed)))).collect()
    }

    /// The current version of a key.
    fn key<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let info = self.repeated(py, |client| client.info(name))?;
        convert::key(py, &info, None)
    }

    /// All versions of a key, the newest first.
    fn versions<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let versions = self.repeated(py, |client| client.versions(name))?;
        versions.iter().map(|info| convert::key(py, info, None)).collect()
    }

    /// The check value of a key, or of one of its versions, which the nodes compute from their shares: by
    /// "cmac" of zeros, or by the encryption of "zeros". An error if it is not the one that they recorded.
    #[pyo3(signature = (name, *, version=None, by="cmac"))]
    fn check<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        version: Option<u32>,
        by: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let kind = match by {
            "cmac" => CheckKind::Cmac,
            "zeros" => CheckKind::Zeros,
            other => return Err(misuse(py, &format!("a check value is by cmac or zeros, not '{other}'"))),
        };
        let value = self.repeated(py, |client| {
            let info = version.map_or_else(|| client.info(name), |version| client.version(name, version))?;
            client.check(&info, kind)
        })?;
        Ok(PyBytes::new(py, &value))
    }

    /// Makes a key that no one knows. All nodes take part.
    #[pyo3(signature = (name, *, cipher="aes-128", modes=None, usage=None, budget=None, label="", wrappable=false, caller_nonces=false, expires=None, session=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn generate<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        cipher: &str,
        modes: Option<Vec<String>>,
        usage: Option<Vec<String>>,
        budget: Option<u64>,
        label: &str,
        wrappable: bool,
        caller_nonces: bool,
        expires: Option<Bound<'py, PyAny>>,
        session: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lifetime = session.map_or(Lifetime::Stored, |seconds| Lifetime::Session { seconds });
        let expires = expires.map(|time| seconds(&time)).transpose()?;
        let new = new_key(py, (name, cipher), modes, usage, budget)?;
        let new = NewKey { label: label.into(), wrappable, caller_nonces, expires, lifetime, ..new };
        self.made(py, |client| client.generate(new))
    }

    /// Imports a key that is somewhere else already. All nodes take part, and none learns it.
    #[pyo3(signature = (name, material, *, cipher="aes-128", modes=None, usage=None, budget=None, label="", wrappable=false, caller_nonces=false, expires=None, session=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn import_key<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        material: Data,
        cipher: &str,
        modes: Option<Vec<String>>,
        usage: Option<Vec<String>>,
        budget: Option<u64>,
        label: &str,
        wrappable: bool,
        caller_nonces: bool,
        expires: Option<Bound<'py, PyAny>>,
        session: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lifetime = session.map_or(Lifetime::Stored, |seconds| Lifetime::Session { seconds });
        let expires = expires.map(|time| seconds(&time)).transpose()?;
        let new = new_key(py, (name, cipher), modes, usage, budget)?;
        let new = NewKey { label: label.into(), wrappable, caller_nonces, expires, lifetime, ..new };
        self.made(py, |client| client.import(new, &material))
    }

    /// Makes the next version of a key, which becomes the current one. All nodes take part.
    fn rotate<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.made(py, |client| client.rotate(name))
    }

    /// Deletes a key for ever, with all its versions, or one old version. All nodes take part.
    #[pyo3(signature = (name, *, version=None))]
    fn delete(&self, py: Python<'_>, name: &str, version: Option<u32>) -> PyResult<()> {
        let client = self.opened(py)?;
        let deleted = py.detach(|| match version {
            None => client.delete(name),
            Some(version) => client.delete_version(name, version),
        });
        match deleted.map_err(|e| raised(py, e))? {
            Some(_) => Ok(()),
            None => {
                Err(no_such_key(py, &format!("there is no such version of '{name}'; nothing was deleted")))
            }
        }
    }

    /// Seals bytes: they cannot be read, altered or cut without the nodes. Under a key for envelopes it makes
    /// a file in an envelope.
    #[pyo3(signature = (key, data, *, aad=None, mode=None, header=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn seal<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        data: Data,
        aad: Option<Data>,
        mode: Option<&str>,
        header: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.bytes(py, &sealing(py, aad, mode, header)?, key, &data, progress)
    }

    /// Seals a file. `target` appears when it is complete. Returns its bytes of data.
    #[pyo3(signature = (key, source, target, *, aad=None, mode=None, header=None, replace=false, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn seal_file(
        &self,
        py: Python<'_>,
        key: &str,
        source: PathBuf,
        target: PathBuf,
        aad: Option<Data>,
        mode: Option<&str>,
        header: Option<String>,
        replace: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        self.file(py, &sealing(py, aad, mode, header)?, key, (source, target), replace, progress)
    }

    /// Seals what an object with `read` gives, into an object with `write`.
    #[pyo3(signature = (key, reader, writer, *, aad=None, mode=None, header=None, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn seal_stream(
        &self,
        py: Python<'_>,
        key: &str,
        reader: Py<PyAny>,
        writer: Py<PyAny>,
        aad: Option<Data>,
        mode: Option<&str>,
        header: Option<String>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        self.stream(py, &sealing(py, aad, mode, header)?, key, (reader, writer), progress)
    }

    /// Opens sealed bytes, or bytes in an envelope. Raises Unauthentic if they were altered.
    #[pyo3(signature = (key, sealed, *, aad=None, progress=None))]
    fn open<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        sealed: Data,
        aad: Option<Data>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.bytes(py, &opening(aad), key, &sealed, progress)
    }

    /// Opens a sealed file. `target`, which only its owner can read, appears when all of it is verified.
    #[pyo3(signature = (key, source, target, *, aad=None, replace=false, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn open_file(
        &self,
        py: Python<'_>,
        key: &str,
        source: PathBuf,
        target: PathBuf,
        aad: Option<Data>,
        replace: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        self.file(py, &opening(aad), key, (source, target), replace, progress)
    }

    /// Opens a sealed stream. What is written was verified chunk by chunk; that it is complete shows when
    /// this returns.
    #[pyo3(signature = (key, reader, writer, *, aad=None, progress=None))]
    fn open_stream(
        &self,
        py: Python<'_>,
        key: &str,
        reader: Py<PyAny>,
        writer: Py<PyAny>,
        aad: Option<Data>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        self.stream(py, &opening(aad), key, (reader, writer), progress)
    }

    /// Encrypts bytes into the plain format of a mode, which other programs read.
    #[pyo3(signature = (key, data, *, mode="gcm", aad=None, nonce=None, tag_bytes=16, tweak=None, padding=true, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn encrypt<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        data: Data,
        mode: &str,
        aad: Option<Additional>,
        nonce: Option<Data>,
        tag_bytes: usize,
        tweak: Option<Data>,
        padding: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let plain = plain(py, mode, aad, (nonce, None, tag_bytes), tweak, padding)?;
        self.bytes(py, &Task::Encrypt(plain), key, &data, progress)
    }

    /// Encrypts a file into the plain format of a mode.
    #[pyo3(signature = (key, source, target, *, mode="gcm", aad=None, nonce=None, tag_bytes=16, tweak=None, padding=true, replace=false, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn encrypt_file(
        &self,
        py: Python<'_>,
        key: &str,
        source: PathBuf,
        target: PathBuf,
        mode: &str,
        aad: Option<Additional>,
        nonce: Option<Data>,
        tag_bytes: usize,
        tweak: Option<Data>,
        padding: bool,
        replace: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let plain = plain(py, mode, aad, (nonce, None, tag_bytes), tweak, padding)?;
        self.file(py, &Task::Encrypt(plain), key, (source, target), replace, progress)
    }

    /// Encrypts a stream into the plain format of a mode.
    #[pyo3(signature = (key, reader, writer, *, mode="gcm", aad=None, nonce=None, tag_bytes=16, tweak=None, padding=true, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn encrypt_stream(
        &self,
        py: Python<'_>,
        key: &str,
        reader: Py<PyAny>,
        writer: Py<PyAny>,
        mode: &str,
        aad: Option<Additional>,
        nonce: Option<Data>,
        tag_bytes: usize,
        tweak: Option<Data>,
        padding: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let plain = plain(py, mode, aad, (nonce, None, tag_bytes), tweak, padding)?;
        self.stream(py, &Task::Encrypt(plain), key, (reader, writer), progress)
    }

    /// Decrypts bytes from the plain format of a mode.
    #[pyo3(signature = (key, data, *, mode="gcm", aad=None, nonce_bytes=None, tag_bytes=16, tweak=None, padding=true, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn decrypt<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        data: Data,
        mode: &str,
        aad: Option<Additional>,
        nonce_bytes: Option<usize>,
        tag_bytes: usize,
        tweak: Option<Data>,
        padding: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let plain = plain(py, mode, aad, (None, nonce_bytes, tag_bytes), tweak, padding)?;
        self.bytes(py, &Task::Decrypt(plain), key, &data, progress)
    }

    /// Decrypts a file from the plain format of a mode.
    #[pyo3(signature = (key, source, target, *, mode="gcm", aad=None, nonce_bytes=None, tag_bytes=16, tweak=None, padding=true, replace=false, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn decrypt_file(
        &self,
        py: Python<'_>,
        key: &str,
        source: PathBuf,
        target: PathBuf,
        mode: &str,
        aad: Option<Additional>,
        nonce_bytes: Option<usize>,
        tag_bytes: usize,
        tweak: Option<Data>,
        padding: bool,
        replace: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let plain = plain(py, mode, aad, (None, nonce_bytes, tag_bytes), tweak, padding)?;
        self.file(py, &Task::Decrypt(plain), key, (source, target), replace, progress)
    }

    /// Decrypts a stream from the plain format of a mode. With gcm the whole ciphertext is read before
    /// anything is written.
    #[pyo3(signature = (key, reader, writer, *, mode="gcm", aad=None, nonce_bytes=None, tag_bytes=16, tweak=None, padding=true, progress=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn decrypt_stream(
        &self,
        py: Python<'_>,
        key: &str,
        reader: Py<PyAny>,
        writer: Py<PyAny>,
        mode: &str,
        aad: Option<Additional>,
        nonce_bytes: Option<usize>,
        tag_bytes: usize,
        tweak: Option<Data>,
        padding: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let plain = plain(py, mode, aad, (None, nonce_bytes, tag_bytes), tweak, padding)?;
        self.stream(py, &Task::Decrypt(plain), key, (reader, writer), progress)
    }

    /// The message authentication code of bytes (CMAC, or HMAC of at most 64 KiB), under a key for it.
    #[pyo3(signature = (key, data, *, progress=None))]
    fn mac<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        data: Data,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let code = self.code_of_bytes(py, key, &data, None, progress)?;
        Ok(PyBytes::new(py, &code))
    }

    /// The message authentication code of a file.
    #[pyo3(signature = (key, source, *, progress=None))]
    fn mac_file<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        source: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let code = self.watched(py, progress, |client, watch| {
            let mut input = crate::ends::source(&source, watch)?;
            client.key(key)?.mac_stream(&mut input, None, &mut |done| watch.tell(done))
        })?;
        Ok(PyBytes::new(py, &code))
    }

    /// The message authentication code of what an object with `read` gives.
    #[pyo3(signature = (key, reader, *, progress=None))]
    fn mac_stream<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        reader: Py<PyAny>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let client = self.opened(py)?;
        let code = py.detach(|| {
            let watch = Watch::new(client.clone(), progress);
            let mut input = BufReader::with_capacity(CHUNK, Reader(reader, &watch));
            let key = client.key(key);
            watch.outcome(key.and_then(|key| key.mac_stream(&mut input, None, &mut |done| watch.tell(done))))
        });
        Ok(PyBytes::new(py, &code.map_err(|e| raised(py, e))?))
    }

    /// Compares a message authentication code with that of bytes. Raises Unauthentic if they differ. A code
    /// of HMAC may be cut to 16 bytes and more.
    fn verify_mac(&self, py: Python<'_>, key: &str, data: Data, code: Data) -> PyResult<()> {
        let expected = self.code_of_bytes(py, key, &data, Some(code.len()), None)?;
        match bool::from(expected.ct_eq(&code)) {
            true => Ok(()),
            false => Err(unauthentic(
                py,
                "the code does not fit: the message was altered, or the code belongs to another key",
            )),
        }
    }

    /// Computes a payment command under some keys, given by their names in the order in which the command
    /// takes them. Returns its answer, which is empty if the command only verifies; None if it does not hold.
    fn pay<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<String>,
        command: Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let command = convert::payment(py, &command)?;
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let paid = self.repeated(py, |client| client.pay(&keys, &command))?;
        Ok(paid.map(|answer| PyBytes::new(py, &answer)))
    }

    /// The same for several commands under the same keys, in order. Those of one kind and form are computed
    /// together.
    fn pay_all<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<String>,
        commands: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let commands =
            commands.iter().map(|command| convert::payment(py, command)).collect::<PyResult<Vec<_>>>()?;
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let paid = self.repeated(py, |client| client.pay_all(&keys, &commands))?;
        Ok(paid.into_iter().map(|paid| paid.map(|answer| PyBytes::new(py, &answer))).collect())
    }

    /// The token of a value (a string), or the tokens of several (a list, in order), of the same lengths and
    /// alphabet: FF1, under a key for it.
    #[pyo3(signature = (key, values, *, radix=None, alphabet=None, keep_others=false, tweak=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn tokenize<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        values: Values,
        radix: Option<u32>,
        alphabet: Option<&str>,
        keep_others: bool,
        tweak: Option<Data>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let alphabet = tokenize::alphabet(py, radix, alphabet)?;
        let how = Tokenization { alphabet: &alphabet, keeps_others: keep_others };
        values.exchanged(py, tweak.as_ref(), |values| {
            self.repeated(py, |client| client.tokenize(key, how, values))
        })
    }

    /// The value of a token, or the values of several. Nothing authenticates a token: a wrong one gives a
    /// wrong value.
    #[pyo3(signature = (key, tokens, *, radix=None, alphabet=None, keep_others=false, tweak=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn detokenize<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        tokens: Values,
        radix: Option<u32>,
        alphabet: Option<&str>,
        keep_others: bool,
        tweak: Option<Data>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let alphabet = tokenize::alphabet(py, radix, alphabet)?;
        let how = Tokenization { alphabet: &alphabet, keeps_others: keep_others };
        tokens.exchanged(py, tweak.as_ref(), |tokens| {
            self.repeated(py, |client| client.detokenize(key, how, tokens))
        })
    }

    /// The token of a card's number, or the tokens of several. The first and last digits stay; with luhn
    /// tokens pass the Luhn test.
    #[pyo3(signature = (key, numbers, *, keep_first=6, keep_last=4, luhn=false, tweak=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn tokenize_cards<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        numbers: Values,
        keep_first: usize,
        keep_last: usize,
        luhn: bool,
        tweak: Option<Data>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let template = CardTemplate { first: keep_first, last: keep_last, keeps_check: luhn };
        numbers.exchanged(py, tweak.as_ref(), |numbers| {
            self.repeated(py, |client| client.tokenize_cards(key, template, numbers))
        })
    }

    /// The card's number of a token, or the numbers of several. The arguments are those that the tokens were
    /// made with.
    #[pyo3(signature = (key, tokens, *, keep_first=6, keep_last=4, luhn=false, tweak=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument by name in Python")]
    fn detokenize_cards<'py>(
        &self,
        py: Python<'py>,
        key: &str,
        tokens: Values,
        keep_first: usize,
        keep_last: usize,
        luhn: bool,
        tweak: Option<Data>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let template = CardTemplate { first: keep_first, last: keep_last, keeps_check: luhn };
        tokens.exchanged(py, tweak.as_ref(), |tokens| {
            self.repeated(py, |client| client.detokenize_cards(key, template, tokens))
        })
    }
}

impl Client {
    fn opened(&self, py: Python<'_>) -> PyResult<Arc<polyclave_client::Client>> {
        match self.inner.is_halted() {
            false => Ok(self.inner.clone()),
            true => Err(misuse(py, "this client is closed; open it anew")),
        }
    }

    /// Asks, and asks again if a node failed and others can serve.
    fn repeated<T: Send>(
        &self,
        py: Python<'_>,
        work: impl Fn(&polyclave_client::Client) -> Result<T, Error> + Send + Sync,
    ) -> PyResult<T> {
        let client = self.opened(py)?;
        py.detach(|| persist(&client, || work(&client))).map_err(|e| raised(py, e))
    }

    /// Asks once for what changes a key: after a failure it may have happened.
    fn made<'py>(
        &self,
        py: Python<'py>,
        work: impl FnOnce(&polyclave_client::Client) -> Result<KeyInfo, Error> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let client = self.opened(py)?;
        let info = py.detach(|| work(&client)).map_err(|e| raised(py, e))?;
        convert::key(py, &info, None)
    }

    /// The same for a request that may take long.
    fn watched<T: Send>(
        &self,
        py: Python<'_>,
        progress: Option<Py<PyAny>>,
        work: impl Fn(&polyclave_client::Client, &Watch) -> Result<T, Error> + Send + Sync,
    ) -> PyResult<T> {
        let watch = Watch::new(self.opened(py)?, progress);
        self.repeated(py, |client| watch.outcome(work(client, &watch)))
    }

    fn code_of_bytes(
        &self,
        py: Python<'_>,
        key: &str,
        data: &Data,
        hmac_bytes: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Zeroizing<Vec<u8>>> {
        self.watched(py, progress, |client, watch| {
            let mut input = Interruptible(&data[..], watch);
            let key = client.key(key)?;
            let bytes = if key.computes_hmac()? { hmac_bytes } else { None };
            key.mac_stream(&mut input, bytes, &mut |done| watch.tell(done))
        })
    }

    fn bytes<'py>(
        &self,
        py: Python<'py>,
        task: &Task,
        key: &str,
        data: &Data,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let done = self.watched(py, progress, |client, watch| {
            // Its full size at once: growing would leave a copy behind.
            let mut out = Zeroizing::new(Vec::with_capacity(data.len() + ROOM));
            let mut from = Interruptible(Cursor::new(&data[..]), watch);
            let to = Output { to: &mut *out, is_seen_early: false };
            task.run(client, key, Input::Rewindable(&mut from), to, &mut |done| watch.tell(done))?;
            Ok(out)
        })?;
        Ok(PyBytes::new(py, &done))
    }

    fn file(
        &self,
        py: Python<'_>,
        task: &Task,
        key: &str,
        (from, target): (PathBuf, PathBuf),
        replace: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        self.watched(py, progress, |client, watch| {
            let mut from = source(&from, watch)?;
            let mut to = Target::begin(&target, task.reveals(), replace)?;
            let output = Output { to: &mut to, is_seen_early: false };
            let tell = &mut |done| watch.tell(done);
            let bytes = watch.outcome(task.run(client, key, Input::Rewindable(&mut from), output, tell))?;
            to.finish()?;
            Ok(bytes)
        })
    }

    fn stream(
        &self,
        py: Python<'_>,
        task: &Task,
        key: &str,
        (reader, writer): (Py<PyAny>, Py<PyAny>),
        progress: Option<Py<PyAny>>,
    ) -> PyResult<u64> {
        let client = self.opened(py)?;
        let done = py.detach(|| {
            let watch = Watch::new(client.clone(), progress);
            let mut from = BufReader::with_capacity(CHUNK, Reader(reader, &watch));
            let mut to = Writer(writer, &watch);
            let output = Output { to: &mut to, is_seen_early: true };
            let tell = &mut |done| watch.tell(done);
            watch.outcome(task.run(&client, key, Input::Stream(&mut from), output, tell))
        });
        done.map_err(|e| raised(py, e))
    }
}

fn sealing(py: Python<'_>, aad: Option<Data>, mode: Option<&str>, header: Option<String>) -> PyResult<Task> {
    let mode = mode.map(|word| convert::mode(py, word)).transpose()?;
    Ok(Task::Seal(Seal { mode, additional: aad.map(|data| data.to_vec()), header }))
}

fn opening(aad: Option<Data>) -> Task {
    Task::Open(aad.map(|data| data.to_vec()))
}

fn plain(
    py: Python<'_>,
    mode: &str,
    aad: Option<Additional>,
    (nonce, nonce_bytes, tag_bytes): (Option<Data>, Option<usize>, usize),
    tweak: Option<Data>,
    padding: bool,
) -> PyResult<Plain> {
    let plain = Plain {
        mode: convert::mode(py, mode)?,
        additional: Additional::strings(aad),
        nonce: nonce.map(|data| data.to_vec()),
        nonce_bytes,
        tag_bytes,
        tweak: tweak.map(|data| data.to_vec()).unwrap_or_default(),
        padding: if padding { Padding::Pkcs7 } else { Padding::None },
    };
    plain.check().map_err(|e| raised(py, e))?;
    Ok(plain)
}

/// A key for these modes and usages; what is not given follows from the other, and by default it is for gcm.
fn new_key(
    py: Python<'_>,
    (name, cipher): (&str, &str),
    modes: Option<Vec<String>>,
    usage: Option<Vec<String>>,
    budget: Option<u64>,
) -> PyResult<NewKey> {
    let known = polyclave_cipher::keyed::find(cipher)
        .ok_or_else(|| misuse(py, &format!("there is no cipher '{cipher}'")))?;
    let usage = usage.map(|words| convert::usages(py, &words)).transpose()?;
    let modes = match (modes, &usage) {
        (Some(words), _) => convert::modes(py, &words)?,
        (None, None) => vec![Mode::Gcm],
        (None, Some(usage)) => modes_of(usage),
    };
    let usage = usage.unwrap_or_else(|| usage_of(&modes));
    warnings(&modes, &usage).iter().for_each(|warning| log(warning));
    let most = most_blocks(known.block_bytes, &modes);
    let new = NewKey::for_modes(name, &known.name, &modes, budget.unwrap_or(most));
    Ok(NewKey { usage, ..new })
}

/// Seconds since 1970 of a `datetime`.
fn seconds(time: &Bound<'_, PyAny>) -> PyResult<u64> {
    let seconds: f64 = time.call_method0("timestamp")?.extract()?;
    match seconds >= 0.0 {
        true => Ok(seconds as u64),
        false => Err(misuse(time.py(), "a key expires after 1970")),
    }
}

/// Tells a person something, although nothing failed: by the logger `polyclave`.
fn log(message: &str) {
    let result = Python::attach(|py| {
        let logger = py.import("logging")?.call_method1("getLogger", ("polyclave",))?;
        logger.call_method1("warning", ("%s", message)).map(drop)
    });
    // A log that fails must not fail the request.
    drop::<PyResult<()>>(result);
}
