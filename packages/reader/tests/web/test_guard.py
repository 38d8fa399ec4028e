"""Requests that the server of the page rejects: without a browser, and from a page of another origin in one."""

import http.client
import json
import os
import random
import re
import signal
import socket
import stat
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from browsing import Serve, Serving, Tabs

from aggrevated.core.errors import StorageError
from aggrevated_reader.web.server import load_token

STROKE = [[[10, 10], [40, 40]]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the server was started."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def drawing(serve: Serve, home: Path) -> Serving:
    return serve("draw", "--corrected-pages", "pages", cwd=home)


def send_request(
    serving: Serving, path: str = "", method: str = "GET", body: bytes | None = None, token: str | None = None,
    **headers: str,
) -> tuple[int, dict[str, str], bytes]:  # fmt: skip
    """Return (status, headers, body) of the server's response; `path` follows the token."""
    connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=20)
    own = serving.address.split("/")[3] if token is None else token
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.putrequest(method, f"/{own}/{path}" if own else f"/{path}", skip_host="Host" in given)
        if body is not None and "Transfer-Encoding" not in given:
            given.setdefault("Content-Length", str(len(body)))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def send_json(serving: Serving, path: str, facts: object, **headers: str) -> tuple[int, dict[str, object]]:
    """Return (status, JSON object) of the server's response to JSON."""
    status, _, body = send_request(serving, path, "POST", json.dumps(facts).encode(), **headers)
    return status, json.loads(body)


# Unauthorized requests.


def test_draw_server_answers_with_restrictive_headers(drawing: Serving) -> None:
    status, headers, body = send_request(drawing)
    assert status == 200 and b"<title>Draw algebra" in body
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store" and "access-control-allow-origin" not in headers
    assert "server" not in headers


