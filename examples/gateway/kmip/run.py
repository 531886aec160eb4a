"""KMIP from Python (PyKMIP), on a gateway of Polyclave: keys are made, found, used, revoked and destroyed, in each version that PyKMIP speaks.

    python3 run.py HOST PORT CERTIFICATE KEY AUTHORITY PREFIX

CERTIFICATE and KEY are those of the client, AUTHORITY is the certificate of the gateway or of its authority. The program makes keys whose
names begin with PREFIX, and destroys them. It prints what was passed, and what was refused by design.
"""

import sys

from kmip.core import enums, objects
from kmip.core.exceptions import OperationFailure
from kmip.core.factories.attributes import AttributeFactory
from kmip.core.messages import payloads
from kmip.pie.client import ProxyKmipClient
from kmip.pie.exceptions import KmipOperationFailure
from kmip.pie.objects import SymmetricKey

VERSIONS = [enums.KMIPVersion.KMIP_1_2, enums.KMIPVersion.KMIP_1_3, enums.KMIPVersion.KMIP_1_4, enums.KMIPVersion.KMIP_2_0]
AES, TRIPLE_DES, HMAC = (getattr(enums.CryptographicAlgorithm, name) for name in ["AES", "TRIPLE_DES", "HMAC_SHA256"])
Reason = enums.ResultReason
attribute = AttributeFactory().create_attribute


