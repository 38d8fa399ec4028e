"""Valid files in memory, ways to corrupt them, and a process that reads them, for tests of hostile files."""

import io
import json
import os
import random
import re
import struct
import subprocess
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
import torch
from torch import Tensor

from aggrevated.storage import digest_tensors, save_checksummed
from aggrevated.storage.journal import encode_checksummed_line
from helpers.handwriting import inkml

ALL = os.environ.get("AGGREVATED_FAULTS") == "all"
MUTATIONS = 1_000 if ALL else 30
DQN = OrderedDict(
    (f"{net}.q_net.{place}.{part}", torch.linspace(-1, 1, out * into if part == "weight" else out).reshape(shape))
    for net in ("q_net", "q_net_target")
    for place, into, out in ((0, 4, 8), (2, 8, 2))
    for part, shape in (("weight", (out, into)), ("bias", (out,)))
)
WEIGHT = "q_net.q_net.0.weight"
SETTINGS = {"policy_class": {":serialized:": "gAWV"}, "gamma": 0.98, "policy_kwargs": {"net_arch": [8]}, "n_envs": 1}
CARD = {"algorithm": "DQN", "activation": "relu", "settings": {"gamma": 0.99, "policy_kwargs": {"net_arch": [8]}}}


def make_journal() -> bytes:
    """Return nine lines of metrics."""
    data = b""
    checksum = ""
    for n in range(1, 10):
        line, checksum = encode_checksummed_line({"n": n, "loss": float("-inf")}, checksum)
        data += line
    return data


