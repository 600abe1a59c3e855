"""How a good file becomes a bad one. All of it follows from one random generator."""

import gzip
import io
import json
import math
import os
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch
from safetensors.torch import load, save

from tests.fuzz.tables import hostile

NUMBERS = (
    "-1", "0", "1", "2147483648", "-2147483649", "9223372036854775807", "18446744073709551616",
    "9" * 40, "1e400", "-1e400", "NaN", "Infinity", "0.5", "1e-320", "00", "0x10", "1_000",
)  # fmt: skip
ODD = (
    None, True, False, -1, 0, 1, 7, 1 << 31, 1 << 62, 1 << 63, 1 << 70, 10**40, -(1 << 63), 1e308,
    -0.0, 1e-300, float("nan"), float("inf"), 5, -1.5, "", "x", "../../x", "/etc/passwd", "\x00",
    "\ud800", "é" * 50, [], {}, [[]], [None], {"": None}, [1, 2, 3], "9" * 5000,
)  # fmt: skip
MARK = "pickle-was-here"


class Payload:
    """Leaves a mark wherever it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, (MARK,))


def mutated(name: str, content: bytes, dice: random.Random) -> bytes:
    """Another content for a file of this name: damage to its bytes, or to what they mean."""
    ways: list[Callable[[bytes, random.Random], bytes]] = [damaged, damaged, reworded]
    if name.endswith((".npz", ".zip")):
        ways += [repacked, repacked, repacked]
    if name.endswith(".gz"):
        ways += [recompressed, recompressed]
    if name.endswith(".json"):
        ways += [restructured, restructured, restructured]
    if name.endswith((".csv", ".jsonl")):
        ways += [lambda data, dice: hostile(name, data, dice)] * 6
    if name.endswith(".safetensors"):
        ways += [reheaded, reheaded, revalued, revalued, revalued]
    with suppress(Exception):  # not every way fits every content
        return dice.choice(ways)(content, dice)
    return damaged(content, dice)


def damaged(content: bytes, dice: random.Random) -> bytes:
    """As disks, networks and editors damage files."""
    data = bytearray(content)
    place, length = dice.randrange(len(data) + 1), dice.choice([1, 2, 4, 8, 32, 200])
    match dice.randrange(9):
        case 0:
            for _ in range(dice.choice([1, 1, 2, 8])):
                data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        case 1:
            del data[place:]
        case 2:
            data[place : place + length] = dice.randbytes(length)
        case 3:
            data[place : place + length] = bytes([dice.choice([0, 0xFF])]) * length
        case 4:
            data[place:place] = data[place : place + length] * dice.choice([1, 3, 50])
        case 5:
            number = dice.choice([0, -1, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 20])
            data[place : place + 8] = struct.pack("<q", number)
        case 6:
            del data[place : place + length]
        case 7:
            data += dice.randbytes(length)
        case _:
            return dice.choice([b"", dice.randbytes(dice.randrange(300)), pickle.dumps(Payload())])
    return bytes(data)


def reworded(content: bytes, dice: random.Random) -> bytes:
    """Some number in the text, be it a header or JSON, becomes one that nobody expects."""
    digits = [i for i, letter in enumerate(content) if 48 <= letter <= 57]
    start = end = dice.choice(digits)
    while end < len(content) and 48 <= content[end] <= 57:
        end += 1
    return content[:start] + dice.choice(NUMBERS).encode() + content[end:]


def restructured(content: bytes, dice: random.Random) -> bytes:
    """JSON of another structure."""
    root = [json.loads(content)]
    for _ in range(dice.choice([1, 1, 1, 2, 5])):
        place = dice.choice(list(_places(root)))
        _change(*place, dice)
    if dice.random() < 0.02:
        return (b"[" * 100_000) + (b"]" * 100_000)
    return json.dumps(root[0]).encode()


def _places(value):
    """Every container in a structure with every key in it."""
    keys = range(len(value)) if isinstance(value, list) else list(value)
    for key in keys:
        yield value, key
        if isinstance(value[key], list | dict):
            yield from _places(value[key])


def _change(holder, key, dice: random.Random) -> None:
    match dice.randrange(8):
        case 0:
            del holder[key]
            if not holder and isinstance(holder, list):
                holder.append(None)
        case 1 if isinstance(holder, dict):
            holder[dice.choice(["x", "", "path", key + "x"])] = holder.pop(key)
        case 2 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * dice.choice([-1, 2, 1000, 0.5]) + dice.choice([0, 1])
        case 3 if isinstance(holder[key], list):
            holder[key] = holder[key] * dice.choice([0, 2])
        case _:
            holder[key] = dice.choice(ODD)


def repacked(content: bytes, dice: random.Random) -> bytes:
    """A whole archive, of which a member, its name or its kind is bad."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    chosen = dice.randrange(len(members))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", dice.choice([zipfile.ZIP_STORED, 8, 12, 14])) as archive:
        for number, (name, data) in enumerate(members):
            info = zipfile.ZipInfo(name)
            if number == chosen:
                info, data = _bad_member(name, data, dice)
            if info is not None:
                archive.writestr(info, data)
    return stream.getvalue()


