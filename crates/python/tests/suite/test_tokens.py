"""Tokens: values of one format for others of the same, and back."""

import asyncio

import polyclave
import polyclave.aio
import pytest

#: The key of the samples of SP 800-38G for FF1-AES128.
SAMPLES = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")


@pytest.fixture(scope="session")
def key(cluster):
    with polyclave.Client(cluster) as client:
        client.import_key("tokens", SAMPLES, modes=["ff1"])
    return "tokens"


@pytest.mark.parametrize(
    ("value", "tweak", "options", "token"),
    [
        ("0123456789", None, {}, "2433477484"),
        ("0123456789", bytes.fromhex("39383736353433323130"), {}, "6124200773"),
        ("0123456789abcdefghi", bytes.fromhex("3737373770717273373737"), {"radix": 36}, "a9tv40mll9kdu509eum"),
    ],
)
def test_the_samples_of_the_standard(client, key, value, tweak, options, token):
    assert client.tokenize(key, value, tweak=tweak, **options) == token
    assert client.detokenize(key, token, tweak=tweak, **options) == value


def test_many_values_are_one_request_and_keep_their_order(client, key):
    values = [f"{n:08}" for n in range(1000)]
    tokens = client.tokenize(key, values)
    assert len(set(tokens)) == 1000 and tokens[:1] == [client.tokenize(key, values[0])]
    assert client.detokenize(key, tokens) == values
    assert client.tokenize(key, []) == []


def test_other_characters_stay_where_they_are_if_asked(client, key):
    token = client.tokenize(key, "+49 171 1234567", keep_others=True)
    assert (token[0], token[3], token[7]) == ("+", " ", " ") and token != "+49 171 1234567"
    assert client.detokenize(key, token, keep_others=True) == "+49 171 1234567"
    with pytest.raises(polyclave.Misuse, match="not in the alphabet"):
        client.tokenize(key, "+49 171 1234567")


def test_cards_keep_their_ends_and_their_check_digit(client, key):
    token = client.tokenize_cards(key, "4111 1111 1111 1111")
    assert token[:7] == "4111 11" and token[-4:] == "1111" and len(token) == 19
    assert client.detokenize_cards(key, token) == "4111 1111 1111 1111"
    checked = client.tokenize_cards(key, ["4111111111111111"], keep_last=3, luhn=True)
    digits = [int(digit) for digit in checked[0]]
    assert sum(digits[1::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[::2]) in range(0, 200, 10)
    assert client.detokenize_cards(key, checked, keep_last=3, luhn=True) == ["4111111111111111"]


@pytest.mark.parametrize(
    ("value", "options"),
    [("12345", {}), ("1234567", {"radix": 37}), ("1234567", {"alphabet": "1123"}), ("1234567", {"tweak": bytes(65)})],
    ids=str,
)
def test_what_is_impossible_is_a_value_error(client, key, value, options):
    with pytest.raises(polyclave.Misuse) as raised:
        client.tokenize(key, value, **options)
    assert isinstance(raised.value, ValueError) and value not in str(raised.value)


def test_only_keys_for_ff1_make_tokens(client, keys):
    with pytest.raises(polyclave.NotForThis):
        client.tokenize(keys("gcm"), "1234567")


def test_tokens_for_asyncio(cluster, key):
    async def there_and_back():
        async with polyclave.aio.Client(cluster) as client:
            token = await client.tokenize(key, "0123456789")
            return token, await client.detokenize(key, [token])

    assert asyncio.run(there_and_back()) == ("2433477484", ["0123456789"])
