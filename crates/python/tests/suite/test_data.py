"""Bytes, files and streams that are sealed, opened, encrypted and decrypted."""

import errno
import hmac
import io
import os
import resource
import signal
import stat
import threading

import pytest

import polyclave

#: More than two chunks of a sealed file.
LONG = bytes(range(256)) * 2100
#: What the nodes compute at once. Less than this is left of a budget that was used up.
CHUNK = bytes(1 << 18)


@pytest.mark.parametrize("data", [b"", b"a secret", LONG], ids=["empty", "short", "long"])
def test_sealed_bytes_open_to_themselves(client, keys, data):
    sealed = client.seal(keys("gcm"), data)
    assert data not in sealed or not data
    assert client.open(keys("gcm"), sealed) == data


def test_altered_bytes_are_unauthentic(client, keys):
    sealed = bytearray(client.seal(keys("gcm"), b"a secret"))
    sealed[-1] ^= 1
    with pytest.raises(polyclave.Unauthentic):
        client.open(keys("gcm"), sealed)


def test_what_is_bound_opens_with_the_same_additional_data_only(client, keys):
    sealed = client.seal(keys("gcm"), b"a secret", aad=b"row 7")
    assert client.open(keys("gcm"), sealed, aad=b"row 7") == b"a secret"
    with pytest.raises(polyclave.Unauthentic):
        client.open(keys("gcm"), sealed, aad=b"row 8")
    with pytest.raises(polyclave.Error):
        client.open(keys("gcm"), sealed)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_data(client, keys, kind):
    sealed = client.seal(keys("gcm"), kind(b"a secret"))
    assert client.open(keys("gcm"), kind(sealed)) == b"a secret"


def test_text_is_no_data(client, keys):
    with pytest.raises(TypeError):
        client.seal(keys("gcm"), "a secret")


def test_a_file_comes_back_and_is_its_owners(client, keys, tmp_path):
    plain, sealed, opened = tmp_path / "plain", tmp_path / "sealed", tmp_path / "opened"
    plain.write_bytes(LONG)
    assert client.seal_file(keys("gcm"), plain, sealed) == len(LONG)
    assert client.open_file(keys("gcm"), str(sealed), str(opened)) == len(LONG)
    assert opened.read_bytes() == LONG
    assert stat.S_IMODE(opened.stat().st_mode) == 0o600


def test_a_file_is_replaced_only_if_that_is_said(client, keys, tmp_path):
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    plain.write_bytes(b"a secret")
    sealed.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        client.seal_file(keys("gcm"), plain, sealed)
    assert sealed.read_bytes() == b"precious"
    client.seal_file(keys("gcm"), plain, sealed, replace=True)
    assert polyclave.inspect(sealed.read_bytes())["kind"] == "sealed"


def test_an_altered_file_leaves_nothing(client, keys, tmp_path):
    plain, sealed, opened = tmp_path / "plain", tmp_path / "sealed", tmp_path / "opened"
    plain.write_bytes(LONG)
    client.seal_file(keys("gcm"), plain, sealed)
    altered = bytearray(sealed.read_bytes())
    altered[-1] ^= 1
    sealed.write_bytes(altered)
    with pytest.raises(polyclave.Unauthentic):
        client.open_file(keys("gcm"), sealed, opened)
    assert not opened.exists()


def test_a_file_that_is_not_there_is_an_error_of_the_system(client, keys, tmp_path):
    with pytest.raises(FileNotFoundError):
        client.seal_file(keys("gcm"), tmp_path / "none", tmp_path / "sealed")


