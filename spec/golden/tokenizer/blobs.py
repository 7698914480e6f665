"""Writes the binary formats of SentencePiece: precompiled charsmaps and models."""
import struct


def double_array(keys):
    """A darts-clone double array, from bytes (without zeros) to numbers: little-endian units of 32 bits."""
    root = {}
    for key, value in keys.items():
        node = root
        for byte in key:
            node = node.setdefault(byte, {})
        node[0] = value  # as the child for byte 0, which no key has
    units, taken, bases, todo = {0: 0}, {0}, set(), [(root, 0, 0)]
    single, top = 1, 1  # where the search for a place begins: for few children, for many
    while todo:
        node, at, unit = todo.pop()
        labels = sorted(node)
        slot = single if len(labels) < 3 else max(single, top - 64)
        while True:
            base = slot ^ labels[0]
            if slot not in taken and base not in bases and not any(base ^ label in taken for label in labels):
                offset = at ^ base
                if offset < 1 << 21 or offset & 0xFF == 0:
                    break
            slot += 1
        single = slot if len(labels) < 3 else single
        top = max(top, base)
        bases.add(base)
        unit |= offset << 10 if offset < 1 << 21 else offset << 2 | 1 << 9
        units[at] = unit | (1 << 8 if 0 in node else 0)
        for label in labels:
            taken.add(base ^ label)
            if label == 0:
                units[base] = node[0] | 1 << 31
            else:
                todo.append((node[label], base ^ label, label))
    size = max(taken) + 256 & ~255
    return struct.pack(f"<{size}I", *(units.get(i, 0) for i in range(size)))


def charsmap(mapping):
    """A precompiled charsmap from a dict of strings."""
    strings, places = b"", {}
    for text in mapping.values():
        if text not in places:
            places[text] = len(strings)
            strings += text.encode() + b"\0"
    trie = double_array({key.encode(): places[text] for key, text in mapping.items()})
    return struct.pack("<I", len(trie)) + trie + strings


def varint(n):
    out = b""
    n &= (1 << 64) - 1
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def model(pieces, trainer=(), normalizer=()):
    """A SentencePiece model. pieces: (text, score, type); the others: (number of the field, value)."""
    out = b"".join(field(1, field(1, p) + field(2, float(s)) + (field(3, t) if t != 1 else b"")) for p, s, t in pieces)
    out += field(2, b"".join(field(n, v) for n, v in trainer))
    return out + field(3, b"".join(field(n, v) for n, v in normalizer))