class Trial:
    """What was tried in one version."""

    def __init__(self, client: ProxyKmipClient, version: enums.KMIPVersion, prefix: str) -> None:
        self.client, self.version = client, version
        self.prefix = f"{prefix}{version.name.lower().replace('_', '-')}-"
        self.lines: list[str] = []

    def passed(self, what: str) -> None:
        self.lines.append(f"{self.version.value}: {what}: passed")

    def refused(self, what: str, ask, *reasons: enums.ResultReason) -> None:
        try:
            ask()
        except (KmipOperationFailure, OperationFailure) as failure:
            assert failure.reason in reasons, (what, failure)
            self.lines.append(f"{self.version.value}: {what}: refused, {failure.reason.name}")
        else:
            sys.exit(f"{what} was not refused")

    def low_level(self, operation: enums.Operation, payload):
        """An operation whose members the simple client does not have."""
        return self.client.proxy.send_request_payload(operation, payload)

    def run(self) -> None:
        client = self.client
        client.proxy.discover_versions()
        told = client.proxy.query(query_functions=[enums.QueryFunction.QUERY_OPERATIONS])
        served = set(told.operations)
        assert enums.Operation.CREATE in served and enums.Operation.GET not in served, served
        self.passed("Discover Versions, Query")
        key = client.create(AES, 256, name=f"{self.prefix}aes")
        self.passed("Create")
        assert client.locate(attributes=[attribute(enums.AttributeType.NAME, f"{self.prefix}aes")]) == [key]
        kind = attribute(enums.AttributeType.CRYPTOGRAPHIC_ALGORITHM, AES)
        state = attribute(enums.AttributeType.STATE, enums.State.ACTIVE)
        assert key in client.locate(attributes=[kind, state, attribute(enums.AttributeType.OBJECT_TYPE, enums.ObjectType.SYMMETRIC_KEY)])
        self.passed("Locate")
        names = client.get_attribute_list(key)
        assert {"State", "Name", "Cryptographic Length"} <= set(names), names
        self.passed("Get Attribute List")
        self.get_attributes(key, names)
        client.activate(key)
        self.passed("Activate")
        gone = (Reason.PERMISSION_DENIED, Reason.NOT_EXTRACTABLE)
        self.refused("Get", lambda: client.get(key), *gone)
        own = SymmetricKey(AES, 128, bytes(16), name=f"{self.prefix}own")
        self.refused("Register", lambda: client.register(own), Reason.OPERATION_NOT_SUPPORTED)
        self.gcm(key)
        self.cbc()
        self.codes()
        wrong_state = (Reason.PERMISSION_DENIED, Reason.WRONG_KEY_LIFECYCLE_STATE)
        self.refused("Destroy of an active key", lambda: client.destroy(key), *wrong_state)
        client.revoke(enums.RevocationReasonCode.KEY_COMPROMISE, key, "somebody knows it", 6)
        _, attributes = client.get_attributes(key, ["State"])
        assert attributes[0].attribute_value.value == enums.State.COMPROMISED
        self.passed("Revoke")
        client.destroy(key)
        assert client.locate(attributes=[attribute(enums.AttributeType.NAME, f"{self.prefix}aes")]) == []
        self.passed("Destroy")

    def get_attributes(self, key: str, names: list[str]) -> None:
        if self.version >= enums.KMIPVersion.KMIP_2_0:
            # PyKMIP 0.11.0 cannot read this one.
            names = [name for name in names if name != "Extractable"]
        identifier, attributes = self.client.get_attributes(key, names)
        values = {one.attribute_name.value: one.attribute_value for one in attributes}
        assert identifier == key and set(values) == set(names), values
        assert values["State"].value == enums.State.ACTIVE
        assert values["Cryptographic Algorithm"].value == AES and values["Cryptographic Length"].value == 256
        assert values["Name"].name_value.value == f"{self.prefix}aes"
        self.passed("Get Attributes")

    def gcm(self, key: str) -> None:
        if self.version < enums.KMIPVersion.KMIP_1_4:
            # No member of a message has the tag.
            self.refused("Encrypt with AES-GCM", lambda: self.client.encrypt(b"boxes", key), Reason.FEATURE_NOT_SUPPORTED)
            return
        encrypted = self.low_level(
            enums.Operation.ENCRYPT,
            payloads.EncryptRequestPayload(unique_identifier=key, data=b"boxes", auth_additional_data=b"header"),
        )
        of_message = dict(
            unique_identifier=encrypted.unique_identifier,
            data=encrypted.data,
            iv_counter_nonce=encrypted.iv_counter_nonce,
            auth_tag=encrypted.auth_tag,
        )
        decrypt = lambda header: self.low_level(
            enums.Operation.DECRYPT, payloads.DecryptRequestPayload(auth_additional_data=header, **of_message)
        )
        assert decrypt(b"header").data == b"boxes"
        self.passed("Encrypt, Decrypt with AES-GCM")
        self.refused("Decrypt of altered data", lambda: decrypt(b"other"), Reason.CRYPTOGRAPHIC_FAILURE)

    def cbc(self) -> None:
        parameters = {"block_cipher_mode": enums.BlockCipherMode.CBC, "padding_method": enums.PaddingMethod.PKCS5}
        for name, algorithm, bits in [("3des", TRIPLE_DES, 192), ("cbc", AES, 128)]:
            key = self.made(name, algorithm, bits, [enums.CryptographicUsageMask.ENCRYPT, enums.CryptographicUsageMask.DECRYPT])
            data, vector = self.client.encrypt(b"boxes", key, parameters)
            assert self.client.decrypt(data, key, parameters, vector) == b"boxes"
            self.end(key)
        self.passed("Encrypt, Decrypt with CBC of AES and 3DES")

    def codes(self) -> None:
        key = self.made("hmac", HMAC, 512, [enums.CryptographicUsageMask.MAC_GENERATE])
        identifier, code = self.client.mac(b"boxes", key, HMAC)
        assert identifier == key and len(code) == 32
        self.passed("MAC with HMAC-SHA256")
        self.end(key)

    def made(self, name: str, algorithm, bits: int, uses: list[enums.CryptographicUsageMask]) -> str:
        """A key for CBC, or for codes."""
        attributes = [
            attribute(enums.AttributeType.CRYPTOGRAPHIC_ALGORITHM, algorithm),
            attribute(enums.AttributeType.CRYPTOGRAPHIC_LENGTH, bits),
            attribute(enums.AttributeType.CRYPTOGRAPHIC_USAGE_MASK, uses),
            attribute(enums.AttributeType.NAME, self.prefix + name),
        ]
        if algorithm != HMAC:
            cbc = {"block_cipher_mode": enums.BlockCipherMode.CBC}
            attributes.append(attribute(enums.AttributeType.CRYPTOGRAPHIC_PARAMETERS, cbc))
        template = objects.TemplateAttribute(attributes=attributes)
        result = self.client.proxy.create(enums.ObjectType.SYMMETRIC_KEY, template)
        assert result.result_status.value == enums.ResultStatus.SUCCESS, result.result_message
        return result.uuid

    def end(self, key: str) -> None:
        self.client.revoke(enums.RevocationReasonCode.CESSATION_OF_OPERATION, key)
        self.client.destroy(key)


def main(host: str, port: str, certificate: str, key: str, authority: str, prefix: str) -> None:
    for version in VERSIONS:
        with ProxyKmipClient(host, int(port), certificate, key, authority, kmip_version=version) as client:
            trial = Trial(client, version, prefix)
            try:
                trial.run()
            finally:
                print("\n".join(trial.lines))
    print("python: all of it went as it should")


main(*sys.argv[1:])
