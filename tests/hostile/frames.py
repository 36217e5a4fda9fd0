"""HTTP/2 by hand: frames, and headers without a table."""

import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
"""Frames."""
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITIZED = 0x1, 0x1, 0x4, 0x8, 0x20
"""Flags."""
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = (
    range(1, 7)
)
"""Settings."""
REFUSED_STREAM, CANCEL, CALM = 0x7, 0x8, 0xB
"""Errors."""
WIDEST = (1 << 31) - 1
"""The widest window."""
LARGEST = 1 << 14
"""The largest frame that nobody has to allow."""
STREAMS = 100
"""As many requests of a connection are answered at once."""
Fields = list[tuple[bytes, bytes]]


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"", length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def settings(values: dict[int, int] | list[tuple[int, int]]) -> bytes:
    pairs = values.items() if isinstance(values, dict) else values
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", *pair) for pair in pairs))


def window(stream: int, more: int) -> bytes:
    return frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", more))


def reset(stream: int, code: int = CANCEL) -> bytes:
    return frame(RST_STREAM, 0, stream, struct.pack(">I", code))


def priority(stream: int, on: int, weight: int = 15) -> bytes:
    return frame(PRIORITY, 0, stream, struct.pack(">IB", on, weight))


def integer(value: int, bits: int, first: int = 0) -> bytes:
    """RFC 7541, 5.1; `first` has the bits before it."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    out, value = bytearray((first | most,)), value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes((value,))


def string(value: bytes) -> bytes:
    return integer(len(value), 7) + value


def literal(name: bytes, value: bytes, kind: int = 0) -> bytes:
    """A field as it stands; `kind` 0x40 puts it into the peer's table, where it is number 62."""
    return bytes((kind,)) + string(name) + string(value)


def block(fields: Fields) -> bytes:
    return b"".join(literal(name, value) for name, value in fields)


def head(stream: int, fields: bytes | Fields, end: bool = False, flags: int = 0) -> bytes:
    """The frames of a head."""
    whole = fields if isinstance(fields, bytes) else block(fields)
    pieces = [whole[n : n + LARGEST] for n in range(0, len(whole), LARGEST)] or [b""]
    out = []
    for number, piece in enumerate(pieces):
        last = END_HEADERS if number == len(pieces) - 1 else 0
        first = flags | (END_STREAM if end else 0) if number == 0 else 0
        out.append(frame(CONTINUATION if number else HEADERS, first | last, stream, piece))
    return b"".join(out)


def body(stream: int, data: bytes, end: bool = True, size: int = LARGEST) -> bytes:
    pieces = [data[n : n + size] for n in range(0, len(data), size)] or [b""]
    last = len(pieces) - 1
    return b"".join(frame(DATA, END_STREAM if end and n == last else 0, stream, p) for n, p in enumerate(pieces))


INDEXED = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}


def status(fields: bytes) -> int:
    """The status of an answer whose sender keeps no table; it comes first. 0 when it is not there."""
    while fields and fields[0] & 0xE0 == 0x20:
        # Sizes of the table.
        end = 1
        if fields[0] & 0x1F == 0x1F:
            while end < len(fields) and fields[end] & 128:
                end += 1
            end += 1
        fields = fields[end:]
    if not fields:
        return 0
    if fields[0] in INDEXED:
        return INDEXED[fields[0]]
    # The name of a literal is that of one of those seven.
    name = fields[0] & (0x3F if fields[0] & 0x40 else 0x0F)
    if not 8 <= name <= 14 or len(fields) < 3:
        return 0
    huffman, size = fields[1] & 128, fields[1] & 127
    text = fields[2 : 2 + size]
    return int(digits(text) if huffman else text.decode("ascii"))


def digits(text: bytes) -> str:
    """Digits of RFC 7541, appendix B: 0, 1 and 2 have five bits, the others six."""
    bits, out = "".join(f"{byte:08b}" for byte in text), ""
    while len(bits) >= 5:
        five, six = int(bits[:5], 2), int(bits[:6], 2)
        if five < 3:
            out, bits = out + str(five), bits[5:]
        elif 0b011001 <= six <= 0b011111:
            out, bits = out + str(six - 0b011001 + 3), bits[6:]
        else:
            break
    return out or "0"
