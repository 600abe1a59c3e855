"""Downloads that continue where they stopped and refuse a web page in place of data."""

from __future__ import annotations

import hashlib
import http.client
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphfm.data.sources.build import is_page
from graphfm.data.sources.catalog import Download
from graphfm.errors import InputError
from graphfm.files import check_room

PIECE = 1 << 18
SECONDS = 30  # a connection without data for this long is lost
TRIES = 4
Tell = Callable[[str, int, int], None]


class Unreachable(InputError):  # noqa: N818
    """The file cannot be downloaded from here; a person may get it elsewhere."""


def download(wanted: Download, path: Path, tell: Tell) -> None:
    """Download a file. `PATH.part` keeps what has arrived, so it is not requested again."""
    part = path.with_name(f"{path.name}.part")
    try:
        whole = any(_receive(wanted, part, path.name, tell) for _ in range(TRIES))
    except urllib.error.HTTPError as error:
        raise Unreachable(f"{wanted.url} answered {error.code} {error.reason}") from None
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as e:
        reason = getattr(e, "reason", None) or e
        raise Unreachable(f"{wanted.url} cannot be reached ({reason})") from None
    if not whole:
        raise Unreachable(
            f"the connection to {wanted.url} was lost {TRIES} times, after {_size(part):,} bytes; "
            "run the command again to continue from there"
        )
    _check(wanted, part)
    part.replace(path)
    _tag(part).unlink(missing_ok=True)


def _receive(wanted: Download, part: Path, name: str, tell: Tell) -> bool:
    """Append what is still missing; return whether the file is complete."""
    request = urllib.request.Request(wanted.url, headers={"User-Agent": "graphfm"})
    start = _size(part) if _tag(part).is_file() else 0
    if start:  # If-Range: if the file has changed, the server sends all of it
        request.add_header("Range", f"bytes={start}-")
        request.add_header("If-Range", _tag(part).read_text())
    try:
        response = urllib.request.urlopen(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not start:
            raise
        error.close()
        if error.headers.get("Content-Range") == f"bytes */{start}":
            return True  # complete; the program ended before it renamed the file
        part.unlink()  # longer than the file on the server: it was a different file
        return _receive(wanted, part, name, tell)
    with response:
        start = start if response.status == 206 else 0
        total = _total(response, start)
        first = _read(response)
        if first is None:
            return False
        if response.headers.get_content_type() == "text/html" or (not start and is_page(first)):
            raise Unreachable(f"{wanted.url} sent a web page instead of the file")
        part.parent.mkdir(parents=True, exist_ok=True)  # only once there is data to write
        if total is not None:
            check_room(part.parent, total - start)
        if tag := response.headers.get("ETag") or response.headers.get("Last-Modified"):
            _tag(part).write_text(tag)
        else:
            _tag(part).unlink(missing_ok=True)
        ended = _write(response, first, part, start, lambda done: tell(name, done, total or 0))
    return ended and total in (None, _size(part))


def _write(
    response: Any, first: bytes, part: Path, start: int, tell: Callable[[int], None]
) -> bool:
    """Append data until the stream ends; return False if the connection was lost."""
    with part.open("r+b" if start else "wb") as stream:
        stream.seek(start)
        piece: bytes | None = first
        while piece:
            stream.write(piece)
            tell(stream.tell())
            piece = _read(response)
        stream.truncate()
    return piece is not None


def _read(response: Any) -> bytes | None:
    """Return the next bytes, b"" at the end, None if the connection is lost."""
    try:
        piece: bytes = response.read(PIECE)
    except (OSError, http.client.HTTPException):
        return None
    return piece


def _total(response: Any, start: int) -> int | None:
    """Size of the whole file, None if the server does not say."""
    if response.status == 206:
        stated = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
        if stated is None or int(stated[1]) != start:
            raise http.client.HTTPException("the server sent another range than requested")
        return int(stated[2])
    length = response.headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _check(wanted: Download, part: Path) -> None:
    """Refuse and remove a file whose size or digest is not the known one."""
    reason = ""
    if wanted.num_bytes is not None and _size(part) != wanted.num_bytes:
        reason = f"has {_size(part):,} bytes; expected {wanted.num_bytes:,}"
    elif wanted.sha256 is not None:
        with part.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        if digest != wanted.sha256:
            reason = f"has the SHA-256 {digest}; expected {wanted.sha256}"
    if reason:
        part.unlink()
        _tag(part).unlink(missing_ok=True)
        raise InputError(f"the file at {wanted.url} {reason}; it was removed; try again later")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _tag(part: Path) -> Path:
    """The file next to PATH.part that holds the server's ETag or date of the file."""
    return part.with_name(f"{part.name}.tag")
