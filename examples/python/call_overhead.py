"""How long a call into the package takes besides what the nodes do.

Three calls that need no node: reading the head of a sealed file; a request that the client refuses by itself, which takes the way of every
request (arguments, the interpreter's lock given away and taken, an exception at the end); and an attribute. Give a client's directory.
"""

import sys
import timeit

import polyclave

REPEATS, CALLS = 7, 20_000


def microseconds(call):
    """The fastest and the slowest of several runs, for one call."""
    runs = [seconds / CALLS * 1e6 for seconds in timeit.repeat(call, repeat=REPEATS, number=CALLS)]
    return min(runs), max(runs)


def refused(client, data):
    try:
        client.encrypt("any", data, tag_bytes=5)
    except polyclave.Misuse:
        return
    sys.exit("a tag of 5 bytes was not refused")


def main():
    head = b"polyclave-seal-1" + bytes(16 + 32)
    data = bytes(32)
    with polyclave.Client(sys.argv[1]) as client:
        calls = {
            "inspect(head): 64 bytes in, 16 out as text": lambda: polyclave.inspect(head),
            "encrypt(32 bytes), refused by the client": lambda: refused(client, data),
            "client.name": lambda: client.name,
        }
        for name, call in calls.items():
            print("{:45} {:6.2f} to {:6.2f} us".format(name, *microseconds(call)))


if __name__ == "__main__":
    main()
