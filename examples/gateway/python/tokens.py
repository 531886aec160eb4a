"""Tokens of e-mail addresses through hvac's transform engine, from a gateway of Polyclave.

    VAULT_ADDR=http://127.0.0.1:8200 VAULT_TOKEN=.. python3 tokens.py ROLE

The role needs a transformation `email` with the template `builtin/email` and `tweak_source = "internal"`.
"""

import sys

import hvac


def main(role: str) -> None:
    transform = hvac.Client().secrets.transform
    value = "jane.doe@example.org"
    token = transform.encode(role_name=role, value=value, transformation="email")["data"]["encoded_value"]
    assert token != value and token.endswith("@example.org")
    decoded = transform.decode(role_name=role, value=token, transformation="email")["data"]["decoded_value"]
    assert decoded == value

    items = [{"value": f"user{n}@example.org", "transformation": "email"} for n in range(5)]
    results = transform.encode(role_name=role, batch_input=items)["data"]["batch_results"]
    tokens = [{"value": result["encoded_value"], "transformation": "email"} for result in results]
    results = transform.decode(role_name=role, batch_input=tokens)["data"]["batch_results"]
    assert [result["decoded_value"] for result in results] == [item["value"] for item in items]

    try:
        transform.encode(role_name=role, value="no address", transformation="email")
    except hvac.exceptions.InvalidRequest:
        print("python: the values came back")
    else:
        sys.exit("it was not refused")


main(sys.argv[1])
