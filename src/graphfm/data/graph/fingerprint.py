"""A digest of tensors that is the same on every machine and device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor

WORDS = {"cpu": 1 << 14, "cuda": 1 << 24}  # per chunk: fits a CPU's cache, keeps a GPU busy
# The odd 64-bit constants of splitmix64, as signed integers. Overflow wraps on every device.
STEP, FIRST, SECOND = -7046029254386353131, -4658895280553007687, -7723592293110705685


def fingerprint(header: str, tensors: Iterable[tuple[str, Tensor]]) -> str:
    """Return a digest of a text and of the name, type, shape and values of each tensor.

    It is computed on the device of the tensors, so a large graph does not have to leave its GPU.
    It tells a changed graph from the original, but it does not protect against forgery.
    """
    digest = hashlib.blake2b(header.encode(), digest_size=16)
    for name, tensor in tensors:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        data = tensor.contiguous().view(-1).view(torch.uint8)
        data = data.clone() if data.storage_offset() % 8 else data
        whole = data.numel() // 8 * 8
        digest.update(_checksum(data[:whole].view(torch.int64)).to_bytes(8, "little", signed=True))
        digest.update(bytes(data[whole:].tolist()))
    return digest.hexdigest()


def _checksum(words: Tensor) -> int:
    """Sum all words, each mixed with its position, so that the order of summation is free."""
    chunk_words = WORDS[words.device.type]
    total = torch.zeros((), dtype=torch.int64, device=words.device)
    position = torch.arange(min(chunk_words, words.numel()), device=words.device) * STEP
    advance = int(torch.tensor(chunk_words) * STEP)  # a tensor wraps where a Python int would grow
    for chunk in torch.split(words, chunk_words):
        mixed = chunk ^ position[: chunk.numel()]
        mixed *= FIRST
        mixed ^= (mixed >> 32).bitwise_and_(0xFFFFFFFF)
        mixed *= SECOND
        mixed ^= (mixed >> 29).bitwise_and_(0x7FFFFFFFF)
        total += mixed.sum()
        position += advance
    return int(total)
