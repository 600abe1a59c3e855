"""A short name for the numbers in some tensors, the same on every machine and device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor

WORDS = {"cpu": 1 << 14, "cuda": 1 << 24}  # at a time: what a cache holds, or keeps a GPU busy
# Odd 64-bit factors (as signed numbers) of splitmix64; what overflows is dropped everywhere alike.
STEP, FIRST, SECOND = -7046029254386353131, -4658895280553007687, -7723592293110705685


def fingerprint(about: str, tensors: Iterable[tuple[str, Tensor]]) -> str:
    """A digest of a text and of every number, its type and its place.

    Made where the numbers are: a large graph need not leave its GPU. It tells changed graphs apart,
    not forged ones.
    """
    digest = hashlib.blake2b(about.encode(), digest_size=16)
    for name, tensor in tensors:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        data = tensor.contiguous().view(-1).view(torch.uint8)
        data = data.clone() if data.storage_offset() % 8 else data
        whole = data.numel() // 8 * 8
        digest.update(_checksum(data[:whole].view(torch.int64)).to_bytes(8, "little", signed=True))
        digest.update(bytes(data[whole:].tolist()))
    return digest.hexdigest()


def _checksum(words: Tensor) -> int:
    """A sum over all words, each mixed with its position; in no order."""
    at_once = WORDS[words.device.type]
    total = torch.zeros((), dtype=torch.int64, device=words.device)
    position = torch.arange(min(at_once, words.numel()), device=words.device) * STEP
    forward = int(torch.tensor(at_once) * STEP)  # a tensor drops what overflows
    for some in torch.split(words, at_once):
        mixed = some ^ position[: some.numel()]
        mixed *= FIRST
        mixed ^= (mixed >> 32).bitwise_and_(0xFFFFFFFF)
        mixed *= SECOND
        mixed ^= (mixed >> 29).bitwise_and_(0x7FFFFFFFF)
        total += mixed.sum()
        position += forward
    return int(total)
