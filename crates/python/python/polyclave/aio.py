"""The same client for asyncio. Each request runs in a thread of asyncio's own pool, and the event loop goes on.

>>> async with polyclave.aio.Client("try/client") as client:
...     sealed = await client.seal("payroll", b"a secret")

A request that is cancelled, or whose time is over, ends at the nodes too. If it was to make or change a key, the nodes may have done so already.
"""

import asyncio
import functools

from . import _polyclave

#: What is asked of the client alone, and answered at once.
_AT_ONCE = ("name", "protocol", "nodes")


class Client:
    """A client of a cluster, whose methods are those of `polyclave.Client`, to be awaited."""

    def __init__(self, dir=None):
        self._client = _polyclave.Client(dir)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_raised):
        await self.close()

    @functools.wraps(_polyclave.Client.close)
    async def close(self):
        await asyncio.to_thread(self._client.close)

    def __repr__(self):
        return repr(self._client).replace("polyclave.Client", "polyclave.aio.Client")


def _in_a_thread(method):
    @functools.wraps(method)
    async def asked(self, *arguments, **named):
        call = self._client._of_call()
        try:
            return await asyncio.to_thread(method, call, *arguments, **named)
        except asyncio.CancelledError:
            call._end_call()
            raise

    return asked


def _at_once(name):
    return property(lambda self: getattr(self._client, name))


for _name, _member in vars(_polyclave.Client).items():
    if _name in _AT_ONCE:
        setattr(Client, _name, _at_once(_name))
    elif not _name.startswith("_") and not hasattr(Client, _name):
        setattr(Client, _name, _in_a_thread(_member))