def torch_bytes(state: object) -> bytes:
    """Return the bytes that `torch.save` writes."""
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def zip_bytes(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip file with these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def unzip(data: bytes) -> dict[str, bytes]:
    """Return the members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {member.filename: archive.read(member) for member in archive.infolist()}


def sb3_model(state: object = DQN, settings: object = SETTINGS, policy: bytes | None = None, method: int = 0) -> bytes:
    """Return a Stable-Baselines3 model with these weights and settings, or with these bytes of the weights."""
    data = settings if isinstance(settings, bytes) else json.dumps(settings).encode()
    return zip_bytes({"data": data, "policy.pth": torch_bytes(state) if policy is None else policy}, method)


def with_pickle(pickle: bytes) -> bytes:
    """Return a model whose weights are what this pickle builds."""
    return sb3_model(policy=zip_bytes(unzip(torch_bytes(DQN)) | {"archive/data.pkl": pickle}))


def checksummed_file(
    folder: Path, weights: dict[str, Tensor] = DQN, facts: object = CARD, header: Callable[[str], str] = str
) -> bytes:
    """Return a checksummed expert file, the text of its header changed before its length is written."""
    path = folder / "made.safetensors"
    save_checksummed(path, weights, facts)  # type: ignore[arg-type]
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    text = header(data[8 : 8 + length].decode()).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def checksummed_file_with_metadata(folder: Path, facts: str) -> bytes:
    """Return a checksummed expert file with this text as its facts, and a valid SHA-256 if the text is JSON."""
    try:
        sha = digest_tensors(DQN, json.loads(facts))
    except (ValueError, RecursionError):
        sha = "0" * 64
    made = {"facts": facts, "sha256": sha}
    return checksummed_file(folder, header=lambda text: json.dumps(json.loads(text) | {"__metadata__": made}))


# Mutations of bytes.

NUMBERS = [b"-1", b"0", b"1e999", b"NaN", b"null", b"true", b'""', b"[]", b"9" * 5000, b"1.5", b"[" * 70 + b"]" * 70]
PLACES = [0, 1, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]
WORDS = [
    b"BF16",
    b"F8_E4M3",
    b"I64",
    b"C64",
    b"BFloat16Storage",
    b"LongStorage",
    b"_rebuild_sparse_tensor",
    b"bytearray",
]


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    mutated = bytearray(data or b"x")
    for _ in range(rng.choice([1, 1, 4, 40])):
        mutated[rng.randrange(len(mutated))] ^= 1 << rng.randrange(8)
    return bytes(mutated)


def truncate(data: bytes, rng: random.Random) -> bytes:
    position = rng.randrange(len(data) + 1)
    return rng.choice([data[:position], data[:position], data[position:]])


def splice(data: bytes, rng: random.Random) -> bytes:
    start, end, position = (rng.randrange(len(data) + 1) for _ in range(3))
    return data[:position] + data[min(start, end) : max(start, end)] * rng.choice([1, 1, 30]) + data[position:]


def insert(data: bytes, rng: random.Random) -> bytes:
    position = rng.randrange(len(data) + 1)
    insertions = [rng.randbytes(rng.choice([1, 4, 1000])), b"[" * 200_000, b"\0" * 100_000, b"PK\5\6" + bytes(18)]
    return data[:position] + rng.choice(insertions) + data[position:]


def replace_binary_number(data: bytes, rng: random.Random) -> bytes:
    """Replace a number of two, four or eight bytes near the start, near the end, or anywhere."""
    size = rng.choice([2, 4, 8])
    positions = range(max(1, len(data) - size))
    position = rng.choice(rng.choice([positions[:64], positions[-200:], positions]))
    return (
        data[:position] + (rng.choice(PLACES) & (1 << 8 * size) - 1).to_bytes(size, "little") + data[position + size :]
    )


def replace_number(data: bytes, rng: random.Random) -> bytes:
    """Replace a number in decimal digits."""
    found = [match.span() for match in re.finditer(rb"-?\d+(\.\d+)?", data)] or [(0, 0)]
    start, end = rng.choice(found)
    return data[:start] + rng.choice(NUMBERS) + data[end:]


def replace_word(data: bytes, rng: random.Random) -> bytes:
    """Replace a word."""
    found = [match.span() for match in re.finditer(rb"[A-Za-z]\w+", data)] or [(0, 0)]
    (start, end) = rng.choice(found)
    (other, last) = rng.choice(found)
    return data[:start] + rng.choice([*WORDS, data[other:last]]) + data[end:]


MUTATIONS_OF_BYTES = (flip_bits, truncate, splice, insert, replace_binary_number, replace_number, replace_word)


def mutate(data: bytes, number: int, rng: random.Random) -> bytes:
    """Return the bytes after one to three mutations, the first of them selected by `number`."""
    first = MUTATIONS_OF_BYTES[number % len(MUTATIONS_OF_BYTES)]
    for change in (first, *rng.choices(MUTATIONS_OF_BYTES, k=rng.choice([0, 0, 1, 2]))):
        data = change(data, rng)
    return data


def mutate_checksummed(folder: Path, number: int, rng: random.Random) -> bytes:
    """Return a checksummed expert whose tensors or facts were changed before the checksum was computed."""
    if number % 3 == 0:
        return checksummed_file_with_metadata(
            folder, mutate(json.dumps(CARD).encode(), number, rng).decode(errors="replace")
        )
    weights = dict(DQN)
    for name in rng.sample(list(weights), rng.choice([1, 2])):
        change = rng.choice(CHANGES)
        weights[name] = change(weights[name])
    return checksummed_file(folder, weights)


CHANGES: list[Callable[[Tensor], Tensor]] = [
    *(lambda w, dtype=dtype: w.to(dtype) for dtype in (torch.float16, torch.int64, torch.bool, torch.complex64)),
    *(lambda w, value=value: torch.full_like(w, value) for value in (torch.nan, torch.inf, 3e38, 0.0)),
    lambda w: w.double(),
    lambda w: w.reshape(-1),
    lambda w: w[None],
    lambda w: w[:-1],
    lambda w: w[:0],
    lambda w: w.T.contiguous() if w.ndim == 2 else w,
    lambda w: w.sum(),
]

# Classes of files: the mutation (folder, number, rng), and the suffix of the file name.
CLASSES: dict[str, tuple[Callable[[Path, int, random.Random], bytes], str]] = {
    "model": (lambda _, n, chance: mutate(sb3_model(method=8 * (n % 2)), n, chance), ".zip"),
    "weights in a model": (lambda _, n, chance: sb3_model(policy=mutate(torch_bytes(DQN), n, chance)), ".zip"),
    "pickle in a model": (
        lambda _, n, chance: with_pickle(mutate(unzip(torch_bytes(DQN))["archive/data.pkl"], n, chance)),
        ".zip",
    ),
    "settings in a model": (
        lambda _, n, chance: sb3_model(settings=mutate(json.dumps(SETTINGS).encode(), n, chance)),
        ".zip",
    ),
    "checksummed expert": (lambda folder, n, chance: mutate(checksummed_file(folder), n, chance), ".safetensors"),
    "checksummed expert, changed before": (mutate_checksummed, ".safetensors"),
    "JSON": (lambda _, n, chance: mutate(json.dumps(CARD).encode(), n, chance), ".json"),
    "JSON lines": (lambda _, n, chance: mutate(make_journal(), n, chance), ".jsonl"),
    "InkML": (lambda _, n, chance: mutate(inkml("a+b=c", 3).encode(), n, chance), ".inkml"),
}
HONEST: dict[str, Callable[[Path], bytes]] = {
    ".zip": lambda _: sb3_model(),
    ".safetensors": checksummed_file,
    ".json": lambda _: json.dumps(CARD).encode(),
    ".jsonl": lambda _: make_journal(),
    ".inkml": lambda _: inkml("a+b=c", 3).encode(),
}

# Reading in a separate process.

READING_PROCESS = r"""
import re, sys, time
from pathlib import Path
import numpy as np, torch
from aggrevated.core.errors import AggrevatedError
from aggrevated.experts.loading import load_expert
from aggrevated.storage import read_journal, read_json
from aggrevated.parsing.pages.inkml import read_inkml
from aggrevated.simulators.cartpole import CartPole
torch.set_num_threads(1)
def expert(path):
    found = load_expert(str(path), CartPole())
    for network in found.networks:
        assert all(np.isfinite(numbers).all() for numbers in (*network.weights, *network.biases))
    assert 0 <= found.discount <= 1 and found.act(CartPole().reset(np.arange(3)), 0).shape == (3,)
READERS = {".zip": expert, ".safetensors": expert, ".json": read_json, ".jsonl": read_journal, ".inkml": read_inkml}
EXTRA
def peak():  # in MB; ru_maxrss would count what the parent had before this process began
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) / 1024
for line in sys.stdin:
    path, began = Path(line.strip()), time.process_time()
    try:
        READERS[path.suffix](path)
        answer = "read"
    except AggrevatedError as error:
        answer = f"{type(error).__name__} {error}"
    print(time.process_time() - began, peak(), repr(answer), flush=True)
