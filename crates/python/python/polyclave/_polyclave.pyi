from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Optional, Protocol, Union, final, overload

from typing_extensions import Buffer, Self

from .types import Key, NodeStatus

Path = Union[str, PathLike[str]]
Mode = Literal["gcm", "ctr", "cbc", "cmac", "ecb", "envelope", "tr31", "siv", "ccm", "ff1", "gcm-siv", "xaes", "hmac"]
PlainMode = Literal["gcm", "ctr", "cbc", "ecb", "siv", "ccm", "gcm-siv", "xaes"]
CheckKind = Literal["cmac", "zeros"]
SealMode = Literal["gcm", "envelope"]
#: Called with the number of bytes that are done.
Progress = Callable[[int], object]
#: A usage, or a purpose of payments such as "pin-encryption".
Usage = Union[Literal["encrypt", "decrypt", "mac", "wrap", "unwrap", "derive", "kdf", "tokenize"], str]

class Reader(Protocol):
    def read(self, size: int, /) -> Buffer: ...

class Writer(Protocol):
    def write(self, data: bytes, /) -> Optional[int]: ...

__VERSION__: str

def inspect(data: Buffer) -> dict[str, Any]: ...
@final
class Client:
    def __new__(cls, dir: Optional[Path] = None) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        raised: Optional[BaseException],
        trace: Optional[TracebackType],
        /,
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def protocol(self) -> str: ...
    @property
    def nodes(self) -> list[str]: ...
    def close(self) -> None: ...
    def status(self) -> list[NodeStatus]: ...
    def random(self, count: int) -> bytes: ...
    def keys(self) -> list[Key]: ...
    def key(self, name: str) -> Key: ...
    def versions(self, name: str) -> list[Key]: ...
    def check(self, name: str, *, version: Optional[int] = None, by: CheckKind = "cmac") -> bytes: ...
    def generate(
        self,
        name: str,
        *,
        cipher: str = "aes-128",
        modes: Optional[Sequence[Mode]] = None,
        usage: Optional[Sequence[Usage]] = None,
        budget: Optional[int] = None,
        label: str = "",
        wrappable: bool = False,
        caller_nonces: bool = False,
        expires: Optional[datetime] = None,
        session: Optional[int] = None,
    ) -> Key: ...
    def import_key(
        self,
        name: str,
        material: Buffer,
        *,
        cipher: str = "aes-128",
        modes: Optional[Sequence[Mode]] = None,
        usage: Optional[Sequence[Usage]] = None,
        budget: Optional[int] = None,
        label: str = "",
        wrappable: bool = False,
        caller_nonces: bool = False,
        expires: Optional[datetime] = None,
        session: Optional[int] = None,
    ) -> Key: ...
    def rotate(self, name: str) -> Key: ...
    def delete(self, name: str, *, version: Optional[int] = None) -> None: ...
    def seal(
        self,
        key: str,
        data: Buffer,
        *,
        aad: Optional[Buffer] = None,
        mode: Optional[SealMode] = None,
        header: Optional[str] = None,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    def seal_file(
        self,
        key: str,
        source: Path,
        target: Path,
        *,
        aad: Optional[Buffer] = None,
        mode: Optional[SealMode] = None,
        header: Optional[str] = None,
        replace: bool = False,
        progress: Optional[Progress] = None,
    ) -> int: ...
    def seal_stream(
        self,
        key: str,
        reader: Reader,
        writer: Writer,
        *,
        aad: Optional[Buffer] = None,
        mode: Optional[SealMode] = None,
        header: Optional[str] = None,
        progress: Optional[Progress] = None,
    ) -> int: ...
    def open(
        self,
        key: str,
        sealed: Buffer,
        *,
        aad: Optional[Buffer] = None,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    def open_file(
        self,
        key: str,
        source: Path,
        target: Path,
        *,
        aad: Optional[Buffer] = None,
        replace: bool = False,
        progress: Optional[Progress] = None,
    ) -> int: ...
    def open_stream(
        self,
        key: str,
        reader: Reader,
        writer: Writer,
        *,
        aad: Optional[Buffer] = None,
        progress: Optional[Progress] = None,
    ) -> int: ...
    def encrypt(
        self,
        key: str,
        data: Buffer,
        *,
        mode: PlainMode = "gcm",
        aad: Union[Buffer, Sequence[Buffer], None] = None,
        nonce: Optional[Buffer] = None,
        tag_bytes: int = 16,
        tweak: Optional[Buffer] = None,
        padding: bool = True,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    def encrypt_file(
        self,
        key: str,
        source: Path,
        target: Path,
        *,
        mode: PlainMode = "gcm",
        aad: Union[Buffer, Sequence[Buffer], None] = None,
        nonce: Optional[Buffer] = None,
        tag_bytes: int = 16,
        tweak: Optional[Buffer] = None,
        padding: bool = True,
        replace: bool = False,
        progress: Optional[Progress] = None,
    ) -> int: ...
    def encrypt_stream(
        self,
        key: str,
        reader: Reader,
        writer: Writer,
        *,
        mode: PlainMode = "gcm",
        aad: Union[Buffer, Sequence[Buffer], None] = None,
        nonce: Optional[Buffer] = None,
        tag_bytes: int = 16,
        tweak: Optional[Buffer] = None,
        padding: bool = True,
        progress: Optional[Progress] = None,
    ) -> int: ...
    def decrypt(
        self,
        key: str,
        data: Buffer,
        *,
        mode: PlainMode = "gcm",
        aad: Union[Buffer, Sequence[Buffer], None] = None,
        nonce_bytes: Optional[int] = None,
        tag_bytes: int = 16,
        tweak: Optional[Buffer] = None,
        padding: bool = True,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    def decrypt_file(
        self,
        key: str,
        source: Path,
        target: Path,
        *,
        mode: PlainMode = "gcm",
        aad: Union[Buffer, Sequence[Buffer], None] = None,
        nonce_bytes: Optional[int] = None,
        tag_bytes: int = 16,
        tweak: Optional[Buffer] = None,
        padding: bool = True,
        replace: bool = False,
        progress: Optional[Progress] = None,
    ) -> int: ...
    def decrypt_stream(
        self,
        key: str,
        reader: Reader,
        writer: Writer,
        *,
        mode: PlainMode = "gcm",
        aad: Union[Buffer, Sequence[Buffer], None] = None,
        nonce_bytes: Optional[int] = None,
        tag_bytes: int = 16,
        tweak: Optional[Buffer] = None,
        padding: bool = True,
        progress: Optional[Progress] = None,
    ) -> int: ...
    def mac(
        self,
        key: str,
        data: Buffer,
        *,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    def mac_file(
        self,
        key: str,
        source: Path,
        *,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    def mac_stream(
        self,
        key: str,
        reader: Reader,
        *,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    def verify_mac(self, key: str, data: Buffer, code: Buffer) -> None: ...
    def pay(
        self, keys: Sequence[str], command: Union[str, Mapping[str, Any]]
    ) -> Optional[bytes]: ...
    def pay_all(
        self, keys: Sequence[str], commands: Sequence[Union[str, Mapping[str, Any]]]
    ) -> list[Optional[bytes]]: ...
    @overload
    def tokenize(
        self,
        key: str,
        values: str,
        *,
        radix: Optional[int] = None,
        alphabet: Optional[str] = None,
        keep_others: bool = False,
        tweak: Optional[Buffer] = None,
    ) -> str: ...
    @overload
    def tokenize(
        self,
        key: str,
        values: Union[list[str], tuple[str, ...]],
        *,
        radix: Optional[int] = None,
        alphabet: Optional[str] = None,
        keep_others: bool = False,
        tweak: Optional[Buffer] = None,
    ) -> list[str]: ...
    @overload
    def detokenize(
        self,
        key: str,
        tokens: str,
        *,
        radix: Optional[int] = None,
        alphabet: Optional[str] = None,
        keep_others: bool = False,
        tweak: Optional[Buffer] = None,
    ) -> str: ...
    @overload
    def detokenize(
        self,
        key: str,
        tokens: Union[list[str], tuple[str, ...]],
        *,
        radix: Optional[int] = None,
        alphabet: Optional[str] = None,
        keep_others: bool = False,
        tweak: Optional[Buffer] = None,
    ) -> list[str]: ...
    @overload
    def tokenize_cards(
        self,
        key: str,
        numbers: str,
        *,
        keep_first: int = 6,
        keep_last: int = 4,
        luhn: bool = False,
        tweak: Optional[Buffer] = None,
    ) -> str: ...
    @overload
    def tokenize_cards(
        self,
        key: str,
        numbers: Union[list[str], tuple[str, ...]],
        *,
        keep_first: int = 6,
        keep_last: int = 4,
        luhn: bool = False,
        tweak: Optional[Buffer] = None,
    ) -> list[str]: ...
    @overload
    def detokenize_cards(
        self,
        key: str,
        tokens: str,
        *,
        keep_first: int = 6,
        keep_last: int = 4,
        luhn: bool = False,
        tweak: Optional[Buffer] = None,
    ) -> str: ...
    @overload
    def detokenize_cards(
        self,
        key: str,
        tokens: Union[list[str], tuple[str, ...]],
        *,
        keep_first: int = 6,
        keep_last: int = 4,
        luhn: bool = False,
        tweak: Optional[Buffer] = None,
    ) -> list[str]: ...
