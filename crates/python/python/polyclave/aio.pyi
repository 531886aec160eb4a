from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Optional, Union, overload

from typing_extensions import Buffer, Self

from ._polyclave import CheckKind, Mode, Path, PlainMode, Progress, Reader, SealMode, Usage, Writer
from .types import Key, NodeStatus

class Client:
    def __init__(self, dir: Optional[Path] = None) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
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
    async def close(self) -> None: ...
    async def status(self) -> list[NodeStatus]: ...
    async def random(self, count: int) -> bytes: ...
    async def keys(self) -> list[Key]: ...
    async def key(self, name: str) -> Key: ...
    async def versions(self, name: str) -> list[Key]: ...
    async def check(self, name: str, *, version: Optional[int] = None, by: CheckKind = "cmac") -> bytes: ...
    async def generate(
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
    async def import_key(
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
    async def rotate(self, name: str) -> Key: ...
    async def delete(self, name: str, *, version: Optional[int] = None) -> None: ...
    async def seal(
        self,
        key: str,
        data: Buffer,
        *,
        aad: Optional[Buffer] = None,
        mode: Optional[SealMode] = None,
        header: Optional[str] = None,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    async def seal_file(
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
    async def seal_stream(
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
    async def open(
        self,
        key: str,
        sealed: Buffer,
        *,
        aad: Optional[Buffer] = None,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    async def open_file(
        self,
        key: str,
        source: Path,
        target: Path,
        *,
        aad: Optional[Buffer] = None,
        replace: bool = False,
        progress: Optional[Progress] = None,
    ) -> int: ...
    async def open_stream(
        self,
        key: str,
        reader: Reader,
        writer: Writer,
        *,
        aad: Optional[Buffer] = None,
        progress: Optional[Progress] = None,
    ) -> int: ...
    async def encrypt(
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
    async def encrypt_file(
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
    async def encrypt_stream(
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
    async def decrypt(
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
    async def decrypt_file(
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
    async def decrypt_stream(
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
    async def mac(
        self,
        key: str,
        data: Buffer,
        *,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    async def mac_file(
        self,
        key: str,
        source: Path,
        *,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    async def mac_stream(
        self,
        key: str,
        reader: Reader,
        *,
        progress: Optional[Progress] = None,
    ) -> bytes: ...
    async def verify_mac(self, key: str, data: Buffer, code: Buffer) -> None: ...
    async def pay(
        self, keys: Sequence[str], command: Union[str, Mapping[str, Any]]
    ) -> Optional[bytes]: ...
    async def pay_all(
        self, keys: Sequence[str], commands: Sequence[Union[str, Mapping[str, Any]]]
    ) -> list[Optional[bytes]]: ...
    @overload
    async def tokenize(
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
    async def tokenize(
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
    async def detokenize(
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
    async def detokenize(
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
    async def tokenize_cards(
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
    async def tokenize_cards(
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
    async def detokenize_cards(
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
    async def detokenize_cards(
        self,
        key: str,
        tokens: Union[list[str], tuple[str, ...]],
        *,
        keep_first: int = 6,
        keep_last: int = 4,
        luhn: bool = False,
        tweak: Optional[Buffer] = None,
    ) -> list[str]: ...
