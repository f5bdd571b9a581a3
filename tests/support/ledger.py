"""The text of a ledger, as railmated writes it."""
import json


def checksum(data):
    """FNV-1a, eight bytes a step while there are eight (ledger-internal.h)."""
    value, prime, whole = 14695981039346656037, 1099511628211, len(data) // 8 * 8
    for i in range(0, whole, 8):
        value = (value ^ int.from_bytes(data[i:i + 8], "little")) * prime % 2 ** 64
        value ^= value >> 32
    for byte in data[whole:]:
        value = (value ^ byte) * prime % 2 ** 64
    return value


def ledger_text(holds, decisions, escape=True):
    """A line each, the checksum of what follows the first line. escape: in ASCII."""
    def lines(name, items):
        return f'"{name}":[' + ",".join(
            "\n" + json.dumps(i, ensure_ascii=escape, separators=(",", ":")) for i in items) + "]"

    body = f'"next":{len(decisions) + 1},\n' + lines("holds", holds) + ",\n" + lines(
        "decisions", decisions) + "}\n"
    return f'{{"railmate":"ledger","version":1,"checksum":"{checksum(body.encode()):016x}",\n' + body
