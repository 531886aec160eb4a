"""usage: run.py MODULE TOKEN PIN     encrypts and decrypts with python-pkcs11 (pip install python-pkcs11==0.10.1), under new keys of the nodes."""

import secrets
import sys

import pkcs11
from pkcs11 import Attribute, KeyType, Mechanism, MechanismFlag


def main(module, token_label, pin):
    token = pkcs11.lib(module).get_token(token_label=token_label)
    with token.open(user_pin=pin, rw=True) as session:
        label = f"python-{secrets.token_hex(4)}"
        key = session.generate_key(
            KeyType.AES, 256, label=label, store=True,
            capabilities=MechanismFlag.ENCRYPT | MechanismFlag.DECRYPT,
        )
        assert session.get_key(label=label)[Attribute.SENSITIVE]
        try:
            iv = session.generate_random(128)
            sealed = key.encrypt(b"a secret of python", mechanism_param=iv)
            assert key.decrypt(sealed, mechanism_param=iv) == b"a secret of python"
            # Nobody can read it.
            try:
                key[Attribute.VALUE]
                raise AssertionError("the key was given away")
            except pkcs11.AttributeSensitive:
                pass
        finally:
            key.destroy()
        # A key of this session, with everything that python-pkcs11 asks for if nothing is said.
        short = session.generate_key(KeyType.AES, 128)
        tag = short.sign(b"message", mechanism=Mechanism.AES_CMAC)
        assert short.verify(b"message", tag, mechanism=Mechanism.AES_CMAC)
        assert not short.verify(b"another", tag, mechanism=Mechanism.AES_CMAC)
    print("python: the secret came back")


main(*sys.argv[1:])