def _bad_member(name: str, data: bytes, dice: random.Random):
    info = zipfile.ZipInfo(name)
    match dice.randrange(6):
        case 0:
            return None, b""
        case 1:
            info.filename = dice.choice(
                ["../../evil", "/evil", "a/../../evil", "..\\evil", name + "\x00", "", "é" * 300]
            )
        case 2:
            info.external_attr = 0o120777 << 16  # a link, and where it leads to
            data = b"/etc/passwd"
        case 3:
            data = pickled_array(data)
        case 4 if name.endswith(".gz"):
            data = recompressed(data, dice)
        case _:
            data = dice.choice([damaged, reworded])(data, dice)
    return info, data


def pickled_array(data: bytes) -> bytes:
    """An array of objects, which only pickle can read."""
    text = b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + pickle.dumps(Payload())


def recompressed(content: bytes, dice: random.Random) -> bytes:
    data = gzip.decompress(content)
    return gzip.compress(dice.choice([damaged, reworded, reworded])(data, dice), mtime=0)


def reheaded(content: bytes, dice: random.Random) -> bytes:
    """Safetensors whose header says something else of the same bytes."""
    (size,) = struct.unpack("<Q", content[:8])
    header = restructured(content[8 : 8 + size], dice)
    return struct.pack("<Q", len(header)) + header + content[8 + size :]


def revalued(content: bytes, dice: random.Random) -> bytes:
    """Whole safetensors, of which a tensor is missing, strange, of another form or no number."""
    tensors = load(content)
    name = dice.choice(sorted(tensors))
    rows = tensors.pop(name)
    match dice.randrange(6):
        case 0:
            pass
        case 1:
            tensors[dice.choice(["x", "", name + "x", "best." + name])] = rows
        case 2:
            shape = dice.choice([(), (0,), (3,), (2, 2), (*rows.shape, 1), rows.shape[:-1]])
            tensors[name] = torch.ones(shape, dtype=rows.dtype)
        case 3:
            kinds = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool]
            tensors[name] = rows.to(dice.choice(kinds))
        case 4:
            number = dice.choice([math.nan, math.inf, -1.0, 0.0, 1e30, 255.0])
            tensors[name] = torch.full(rows.shape, number).to(rows.dtype)
        case _ if rows.numel() and rows.is_floating_point():
            rows.view(-1)[dice.randrange(rows.numel())] = dice.choice([math.nan, math.inf, -1e38])
            tensors[name] = rows
    return save(tensors)


def replaced(path: Path, dice: random.Random) -> None:
    """In the place of a file, something that is none."""
    path.unlink()
    match dice.randrange(7):
        case 0:
            path.mkdir()
        case 1:
            path.symlink_to("nowhere")
        case 2:
            path.symlink_to(path.name)
        case 3:
            path.symlink_to("/dev/zero")
        case 4:
            path.symlink_to("/etc/passwd")
        case 5:
            os.mkfifo(path)
        case _:
            pass
