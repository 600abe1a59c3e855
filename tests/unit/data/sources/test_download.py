"""Downloads from a server on this machine that breaks off, sends pages, or is not there."""

import hashlib
import http.server
import threading
from dataclasses import dataclass, field

import pytest

from graphfm import InputError
from graphfm.data.sources import download as module
from graphfm.data.sources.catalog import Download
from graphfm.data.sources.download import Unreachable, download

CONTENT = bytes(range(256)) * 4000  # 1 MB
PAGE = b"<!DOCTYPE html><html><title>Google Drive - Virus scan warning</title></html>"


@dataclass
class Server:
    """What is served, and how badly."""

    content: bytes = CONTENT
    breaks_at: list[int] = field(default_factory=list)  # bytes sent before each break, in turn
    ranges: bool = True
    tag: str | None = '"one"'
    kind: str = "application/octet-stream"
    length: bool = True
    asked: list[str | None] = field(default_factory=list)
    url: str = ""


def handler(server: Server) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            server.asked.append(wanted)
            start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
            start = start if server.ranges and self.headers.get("If-Range") == server.tag else 0
            if start and start >= len(server.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(server.content)}")
                self.end_headers()
                return
            if self.path != "/file":
                self.send_error(404)
                return
            self.send_response(206 if start else 200)
            self.send_header("Content-Type", server.kind)
            if server.tag:
                self.send_header("ETag", server.tag)
            if start:
                whole = len(server.content)
                self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
            if server.length:
                self.send_header("Content-Length", str(len(server.content) - start))
            self.end_headers()
            end = server.breaks_at.pop(0) if server.breaks_at else None
            self.wfile.write(server.content[start : None if end is None else start + end])

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    state = Server()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler(state)) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        state.url = f"http://127.0.0.1:{running.server_port}/file"
        yield state
        running.shutdown()
        thread.join()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "file.bin"


def get(server, path, **known) -> list[tuple[str, int, int]]:
    told = []
    download(Download(path=path.name, url=server.url, **known), path, lambda *a: told.append(a))
    return told


def left(path) -> set[str]:
    return {item.name for item in path.parent.glob("*")}


def test_a_file_comes_whole_and_progress_is_told(server, path):
    told = get(server, path)
    assert path.read_bytes() == CONTENT
    assert told[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert left(path) == {"file.bin"}


def test_a_file_that_breaks_off_is_resumed_at_once(server, path):
    server.breaks_at = [300_000, 300_000]
    get(server, path)
    assert path.read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-", "bytes=600000-"]


def test_what_came_is_kept_for_the_next_time(server, path, monkeypatch):
    monkeypatch.setattr(module, "TRIES", 1)
    server.breaks_at = [700_000]
    with pytest.raises(Unreachable, match="was lost 1 times, after 700,000 bytes; run the"):
        get(server, path)
    assert left(path) == {"file.bin.part", "file.bin.part.tag"}
    get(server, path)
    assert server.asked == [None, "bytes=700000-"]
    assert path.read_bytes() == CONTENT
    assert left(path) == {"file.bin"}


def test_another_file_of_the_same_name_is_not_mixed_with_the_first(server, path, monkeypatch):
    monkeypatch.setattr(module, "TRIES", 1)
    server.breaks_at = [700_000]
    with pytest.raises(Unreachable):
        get(server, path)
    server.content, server.tag = CONTENT[::-1], '"two"'
    get(server, path)
    assert path.read_bytes() == CONTENT[::-1]


@pytest.mark.parametrize("lacking", ["ranges", "tag"])
def test_a_server_that_cannot_resume_sends_all_again(server, path, lacking):
    setattr(server, lacking, None)
    server.breaks_at = [700_000]
    get(server, path)
    assert path.read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_thrown_away(server, path):
    path.parent.mkdir()
    (path.parent / "file.bin.part").write_bytes(CONTENT + b"more")
    (path.parent / "file.bin.part.tag").write_text('"one"')
    get(server, path)
    assert path.read_bytes() == CONTENT


def test_a_file_of_unknown_length_comes_too(server, path):
    server.length = False
    get(server, path)
    assert path.read_bytes() == CONTENT


def test_one_that_always_breaks_off_is_given_up(server, path):
    server.breaks_at, server.tag = [100] * 10, None
    with pytest.raises(Unreachable, match="was lost 4 times, after 100 bytes"):
        get(server, path)
    assert len(server.asked) == 4
    assert not path.exists()


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/octet-stream"])
def test_a_web_page_is_not_taken_for_data(server, path, kind):
    server.content, server.kind = PAGE, kind
    with pytest.raises(Unreachable, match="sent a web page instead of the file"):
        get(server, path)
    assert left(path) == set()


def test_what_is_known_of_a_file_is_checked(server, path):
    digest = hashlib.sha256(CONTENT).hexdigest()
    get(server, path, num_bytes=len(CONTENT), sha256=digest)
    path.unlink()
    with pytest.raises(InputError, match=f"SHA-256 {digest}; expected 00"):
        get(server, path, sha256="0" * 64)
    with pytest.raises(InputError, match="has 1,024,000 bytes; expected 5"):
        get(server, path, num_bytes=5)
    assert left(path) == set()


def test_a_file_that_does_not_fit_on_the_disk_is_refused(server, path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(InputError, match="needs 1,024,000 bytes, but only 1,000 are free"):
        get(server, path)


def test_a_missing_file_and_a_missing_server_are_unreachable(server, path):
    server.url += "s"
    with pytest.raises(Unreachable, match="answered 404"):
        get(server, path)
    server.url = "http://127.0.0.1:9/file"
    with pytest.raises(Unreachable, match=r"http://127.0.0.1:9/file cannot be reached \("):
        get(server, path)
    assert left(path) == set()


def test_what_has_come_whole_is_not_asked_for_twice(server, path):
    path.parent.mkdir()
    path.with_name("file.bin.part").write_bytes(CONTENT)
    path.with_name("file.bin.part.tag").write_text('"one"')
    download(Download(path="file.bin", url=server.url), path, lambda *_: None)
    assert server.asked == [f"bytes={len(CONTENT)}-"]
    assert [path.read_bytes(), *path.parent.iterdir()] == [CONTENT, path]
