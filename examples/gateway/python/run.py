"""Vault's transit engine from Python (hvac), on a gateway of Polyclave: a data key, messages, a rotation, contexts, and the end of a key.

    VAULT_ADDR=http://127.0.0.1:8200 VAULT_TOKEN=.. python3 run.py KEY

KEY is a name that no key has: the program makes this key, and deletes it at its end.
"""

import base64
import os
import sys

import hvac


def main(key: str) -> None:
    client = hvac.Client(url=os.environ["VAULT_ADDR"], token=os.environ["VAULT_TOKEN"])
    assert client.is_authenticated()
    assert not client.sys.read_health_status(method="GET")["sealed"]
    transit = client.secrets.transit

    # `create_key` does nothing for a key that is there, and what is deleted below would be that key.
    try:
        transit.read_key(name=key)
    except hvac.exceptions.InvalidPath:
        pass
    else:
        sys.exit(f"there is already a key {key}, and this program would delete it; give it a name that no key has")
    transit.create_key(name=key)
    assert key in transit.list_keys()["data"]["keys"]
    plaintext = base64.b64encode(b"a secret that is worth keeping").decode()
    ciphertext = transit.encrypt_data(name=key, plaintext=plaintext)["data"]["ciphertext"]
    assert transit.decrypt_data(name=key, ciphertext=ciphertext)["data"]["plaintext"] == plaintext

    items = [{"plaintext": base64.b64encode(bytes([i])).decode()} for i in range(5)]
    results = transit.encrypt_data(name=key, plaintext="", batch_input=items)["data"]["batch_results"]
    results = transit.decrypt_data(name=key, ciphertext="", batch_input=results)["data"]["batch_results"]
    assert [result["plaintext"] for result in results] == [item["plaintext"] for item in items]

    transit.rotate_key(name=key)
    ciphertext = transit.rewrap_data(name=key, ciphertext=ciphertext)["data"]["ciphertext"]
    assert ciphertext.startswith("vault:v2:")
    transit.update_key_configuration(name=key, min_decryption_version=2)
    assert transit.decrypt_data(name=key, ciphertext=ciphertext)["data"]["plaintext"] == plaintext

    data_key = transit.generate_data_key(name=key, key_type="plaintext")["data"]
    shown = transit.decrypt_data(name=key, ciphertext=data_key["ciphertext"])["data"]["plaintext"]
    assert shown == data_key["plaintext"]
    assert len(base64.b64decode(transit.generate_random_bytes(n_bytes=24)["data"]["random_bytes"])) == 24
    digest = transit.hash_data(hash_input=plaintext, algorithm="sha2-256")["data"]["sum"]
    assert len(digest) == 64

    for wrong, expected in [
        (lambda: transit.decrypt_data(name=key, ciphertext="vault:v9:AAAA"), hvac.exceptions.InvalidRequest),
        (lambda: transit.export_key(name=key, key_type="encryption-key"), hvac.exceptions.InvalidRequest),
        (lambda: transit.delete_key(name=key), hvac.exceptions.InvalidRequest),
        (lambda: transit.read_key(name="no-such-key"), hvac.exceptions.InvalidPath),
    ]:
        try:
            wrong()
        except expected:
            continue
        sys.exit("it was not refused")

    transit.update_key_configuration(name=key, deletion_allowed=True)
    transit.delete_key(name=key)
    contexts(transit, key)
    print("python: the messages came back")


def contexts(transit, key: str) -> None:
    """Equal messages of one context have equal ciphertexts. The first encryption makes the key."""
    found = {"context": base64.b64encode(b"city").decode()}
    plaintext = base64.b64encode(b"to be found again").decode()
    asked = {"name": key, "plaintext": plaintext, "convergent_encryption": True, **found}
    ciphertext = transit.encrypt_data(**asked)["data"]["ciphertext"]
    assert transit.encrypt_data(**asked)["data"]["ciphertext"] == ciphertext
    assert transit.decrypt_data(name=key, ciphertext=ciphertext, **found)["data"]["plaintext"] == plaintext
    properties = transit.read_key(name=key)["data"]
    assert properties["derived"] and properties["convergent_encryption"]
    for other in [{}, {"context": base64.b64encode(b"town").decode()}]:
        try:
            transit.decrypt_data(name=key, ciphertext=ciphertext, **other)
        except hvac.exceptions.InvalidRequest:
            continue
        sys.exit("it was decrypted under another context")
    transit.rotate_key(name=key)
    ciphertext = transit.rewrap_data(name=key, ciphertext=ciphertext, **found)["data"]["ciphertext"]
    transit.update_key_configuration(name=key, min_decryption_version=2, deletion_allowed=True)
    transit.trim_key(name=key, min_version=2)
    assert transit.read_key(name=key)["data"]["min_available_version"] == 2
    assert transit.decrypt_data(name=key, ciphertext=ciphertext, **found)["data"]["plaintext"] == plaintext
    transit.delete_key(name=key)


main(sys.argv[1])
