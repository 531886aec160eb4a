"""Values and numbers of cards that become tokens, and come back."""

import asyncio
import traceback

import pytest

import polyclave
import polyclave.aio

#: A number that card schemes publish for tests.
CARD = "4111111111111111"
#: The key of the samples that NIST publishes for FF1 with AES-128.
SAMPLES = bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c")


@pytest.fixture(scope="module")
def key(cluster):
    with polyclave.Client(cluster) as client:
        return client.generate("tokens", modes=["ff1"]).name


def passes_luhn(number):
    digits = [int(digit) for digit in reversed(number)]
    return sum(sum(divmod(2 * digit, 10)) if at % 2 else digit for at, digit in enumerate(digits)) % 10 == 0


def test_a_key_for_ff1_is_for_tokens_alone(client, key):
    assert (client.key(key).modes, client.key(key).usage) == (("ff1",), ("tokenize",))
    assert client.generate("tokens-by-usage", usage=["tokenize"]).modes == ("ff1",)
    for ask in (client.encrypt, client.decrypt):
        with pytest.raises(polyclave.Misuse, match="ff1 for tokenize"):
            ask(key, bytes(16), mode="ff1")


def test_samples_of_nist_come_out(client):
    """SP 800-38G, samples 1, 2 and 3 of FF1."""
    client.import_key("sp-800-38g", SAMPLES, modes=["ff1"])
    letters = "0123456789abcdefghijklmnopqrstuvwxyz"
    for value, token, how in [
        ("0123456789", "2433477484", {}),
        ("0123456789", "6124200773", {"tweak": bytes.fromhex("39383736353433323130")}),
        ("0123456789abcdefghi", "a9tv40mll9kdu509eum", {"tweak": b"7777pqrs777", "radix": 36}),
        ("0123456789abcdefghi", "a9tv40mll9kdu509eum", {"tweak": bytearray(b"7777pqrs777"), "alphabet": letters}),
    ]:
        assert client.tokenize("sp-800-38g", value, **how) == token
        assert client.detokenize("sp-800-38g", token, **how) == value


def test_a_string_gives_a_string_and_a_sequence_a_list_in_its_order(client, key):
    values = ["4929123456", "0000000", "4929123457", "1234567", "4929123456"]
    tokens = client.tokenize(key, values)
    assert isinstance(tokens, list)
    assert [len(token) for token in tokens] == [len(value) for value in values]
    assert tokens == [client.tokenize(key, value) for value in values] == client.tokenize(key, tuple(values))
    assert tokens[0] == tokens[4] != tokens[2]
    assert client.detokenize(key, tokens) == values
    assert client.tokenize(key, values[:1]) == tokens[:1]
    assert client.tokenize(key, []) == []


def test_a_thousand_values_are_one_request(client):
    """A key pays ten blocks for each value, and one for each request."""
    values = [f"{i:08}" for i in range(1000)]
    client.generate("exact", modes=["ff1"], budget=10 * 1000 + 1)
    tokens = client.tokenize("exact", values)
    assert len(set(tokens)) == 1000
    assert all(len(token) == 8 and token.isdecimal() for token in tokens)
    with pytest.raises(polyclave.BudgetSpent):
        client.tokenize("exact", values[0])


def test_a_thousand_tokens_come_back_in_order(client, key):
    values = [f"{i * 7919 % 10**8:08}" for i in range(1000)]
    assert client.detokenize(key, client.tokenize(key, values)) == values


def test_another_tweak_or_version_gives_another_token(client):
    client.generate("turned-tokens", modes=["ff1"])
    value = "4929123456789012"
    token = client.tokenize("turned-tokens", value, tweak=b"shop")
    assert token != client.tokenize("turned-tokens", value)
    client.rotate("turned-tokens")
    assert client.tokenize("turned-tokens", value, tweak=b"shop") != token
    assert client.detokenize("turned-tokens@1", token, tweak=b"shop") == value


def test_other_characters_stay_in_place_if_that_is_said(client, key):
    value = "+49 171 1234567"
    token = client.tokenize(key, value, keep_others=True)
    assert token != value
    assert [c for c in token if not c.isdecimal()] == list("+  ") and (token[0], token[3], token[7]) == ("+", " ", " ")
    assert client.detokenize(key, token, keep_others=True) == value
    greek = client.tokenize(key, "αβγδεαβγδε", alphabet="αβγδε")
    assert set(greek) <= set("αβγδε")
    assert client.detokenize(key, greek, alphabet="αβγδε") == "αβγδεαβγδε"


