"""Uses of the package that a strict type checker accepts. Nothing here is run."""

import io
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

import polyclave
import polyclave.aio
from polyclave import lab


def of_bytes(client: polyclave.Client) -> bytes:
    key: polyclave.Key = client.generate("payroll", modes=["gcm"], expires=datetime.now(timezone.utc))
    sealed = client.seal(key.name, bytearray(b"a secret"), aad=b"row")
    return client.open(key.name, memoryview(sealed), aad=b"row")


def of_files_and_streams(client: polyclave.Client, path: Path) -> int:
    out = io.BytesIO()
    with open(path, "rb") as plain:
        count = client.seal_stream("payroll", plain, out)
    return count + client.seal_file("payroll", path, str(path) + ".sealed", replace=True, progress=print)


def of_tokens(client: polyclave.Client) -> list[str]:
    client.generate("customers", modes=["ff1"], usage=["tokenize"])
    token: str = client.tokenize("customers", "4929123456", radix=10, tweak=b"shop")
    tokens: list[str] = client.tokenize("customers", (token, token), alphabet="0123456789", keep_others=True)
    card: str = client.detokenize_cards("customers", token, keep_first=0, luhn=True)
    return [*client.detokenize("customers", tokens), *client.tokenize_cards("customers", [card])]


def of_errors(client: polyclave.Client) -> Optional[str]:
    try:
        client.mac("payroll", b"")
    except polyclave.NotForThis as refused:
        return refused.node
    return None


async def of_asyncio() -> bytes:
    async with polyclave.aio.Client("try/client") as client:
        token: str = await client.tokenize("customers", "4929123456")
        values: list[str] = await client.detokenize("customers", [token])
        cards: list[str] = await client.tokenize_cards("customers", values)
        card: str = await client.detokenize_cards("customers", cards[0])
        assert card
        return await client.encrypt("names", b"a name", mode="siv", aad=[b"table", b"row"])


def of_the_laboratory() -> list[lab.Row]:
    return [lab.bench(blocks=blocks) for blocks in (1, 10)]