def test_errors_of_files_have_their_number_and_the_files_name(client, keys, tmp_path):
    plain = tmp_path / "plain"
    plain.write_bytes(b"a secret")
    none, there, nowhere = tmp_path / "none", tmp_path / "there", tmp_path / "no" / "directory"
    there.write_bytes(b"")
    for source, target, kind, number, name in [
        (none, there, FileNotFoundError, errno.ENOENT, none),
        (plain, there, FileExistsError, errno.EEXIST, there),
        (plain, nowhere, FileNotFoundError, errno.ENOENT, nowhere),
        (tmp_path, tmp_path / "new", IsADirectoryError, errno.EISDIR, tmp_path),
    ]:
        with pytest.raises(kind) as raised:
            client.seal_file(keys("gcm"), source, target)
        assert (raised.value.errno, raised.value.filename) == (number, str(name))
        told = raised.value.strerror
        assert told.startswith("it is there already") if number == errno.EEXIST else told == os.strerror(number)


@pytest.mark.parametrize("data", [b"a secret", LONG], ids=["short", "long"])
def test_an_error_while_a_file_is_written_has_its_number_and_the_files_name(client, keys, tmp_path, data):
    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    plain.write_bytes(data)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        with pytest.raises(OSError) as raised:
            client.seal_file(keys("gcm"), plain, sealed)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, str(sealed))
    assert not sealed.exists()


def test_an_error_of_a_file_that_cannot_be_read_twice_has_its_number_and_the_files_name(client, keys, tmp_path):
    encrypted, pipe = client.encrypt(keys("gcm"), b"a secret"), tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_bytes, args=(encrypted,))
    writing.start()
    with pytest.raises(OSError) as raised:
        client.decrypt_file(keys("gcm"), pipe, tmp_path / "opened")
    writing.join()
    assert (raised.value.errno, raised.value.filename) == (errno.ESPIPE, str(pipe))


def test_the_progress_of_all_kinds_of_data_is_told(client, keys, tmp_path):
    plain, sealed, told = tmp_path / "plain", tmp_path / "sealed", []
    plain.write_bytes(LONG)
    client.seal_file(keys("gcm"), plain, sealed, progress=told.append)
    assert told == sorted(told) and len(told) > 2 and told[-1] == len(LONG)
    for work in [
        lambda told: client.open(keys("gcm"), sealed.read_bytes(), progress=told.append),
        lambda told: client.open_stream(keys("gcm"), io.BytesIO(sealed.read_bytes()), io.BytesIO(), progress=told.append),
        lambda told: client.encrypt(keys("ctr"), LONG, mode="ctr", progress=told.append),
    ]:
        told = []
        work(told)
        assert told and told[-1] == len(LONG)
    # The nodes compute one block after the other.
    plain.write_bytes(bytes(16))
    told = []
    client.mac_file(keys("cmac"), plain, progress=told.append)
    assert told == [16]


def test_the_progress_of_an_envelope_counts_each_byte_once(verifying, tmp_path):
    with polyclave.Client(verifying) as client:
        client.generate("progress", modes=["envelope"])
        told = []
        client.seal("progress", LONG, progress=told.append)
        assert told[-1] == len(LONG)


def test_what_the_progress_raises_ends_the_request(client, keys, tmp_path):
    def give_up(done):
        raise LookupError(f"seen enough after {done}")

    plain, sealed = tmp_path / "plain", tmp_path / "sealed"
    for data in (LONG, b"short"):
        plain.write_bytes(data)
        with pytest.raises(LookupError, match="seen enough"):
            client.seal_file(keys("gcm"), plain, sealed, progress=give_up)
        assert not sealed.exists()
    client.generate("given-up", budget=1 << 20)
    with pytest.raises(LookupError, match="seen enough"):
        client.seal_file("given-up", "/dev/zero", sealed, progress=give_up)
    assert client.seal("given-up", CHUNK), "it did not go on until the budget was spent"


def test_a_signal_ends_a_long_request(client, tmp_path):
    """The file has no end. Unless the request ends, it uses up the key's budget."""

    def ring(_number, _frame):
        raise KeyboardInterrupt

    client.generate("interrupted", budget=1 << 20)
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            client.seal_file("interrupted", "/dev/zero", tmp_path / "sealed")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not (tmp_path / "sealed").exists()
    assert client.seal("interrupted", CHUNK), "it did not go on until the budget was spent"


