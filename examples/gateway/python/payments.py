"""AWS Payment Cryptography's client (boto3), unchanged, on a gateway of Polyclave: a PIN is verified, translated and chosen, a card's value made and verified.

    AWS_ACCESS_KEY_ID=.. AWS_SECRET_ACCESS_KEY=.. AWS_REGION=eu-central-1 python3 payments.py http://127.0.0.1:8200

It takes keys with test values: `pay-pin` and `pay-pin-2` for PINs, `pay-pvv` and `pay-cvv` for the values of cards, and `pay-mac` for codes.
"""

import os
import sys

import boto3

PAN = "1122334455667788"
FORMAT_0 = {"IsoFormat0": {"PrimaryAccountNumber": PAN}}


def main(endpoint: str) -> None:
    client = boto3.client("payment-cryptography-data", endpoint_url=endpoint)

    # A random PIN. Its clear value is in no place; what verifies it is in the answer.
    made = client.generate_pin_data(
        GenerationKeyIdentifier="alias/pay-pvv",
        EncryptionKeyIdentifier="alias/pay-pin",
        PrimaryAccountNumber=PAN,
        PinBlockFormat="ISO_FORMAT_0",
        GenerationAttributes={"VisaPin": {"PinVerificationKeyIndex": 3}},
    )
    block, value = made["EncryptedPinBlock"], made["PinData"]["VerificationValue"]

    # The same PIN, as a terminal of another zone would send it.
    moved = client.translate_pin_data(
        IncomingKeyIdentifier="alias/pay-pin",
        OutgoingKeyIdentifier="alias/pay-pin-2",
        IncomingTranslationAttributes=FORMAT_0,
        OutgoingTranslationAttributes=FORMAT_0,
        EncryptedPinBlock=block,
    )

    def verify(block: str, key: str, value: str) -> dict:
        return client.verify_pin_data(
            VerificationKeyIdentifier="alias/pay-pvv",
            EncryptionKeyIdentifier=key,
            PrimaryAccountNumber=PAN,
            PinBlockFormat="ISO_FORMAT_0",
            EncryptedPinBlock=block,
            VerificationAttributes={"VisaPin": {"PinVerificationKeyIndex": 3, "VerificationValue": value}},
        )

    verify(block, "alias/pay-pin", value)
    shown = verify(moved["PinBlock"], "alias/pay-pin-2", value)
    assert shown["EncryptionKeyArn"] == moved["KeyArn"]
    # The ARN names the version of the key.
    verify(moved["PinBlock"], moved["KeyArn"], value)

    card = {"CardVerificationValue1": {"CardExpiryDate": "8701", "ServiceCode": "101"}}
    of_card = {"KeyIdentifier": "alias/pay-cvv", "PrimaryAccountNumber": "4123456789012345"}
    cvv = client.generate_card_validation_data(GenerationAttributes=card, **of_card)["ValidationData"]
    client.verify_card_validation_data(VerificationAttributes=card, ValidationData=cvv, **of_card)

    message = {"KeyIdentifier": "alias/pay-mac", "MessageData": "00010203"}
    algorithm = {"Algorithm": "ISO9797_ALGORITHM3"}
    mac = client.generate_mac(GenerationAttributes=algorithm, **message)["Mac"]
    client.verify_mac(VerificationAttributes=algorithm, Mac=mac, **message)

    errors = client.exceptions
    other = f"{(int(value) + 1) % 10_000:04}"
    for wrong, expected, says in [
        (lambda: verify(block, "alias/pay-pin", other), errors.VerificationFailedException, "INVALID_PIN"),
        (lambda: verify(block, "alias/pay-pin-2", value), errors.VerificationFailedException, "INVALID_PIN"),
        (lambda: verify(block, "alias/pay-cvv", value), errors.ValidationException, ""),
        (lambda: verify(block, "alias/no-such-key", value), errors.ResourceNotFoundException, ""),
    ]:
        try:
            wrong()
        except expected as error:
            assert error.response.get("Reason", "") == says, error.response
            continue
        sys.exit("it was not refused")

    stranger = boto3.client(
        "payment-cryptography-data",
        endpoint_url=endpoint,
        aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key="x" * 40,
    )
    try:
        stranger.generate_mac(GenerationAttributes=algorithm, **message)
    except stranger.exceptions.ClientError as error:
        assert error.response["Error"]["Code"] == "SignatureDoesNotMatch", error.response
    else:
        sys.exit("another secret was taken")
    print("python: the PIN was verified, and nobody saw it")


main(sys.argv[1])