@pytest.mark.parametrize(
    "value, how, told",
    [
        ("98765", {}, "value 2: .*1000000"),
        ("9876-54321", {}, "value 2: its character number 5"),
        ("98765x4321", {"radix": 16}, "value 2: its character number 6"),
        ("9" * 57, {}, "value 2: .*too long"),
        ("9876543210", {"tweak": bytes(65)}, "value 1: a tweak of 65 bytes"),
        ("9876543210", {"radix": 37}, "2 to 36, not 37"),
        ("9876543210", {"alphabet": "0"}, "2 to 36 characters, not 1"),
        ("9876543210", {"alphabet": "01230"}, "twice"),
        ("9876543210", {"radix": 10, "alphabet": "0123456789"}, "radix or alphabet"),
        ("98765\ud8004321", {}, "surrogate"),
    ],
    ids=["short", "outside", "radix", "long", "tweak", "radix-37", "one", "twice", "both", "surrogate"],
)
def test_what_is_no_value_is_refused_without_showing_it(client, key, value, how, told):
    for ask in (client.tokenize, client.detokenize):
        with pytest.raises(polyclave.Misuse, match=told) as raised:
            ask(key, ["1234567890", value], **how)
        shown = "".join(traceback.format_exception_only(type(raised.value), raised.value))
        assert "9876" not in shown and "1234567890" not in shown
        assert raised.value.__context__ is None and raised.value.__cause__ is None


@pytest.mark.parametrize("values", [b"1234567890", 1234567890, [1234567890], ["1234567890", None], None], ids=str)
def test_what_is_no_text_is_a_type_error(client, key, values):
    with pytest.raises(TypeError) as raised:
        client.tokenize(key, values)
    assert "1234567890" not in str(raised.value)


def test_a_key_for_something_else_makes_no_tokens(client, keys):
    with pytest.raises(polyclave.NotForThis):
        client.tokenize(keys("gcm"), "1234567890")
    with pytest.raises(polyclave.NotForThis):
        client.detokenize_cards(keys("gcm"), CARD)
    with pytest.raises(polyclave.NoSuchKey):
        client.tokenize("nobody", ["1234567890"])


def test_numbers_of_cards_keep_their_first_and_last_digits(client, key):
    written = "5500 0055-5555 5559"
    tokens = client.tokenize_cards(key, [CARD, written])
    assert tokens[0][:6] == CARD[:6] and tokens[0][-4:] == CARD[-4:]
    assert tokens[1][:7] == "5500 00" and tokens[1][-4:] == "5559"
    assert [c for c in tokens[1] if not c.isdecimal()] == [" ", "-", " "]
    assert client.detokenize_cards(key, tokens) == [CARD, written]
    fewer = client.tokenize_cards(key, CARD, keep_first=0, keep_last=2, tweak=b"shop")
    assert fewer[-2:] == CARD[-2:]
    assert client.detokenize_cards(key, fewer, keep_first=0, keep_last=2, tweak=b"shop") == CARD


def test_with_luhn_all_tokens_pass_the_test(client, key):
    how = {"keep_first": 5, "luhn": True}
    numbers = [number for number in (f"41111{i:07}1111" for i in range(0, 2000)) if passes_luhn(number)]
    assert len(numbers) == 200
    tokens = client.tokenize_cards(key, numbers, **how)
    assert all(map(passes_luhn, tokens)) and len(set(tokens)) == 200
    assert all((token[:5], token[-4:]) == ("41111", "1111") for token in tokens)
    assert client.detokenize_cards(key, tokens, **how) == numbers
    # Without it one in ten passes by chance, and not all do.
    assert not all(map(passes_luhn, client.tokenize_cards(key, numbers, keep_first=5)))


@pytest.mark.parametrize(
    "number, how, told",
    [
        ("4111111111111112", {"keep_first": 5, "luhn": True}, "check digit"),
        (CARD, {"luhn": True}, "5 would be free"),
        (CARD, {"keep_last": 5}, "5 would be free"),
        ("41111111111", {}, "12 to 19 digits"),
        ("4111x11111111111", {}, "digits, spaces and hyphens"),
    ],
    ids=["check", "luhn", "free", "short", "letters"],
)
def test_what_is_no_number_of_a_card_is_refused_without_showing_it(client, key, number, how, told):
    for ask in (client.tokenize_cards, client.detokenize_cards):
        with pytest.raises(polyclave.Misuse, match=told) as raised:
            ask(key, number, **how)
        assert number not in str(raised.value)


def test_asyncio_has_the_same(cluster, key):
    async def work():
        async with polyclave.aio.Client(cluster) as client:
            token, cards = await asyncio.gather(
                client.tokenize(key, "4929123456", tweak=b"shop"), client.tokenize_cards(key, [CARD])
            )
            assert await client.detokenize(key, token, tweak=b"shop") == "4929123456"
            assert await client.detokenize_cards(key, cards) == [CARD]
            with pytest.raises(polyclave.Misuse):
                await client.tokenize(key, "1")

    asyncio.run(work())