def test_a_stream_comes_back(client, keys):
    sealed, opened = io.BytesIO(), io.BytesIO()
    assert client.seal_stream(keys("gcm"), io.BytesIO(LONG), sealed) == len(LONG)
    sealed.seek(0)
    client.open_stream(keys("gcm"), sealed, opened)
    assert opened.getvalue() == LONG


class Sparing:
    """A stream that gives and takes little at once, and has no other methods."""

    def __init__(self, data=b""):
        self.data = io.BytesIO(data)

    def read(self, size):
        return self.data.read(min(size, 1000))

    def write(self, data):
        return self.data.write(data[:777])


def test_a_stream_may_give_and_take_less_than_it_is_asked_for(client, keys):
    sealed, opened = Sparing(), Sparing()
    client.seal_stream(keys("gcm"), Sparing(LONG), sealed)
    client.open_stream(keys("gcm"), Sparing(sealed.data.getvalue()), opened)
    assert opened.data.getvalue() == LONG


class Broken(io.RawIOBase):
    def read(self, size=-1):
        raise LookupError("the disk is in the other room")


def test_what_a_stream_raises_comes_through(client, keys):
    with pytest.raises(LookupError, match="other room"):
        client.seal_stream(keys("gcm"), Broken(), io.BytesIO())


def test_a_stream_of_text_is_refused(client, keys):
    with pytest.raises(TypeError):
        client.seal_stream(keys("gcm"), io.StringIO("a secret"), io.BytesIO())


@pytest.mark.parametrize("mode", ["gcm", "xaes", "siv", "ccm", "gcm-siv", "ctr", "cbc", "ecb"])
def test_every_mode_decrypts_what_it_encrypted(client, keys, mode, tmp_path):
    data, key = b"a secret of thirty-three bytes ..", keys(mode)
    encrypted = client.encrypt(key, data, mode=mode)
    assert client.decrypt(key, encrypted, mode=mode) == data
    out = io.BytesIO()
    client.decrypt_stream(key, io.BytesIO(encrypted), out, mode=mode)
    assert out.getvalue() == data
    (tmp_path / "plain").write_bytes(data)
    client.encrypt_file(key, tmp_path / "plain", tmp_path / "encrypted", mode=mode)
    client.decrypt_file(key, tmp_path / "encrypted", tmp_path / "again", mode=mode)
    assert (tmp_path / "again").read_bytes() == data
    into = io.BytesIO()
    client.encrypt_stream(key, io.BytesIO(data), into, mode=mode)
    assert client.decrypt(key, into.getvalue(), mode=mode) == data


def test_siv_takes_several_strings_in_order(client, keys):
    encrypted = client.encrypt(keys("siv"), b"a secret", mode="siv", aad=[b"table", b"row"])
    assert client.decrypt(keys("siv"), encrypted, mode="siv", aad=[b"table", b"row"]) == b"a secret"
    with pytest.raises(polyclave.Unauthentic):
        client.decrypt(keys("siv"), encrypted, mode="siv", aad=[b"row", b"table"])


def test_a_known_answer_of_aes(client):
    """FIPS 197, appendix C.1."""
    key = bytes.fromhex("000102030405060708090a0b0c0d0e0f")
    client.import_key("fips-197", key, modes=["ecb"])
    block = bytes.fromhex("00112233445566778899aabbccddeeff")
    encrypted = client.encrypt("fips-197", block, mode="ecb", padding=False)
    assert encrypted.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "xts"},
        {"mode": "cmac"},
        {"mode": "ctr", "aad": b"row"},
        {"mode": "gcm", "aad": [b"table", b"row"]},
        {"mode": "cbc", "nonce": bytes(12)},
        {"mode": "gcm", "tweak": bytes(16)},
        {"mode": "gcm", "tag_bytes": 3},
    ],
    ids=str,
)
def test_what_is_impossible_is_a_value_error_of_the_client(client, keys, arguments):
    with pytest.raises(polyclave.Misuse) as raised:
        client.encrypt(keys("gcm"), b"a secret", **arguments)
    assert isinstance(raised.value, ValueError)


