"""Payment commands, as dictionaries and as text."""

import json

import pytest

import polyclave

#: Public test keys.
PIN_KEY = bytes.fromhex("00112233445566778899aabbccddeeff")
PVV_KEY = bytes.fromhex("0123456789abcdeffedcba9876543210")
#: The PIN 4524 in format 0 under the PIN key.
BLOCK = "2d2399c6fc0fb12b"


@pytest.fixture(scope="module")
def keys(cluster):
    with polyclave.Client(cluster) as client:
        client.import_key("py-pins", PIN_KEY, cipher="3des-ede2", usage=["pin-encryption"])
        client.import_key("py-pvv", PVV_KEY, cipher="3des-ede2", usage=["pin-verification-visa"])
        return ["py-pins", "py-pvv"]


def verify(value):
    pin = {"format": "iso0", "block": BLOCK, "key": "direct"}
    reference = {"visa": {"index": 3, "value": value}}
    return {"verify-pin": {"pan": "1122334455667788", "pin": pin, "reference": reference}}


def test_a_pin_is_verified(client, keys):
    assert client.key("py-pvv").usage == ("pin-verification-visa",)
    assert client.pay(keys, verify("4021")) == b""
    assert client.pay(keys, verify("4022")) is None
    assert client.pay(keys, json.dumps(verify("4021"))) == b""
    assert client.pay_all(keys, [verify("4021"), verify("4022")]) == [b"", None]


def test_an_answer_is_bytes(client, keys):
    outgoing = {"format": "iso0", "key": "direct"}
    incoming = verify("4021")["verify-pin"]["pin"]
    command = {"incoming": incoming, "pan": "1122334455667788", "outgoing": outgoing}
    assert client.pay(["py-pins", "py-pins"], {"translate-pin": command}) == bytes.fromhex(BLOCK)


def test_what_is_no_command_is_refused(client, keys):
    for wrong in ({"verify-pin": {}}, {"no-such-command": {}}, "{", verify("402x")):
        with pytest.raises(polyclave.Misuse, match="no payment command"):
            client.pay(keys, wrong)
    with pytest.raises(polyclave.Misuse):
        client.pay(keys[::-1], verify("4021"))