"""

Reader: TypeAlias = Callable[[Path], tuple[float, float, str]]
needs_memory_figures = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it"
)


@contextmanager
def reading_process(more_readers: str = "") -> Iterator[Reader]:
    """Start a process that reads files, and returns seconds, peak of memory so far, and what was printed for each.

    Args:
        more_readers: Python code that extends `READERS`, the functions that read files, by the endings of their names.
    """
    command = [sys.executable, "-W", "ignore", "-c", READING_PROCESS.replace("EXTRA", more_readers)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def read(path: Path) -> tuple[float, float, str]:
            assert process.stdin is not None and process.stdout is not None
            print(path, file=process.stdin, flush=True)
            answer = process.stdout.readline()
            assert answer, f"the reader of {path} died"
            seconds, peak, printed = answer.split(" ", 2)
            return float(seconds), float(peak), printed.strip()

        yield read


Mutation: TypeAlias = Callable[[Path, int, random.Random], bytes]


def check_mutated_files(
    folder: Path,
    read: Reader,
    classes: Mapping[str, tuple[Mutation, str]],
    honest: Mapping[str, Callable[[Path], bytes]],
) -> None:
    """Assert that every mutated file is read or refused, in less than 5 seconds and 500 MB.

    Args:
        folder: where the files are written.
        read: the process that reads them.
        classes: the mutation and the file suffix, by the name of a class of files.
        honest: a valid file, by its suffix.
    """
    paths = {}
    for kind, (_, ending) in classes.items():
        paths[kind] = folder / f"file{ending}"
        paths[kind].write_bytes(honest[ending](folder))
        assert read(paths[kind])[2] == "'read'", kind
    _, start, _ = read(next(iter(paths.values())))
    for kind, (mutate, _) in classes.items():
        rng = random.Random(kind)
        path = paths[kind]
        n_read = 0
        slowest = 0.0
        sentences = set()
        peak = start
        for number in range(MUTATIONS):
            path.write_bytes(mutate(folder, number, rng))
            seconds, peak, printed = read(path)
            assert seconds < 5 and peak - start < 500, (kind, number, seconds, peak - start)
            slowest = max(slowest, seconds)
            n_read += printed == "'read'"
            if printed != "'read'":
                assert re.match(r"""['"](Data|Storage|Usage)Error """, printed) and str(path) in printed, printed
                assert len(printed) < len(str(path)) + 450, printed
                sentences.add(re.sub(r"[\d'].*", "", printed.split(str(path))[1]))
        print(
            f"{kind}: {MUTATIONS} files, {n_read} read, {len(sentences)} sentences; slowest {slowest:.2f} s, "
            f"peak {peak - start:.0f} MB above the start"
        )
        assert n_read < MUTATIONS