def test_a_code_is_that_of_bytes_files_and_streams(client, keys, tmp_path):
    message = b"a message"
    (tmp_path / "message").write_bytes(message)
    code = client.mac(keys("cmac"), message)
    assert len(code) == 16
    assert client.mac_file(keys("cmac"), tmp_path / "message") == code
    assert client.mac_stream(keys("cmac"), io.BytesIO(message)) == code
    client.verify_mac(keys("cmac"), message, code)
    with pytest.raises(polyclave.Unauthentic):
        client.verify_mac(keys("cmac"), b"another message", code)


def test_a_code_of_hmac_is_verified_whole_and_cut(client):
    """RFC 4231, section 4.7: a key of 131 bytes."""
    client.import_key("rfc-4231", b"\xaa" * 131, cipher="hmac-sha-256", modes=["hmac"])
    message = b"Test Using Larger Than Block-Size Key - Hash Key First"
    code = bytes.fromhex("60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54")
    assert client.mac("rfc-4231", message) == code
    for length in (32, 16):
        client.verify_mac("rfc-4231", message, code[:length])
        with pytest.raises(polyclave.Unauthentic):
            client.verify_mac("rfc-4231", b"another message", code[:length])
    with pytest.raises(polyclave.Misuse):
        client.verify_mac("rfc-4231", message, code[:15])


def test_a_code_of_hmac_with_sha_512_is_verified_whole_and_cut(client):
    """RFC 4231, section 4.3: a key of 4 bytes, which nodes take with zeros up to a block."""
    client.import_key("rfc-4231-512", b"Jefe".ljust(128, b"\0"), cipher="hmac-sha-512", modes=["hmac"])
    message = b"what do ya want for nothing?"
    code = hmac.digest(b"Jefe", message, "sha512")
    assert client.mac("rfc-4231-512", message) == code
    client.verify_mac("rfc-4231-512", message, code[:32])
    with pytest.raises(polyclave.Unauthentic):
        client.verify_mac("rfc-4231-512", b"another message", code)


def test_the_known_answer_of_cmac(client):
    """RFC 4493, section 4, example 2."""
    client.import_key("rfc-4493", bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"), modes=["cmac"])
    message = bytes.fromhex("6bc1bee22e409f96e93d7e117393172a")
    assert client.mac("rfc-4493", message).hex() == "070a16b46b4d4144f79bdd9dd04a287c"


def test_a_key_for_envelopes_makes_envelopes(verifying, tmp_path):
    with polyclave.Client(verifying) as client:
        key = client.generate("files", modes=["envelope"])
        enveloped = client.seal("files", LONG, header="quarterly report")
        told = polyclave.inspect(enveloped)
        assert (told["kind"], told["key_id"], told["header"]) == ("envelope", key.id, b"quarterly report")
        assert client.open("files", enveloped) == LONG
        into, opened = io.BytesIO(), io.BytesIO()
        client.seal_stream("files", io.BytesIO(LONG), into)
        assert polyclave.inspect(into.getvalue())["kind"] == "envelope"
        client.open_stream("files", io.BytesIO(into.getvalue()), opened)
        assert opened.getvalue() == LONG
        altered = bytearray(into.getvalue())
        altered[-1] ^= 1
        nothing = io.BytesIO()
        with pytest.raises(polyclave.Unauthentic):
            client.open_stream("files", io.BytesIO(altered), nothing)
        assert nothing.getvalue() == b""


def test_the_head_of_a_sealed_file_names_the_key(client, keys):
    key = client.key(keys("gcm"))
    assert polyclave.inspect(client.seal(key.name, b"")) == {"kind": "sealed", "key_id": key.id, "bound": False}
    assert polyclave.inspect(client.seal(key.name, b"", aad=b"row"))["bound"]
    with pytest.raises(polyclave.Misuse):
        polyclave.inspect(b"something else")