REFUSED: list[dict[str, str]] = [
    {"token": ""},
    {"token": "x" * 32},
    {"Host": "evil.example"},
    {"Host": "127.0.0.1"},
    {"Host": ""},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec_Fetch_Site": "cross-site"},
    {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
    {"method": "OPTIONS"},
    {"method": "PUT"},
    {"method": "DELETE"},
    {"method": "TRACE"},
]


@pytest.mark.parametrize("how", REFUSED, ids=str)
def test_draw_server_rejects_requests_without_valid_token(drawing: Serving, how: dict[str, str]) -> None:
    status, headers, body = send_request(drawing, "state", **how)  # type: ignore[arg-type]
    assert status == 403 and json.loads(body) == {
        "error": "access to this address is denied; use the one that the command printed"
    }
    assert "access-control-allow-origin" not in headers


def test_draw_server_rejects_nearly_correct_tokens(drawing: Serving) -> None:
    own = drawing.address.split("/")[3]
    for token in (own[:-1], own + "x", own.swapcase(), f"{own}%00", f"x/../{own}"):
        assert send_request(drawing, "state", token=token)[0] == 403


def test_draw_server_listens_on_loopback_only(drawing: Serving) -> None:
    listening = {
        fields[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for fields in (line.split() for line in Path(table).read_text().splitlines()[1:])
        if fields[3] == "0A" and fields[1].endswith(f":{drawing.port:04X}")
    }
    assert listening == {f"0100007F:{drawing.port:04X}"}


def test_saved_token_is_readable_by_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGGREVATED_CACHE", str(tmp_path))
    token = load_token(4711)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and load_token(4711) == token
    assert load_token(4712) != token
    file.chmod(0o644)  # others may have read it
    assert load_token(4711) != token
    file.write_text("short")
    assert len(load_token(4711)) == 32
    real = Path.stat

    def open_to_all(path: Path, **how: bool) -> os.stat_result:  # some file systems report this for every file
        found = real(path, **how)
        return os.stat_result([found.st_mode | 0o077, *found[1:10]])

    monkeypatch.setattr(Path, "stat", open_to_all)
    with pytest.raises(StorageError, match="is not private"):
        load_token(4713)


@pytest.fixture
def other_origin() -> Iterator[str]:
    """A page of another origin on this machine."""

    class Quiet(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title><link rel=icon href='data:,'>")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Quiet)
    thread = threading.Thread(target=partial(server.serve_forever, 0.05), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_draw_server_gives_nothing_to_other_origins_with_the_token(
    drawing: Serving, tabs: Tabs, other_origin: str, home: Path
) -> None:
    tab = tabs.open(other_origin, allowed=("CORS", "Failed to load", "Refused", "refused", "frame", "MIME", "blocked"))
    got = tab.evaluate(
        """async address => {
          const said = [];
          for (const mode of ["cors", "no-cors"]) {
            const answer = await fetch(address + "state", {mode}).catch(() => null);
            said.push(answer ? answer.type + answer.status : "nothing");
          }
          const body = JSON.stringify({parts: [[[[1, 1], [9, 9]]]], said: [{parts: [0], label: "x", head: []}]});
          const sent = await fetch(address + "keep", {method: "POST", mode: "no-cors", body}).catch(() => null);
          said.push(sent ? sent.type + sent.status : "nothing");
          const script = document.createElement("script");
          script.src = address + "common.js";
          said.push(await new Promise(done => {
            script.onload = () => done("script"); script.onerror = () => done("nothing"); document.body.append(script);
          }));
          const frame = document.createElement("iframe");
          frame.src = address;
          document.body.append(frame);
          await new Promise(done => setTimeout(done, 300));
          said.push(frame.contentDocument ? "frame" : "nothing");
          return said;
        }""",
        drawing.address,
    )
    assert got[0] == "nothing" and got[1] in ("nothing", "opaque0")
    assert got[2] in ("nothing", "opaque0") and not (home / "pages").exists()
    assert got[3:] == ["nothing", "nothing"]


# Requests that are too large or invalid.


def test_draw_server_limits_request_bodies(drawing: Serving) -> None:
    for path in ("read", "steps", "inkml", "keep", "look?width=500&height=500"):
        status, _, body = send_request(drawing, path, "POST", b"", Content_Length=str(1 << 40))
        assert status == 413 and b"send less" in body
    status, _, body = send_request(drawing, "read", "POST", b"", Content_Length="-1")
    assert status in (400, 413)
    piece = b"%x\r\n%s\r\n" % (1 << 20, b" " * (1 << 20))
    with socket.create_connection(("127.0.0.1", drawing.port), timeout=20) as line:
        token = drawing.address.split("/")[3]
        line.sendall(
            f"POST /{token}/read HTTP/1.1\r\nHost: 127.0.0.1:{drawing.port}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(5):
            line.sendall(piece)
        assert b" 413 " in line.recv(65536).splitlines()[0]


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ([], "not a JSON object"),
        ({"parts": 3}, "must be a list"),
        ({"parts": [[]]}, "has no strokes"),
        ({"parts": [[[]]]}, "has no points"),
        ({"parts": [[[[1]]]]}, "not two or three numbers"),
        ({"parts": [[[[1, True]]]]}, "not two or three numbers"),
        ({"parts": [[[[1, 1e400]]]]}, "not two or three numbers"),
        ({"parts": [[[[1, float("nan")]]]]}, "not two or three numbers"),
        ({"parts": [[[[1, 10**400]]]]}, "not two or three numbers|lies beyond"),
        ({"parts": [[[[1, 1e6]]]]}, "lies beyond"),
        ({"parts": [STROKE] * 501}, "at most 500"),
        ({"parts": [[[[1, 1]] * 50_001]]}, "more than 50,000 points"),
        ({"parts": [STROKE], "said": [{"parts": [1]}]}, "not numbers of parts"),
        ({"parts": [STROKE], "said": [{"parts": []}]}, "no parts"),
        ({"parts": [STROKE], "said": [{"parts": [0, 0]}]}, "twice"),
        ({"parts": [STROKE], "said": [{"parts": [0]}, {"parts": [0]}]}, "two symbols"),
        ({"parts": [STROKE], "said": [{"parts": [0], "label": "x" * 17}]}, "at most 16 bytes"),
        ({"parts": [STROKE], "said": [{"parts": [0], "label": "\u202e\n"}]}, "at most 16 bytes"),
        ({"parts": [STROKE], "said": [7]}, "not a JSON object"),
    ],
)
def test_draw_server_rejects_invalid_drawings(drawing: Serving, facts: object, why: str) -> None:
    status, answer = send_json(drawing, "read", facts)
    assert status == 422 and re.search(why, str(answer["error"])), answer


def test_draw_server_rejects_invalid_json(drawing: Serving) -> None:
    for body in (b"", b"{", b"\xff\xfe", b'{"a": "\\ud800"}', b"[" * 100_000, b'"' + b"a" * 100 + b'"'):
        status, _, answer = send_request(drawing, "read", "POST", body)
        assert status == 422 and b"error" in answer, (body[:20], answer)


def test_draw_server_serves_nothing_outside_its_files(drawing: Serving) -> None:
    for path in (
        "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "static/draw.js",
        "draw.py", "common.css/../drawing.py", "read", "draw.html", "%00", "favicon.ico", "C:\\windows",
    ):  # fmt: skip
        status, _, body = send_request(drawing, path)
        assert status in (403, 404, 405) and b"root:" not in body and b"import" not in body, (path, status)


def test_draw_server_limits_picture_sizes(drawing: Serving) -> None:
    import struct
    import zlib

    def make_chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    bomb = (
        b"\x89PNG\r\n\x1a\n"
        + make_chunk(b"IHDR", head)
        + make_chunk(b"IDAT", zlib.compress(b"\0" * 100_000))
        + make_chunk(b"IEND", b"")
    )
    status, _, body = send_request(drawing, "look?width=500&height=500", "POST", bomb, X_Name="bomb.png")
    assert status == 422 and "pixels" in json.loads(body)["error"]
    for side in ("0", "nan", "1e9", "-5", "", "x"):
        assert send_request(drawing, f"look?width={side}&height=500", "POST", b"x")[0] == 422
    status, _, body = send_request(
        drawing, "look?width=500&height=500", "POST", b"junk", X_Name="%2e%2e%2fetc%2fpasswd%0a%1b[31m"
    )
    assert status == 422 and "/" not in json.loads(body)["error"].split()[0] and "\x1b" not in json.loads(body)["error"]


def test_draw_server_saves_pages_in_its_folder_without_overwriting(serve: Serve, tmp_path: Path) -> None:
    serving = serve("draw", "--corrected-pages", "kept", cwd=tmp_path)
    displayed = {"labels": ["x"], "heads": [0]}
    page = {
        "parts": [STROKE],
        "said": [{"parts": [0], "label": "x", "head": []}],
        "name": "../../evil",
        "seen": displayed,
    }
    assert [send_json(serving, "keep", page)[1]["name"] for _ in range(2)] == ["page-0001.inkml", "page-0002.inkml"]
    (tmp_path / "kept" / "page-0001.inkml").unlink()
    assert send_json(serving, "keep", page)[1]["name"] == "page-0003.inkml"  # the second is not overwritten
    assert {path.name for path in tmp_path.rglob("*")} == {"kept", "page-0002.inkml", "page-0003.inkml"}
    unseen = page | {"seen": {"labels": ["y"], "heads": [0]}}
    assert send_json(serving, "keep", unseen)[0] == 422


# Fuzz.


def corrupt_bytes(draw: random.Random, whole: bytes) -> bytes:
    """Return the bytes with some of them changed, removed or repeated."""
    data = bytearray(whole)
    for _ in range(draw.randrange(1, 8)):
        at = draw.randrange(len(data) + 1)
        kind = draw.randrange(4)
        if kind == 0:
            data[at:at] = draw.randbytes(draw.randrange(1, 9))
        elif kind == 1:
            del data[at : at + draw.randrange(1, 20)]
        elif kind == 2:
            data[at : at + 1] = draw.choice([b"[", b"{", b'"', b"-", b"9" * 30, b"null", b"1e999", b"<", b"\0"])
        else:
            data[at:at] = data[at : at + draw.randrange(1, 40)]
    return bytes(data)


STRANGE = [None, True, -1, 0, 7, 1e308, 10**400, -0.0, "", "x", "\u202e", "é" * 9, [], [0], [[]], {}, {"parts": [0]}]


def corrupt_json(draw: random.Random, value: object, depth: int = 0) -> object:
    """Return the JSON value with a random part replaced."""
    if draw.random() < 0.12 * depth or not isinstance(value, list | dict) or not value:
        return draw.choice(STRANGE)
    if isinstance(value, dict):
        name = draw.choice([*value])
        return value | {name: corrupt_json(draw, value[name], depth + 1)}
    place = draw.randrange(len(value))
    return [*value[:place], corrupt_json(draw, value[place], depth + 1), *value[place + draw.randrange(2) :]]


def measure_memory(serving: Serving) -> int:
    """Return the memory of the process in MB."""
    for line in Path(f"/proc/{serving.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    raise AssertionError("no VmRSS")


def encode_corrupt_json(draw: random.Random, facts: object) -> bytes:
    for _ in range(draw.randrange(1, 4)):
        facts = corrupt_json(draw, facts)
    return json.dumps(facts).encode()


def test_draw_server_survives_a_thousand_hostile_requests(drawing: Serving, home: Path) -> None:
    from writing import write_lines

    from aggrevated_reader.pages.inkml_writing import to_inkml

    draw = random.Random(0)
    page = write_lines("x=2")
    parts = [[stroke.round(1).tolist()] for strokes in page.ink for stroke in strokes]
    facts = {"parts": parts, "said": [{"parts": [0], "label": "x", "head": [1]}], "confirmed": True}
    _, read = send_json(drawing, "read", facts)
    symbols: list[dict[str, object]] = read["symbols"]  # type: ignore[assignment]
    facts["seen"] = {"labels": [one["label"] for one in symbols], "heads": [one["head"] for one in symbols]}
    before = set(home.rglob("*"))
    halfway = 0
    answers = set()
    for number in range(1000):
        path = draw.choice(["read", "steps", "inkml", "keep", "look?width=800&height=400"])
        whole = to_inkml(page) if path.startswith("look") else json.dumps(facts).encode()
        body = (
            corrupt_bytes(draw, whole)
            if draw.random() < 0.4 or path.startswith("look")
            else encode_corrupt_json(draw, facts)
        )
        name = draw.choice(["a.inkml", "a.png", "a.pdf", "a.jpg", "..%2f..", ""])
        method = draw.choice(["POST"] * 9 + ["GET"])
        status, _, answer = send_request(drawing, path, method, body, X_Name=name)
        assert status in (200, 404, 405, 413, 422), (path, body[:200], answer)
        assert b"Traceback" not in answer and b".py" not in answer
        answers.add((path, status))
        if number == 300:
            halfway = measure_memory(drawing)
    assert {("read", 200), ("steps", 200), ("inkml", 200)} < answers  # some got through to the reader
    assert measure_memory(drawing) < halfway + 60
    assert send_request(drawing, "state")[0] == 200 and drawing.process.poll() is None
    assert "failed" not in drawing.read_errors()
    made = set(home.rglob("*")) - before
    assert all(path == home / "pages" or path.parent == home / "pages" for path in made)


def test_draw_server_survives_malformed_requests(drawing: Serving) -> None:
    token = drawing.address.split("/")[3]
    for raw in (
        b"", b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"A" * 100_000,
        b"GET /%s/ HTTP/1.1\r\n" % token.encode(),
        b"POST /%s/read HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 50\r\n\r\n{" % (token.encode(), drawing.port),
    ):  # fmt: skip
        with socket.create_connection(("127.0.0.1", drawing.port), timeout=5) as line:
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
            line.settimeout(5)
            answer = b""
            try:
                while piece := line.recv(65536):
                    answer += piece
            except (TimeoutError, ConnectionError):
                pass
            assert b"Traceback" not in answer
    assert send_request(drawing, "state")[0] == 200


def test_draw_server_closes_idle_connections_and_answers_others(drawing: Serving) -> None:
    silent = [socket.create_connection(("127.0.0.1", drawing.port), timeout=30) for _ in range(150)]
    try:
        silent[0].sendall(b"GET /never")  # an incomplete line does not help either
        assert send_request(drawing, "state")[0] == 200
        for line in (silent[0], silent[-1]):
            assert line.recv(1) == b""  # closed
    finally:
        for line in silent:
            line.close()


def test_draw_server_stops_with_exit_code_of_the_signal(serve: Serve) -> None:
    serving = serve("draw")
    assert serving.stop(signal.SIGTERM) == 143
    again = serve("draw")
    assert again.stop(signal.SIGINT) == 130
    assert again.read_errors().splitlines()[-1] == "aggrevated: stopped"
