"""Honest files in memory, and ways to spoil them: what the tests of hostile files are made of."""

import io
import json
import random
import re
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image, ImageDraw
from torch import Tensor

from aggrevated.storage import digest_tensors, save_checksummed
from aggrevated.storage.journal import encode_checksummed_line as sealed_line
from helpers.handwriting import inkml

DQN = OrderedDict(
    (f"{net}.q_net.{place}.{part}", torch.linspace(-1, 1, out * into if part == "weight" else out).reshape(shape))
    for net in ("q_net", "q_net_target")
    for place, into, out in ((0, 4, 8), (2, 8, 2))
    for part, shape in (("weight", (out, into)), ("bias", (out,)))
)
WEIGHT = "q_net.q_net.0.weight"
SETTINGS = {"policy_class": {":serialized:": "gAWV"}, "gamma": 0.98, "policy_kwargs": {"net_arch": [8]}, "n_envs": 1}
CARD = {"algorithm": "DQN", "activation": "relu", "settings": {"gamma": 0.99, "policy_kwargs": {"net_arch": [8]}}}


def journal() -> bytes:
    """Nine lines of metrics."""
    data = b""
    seal = ""
    for n in range(1, 10):
        line, seal = sealed_line({"n": n, "loss": float("-inf")}, seal)
        data += line
    return data


def saved(state: object) -> bytes:
    """As `torch.save` writes it."""
    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file with these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def members_of(data: bytes) -> dict[str, bytes]:
    """What a zip file holds."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {member.filename: archive.read(member) for member in archive.infolist()}


def model(state: object = DQN, settings: object = SETTINGS, policy: bytes | None = None, method: int = 0) -> bytes:
    """A Stable-Baselines3 model with these weights and settings, or with the bytes of them."""
    data = settings if isinstance(settings, bytes) else json.dumps(settings).encode()
    return zipped({"data": data, "policy.pth": saved(state) if policy is None else policy}, method)


def with_pickle(pickle: bytes) -> bytes:
    """A model whose weights are what that pickle builds."""
    return model(policy=zipped(members_of(saved(DQN)) | {"archive/data.pkl": pickle}))


def sealed(
    folder: Path, weights: dict[str, Tensor] = DQN, facts: object = CARD, header: Callable[[str], str] = str
) -> bytes:
    """A sealed expert, the text of its header changed before its length is written."""
    path = folder / "made.safetensors"
    save_checksummed(path, weights, facts)  # type: ignore[arg-type]
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    text = header(data[8 : 8 + length].decode()).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def with_facts(folder: Path, facts: str) -> bytes:
    """A sealed expert with this text as its facts, and a SHA-256 that fits if it is JSON."""
    try:
        sha = digest_tensors(DQN, json.loads(facts))
    except (ValueError, RecursionError):
        sha = "0" * 64
    made = {"facts": facts, "sha256": sha}
    return sealed(folder, header=lambda text: json.dumps(json.loads(text) | {"__metadata__": made}))


def picture() -> bytes:
    """A small PNG with a line on it."""
    page = Image.new("L", (120, 60), 255)
    ImageDraw.Draw(page).line((10, 10, 100, 50), 0, 4)
    file = io.BytesIO()
    page.save(file, "PNG")
    return file.getvalue()


# Ways to spoil bytes.

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


def bits(data: bytes, chance: random.Random) -> bytes:
    spoiled = bytearray(data or b"x")
    for _ in range(chance.choice([1, 1, 4, 40])):
        spoiled[chance.randrange(len(spoiled))] ^= 1 << chance.randrange(8)
    return bytes(spoiled)


def truncation(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data) + 1)
    return chance.choice([data[:place], data[:place], data[place:]])


def splice(data: bytes, chance: random.Random) -> bytes:
    start, end, place = (chance.randrange(len(data) + 1) for _ in range(3))
    return data[:place] + data[min(start, end) : max(start, end)] * chance.choice([1, 1, 30]) + data[place:]


def insertion(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data) + 1)
    what = [chance.randbytes(chance.choice([1, 4, 1000])), b"[" * 200_000, b"\0" * 100_000, b"PK\5\6" + bytes(18)]
    return data[:place] + chance.choice(what) + data[place:]


def header(data: bytes, chance: random.Random) -> bytes:
    """A number of two, four or eight bytes is another one: near the start, near the end, or anywhere."""
    size = chance.choice([2, 4, 8])
    places = range(max(1, len(data) - size))
    place = chance.choice(chance.choice([places[:64], places[-200:], places]))
    return data[:place] + (chance.choice(PLACES) & (1 << 8 * size) - 1).to_bytes(size, "little") + data[place + size :]


def numbers(data: bytes, chance: random.Random) -> bytes:
    """A number that is written out is another one."""
    found = [match.span() for match in re.finditer(rb"-?\d+(\.\d+)?", data)] or [(0, 0)]
    start, end = chance.choice(found)
    return data[:start] + chance.choice(NUMBERS) + data[end:]


def words(data: bytes, chance: random.Random) -> bytes:
    """A word is another one."""
    found = [match.span() for match in re.finditer(rb"[A-Za-z]\w+", data)] or [(0, 0)]
    (start, end) = chance.choice(found)
    (other, last) = chance.choice(found)
    return data[:start] + chance.choice([*WORDS, data[other:last]]) + data[end:]


MUTATORS = (bits, truncation, splice, insertion, header, numbers, words)


def spoiled(data: bytes, number: int, chance: random.Random) -> bytes:
    """The bytes after one to three mutations, the first of the kind whose turn it is."""
    for mutate in (MUTATORS[number % len(MUTATORS)], *chance.choices(MUTATORS, k=chance.choice([0, 0, 1, 2]))):
        data = mutate(data, chance)
    return data


def resealed(folder: Path, number: int, chance: random.Random) -> bytes:
    """An expert whose tensors or facts were changed before it was sealed, so that nothing but they can be noticed."""
    if number % 3 == 0:
        return with_facts(folder, spoiled(json.dumps(CARD).encode(), number, chance).decode(errors="replace"))
    weights = dict(DQN)
    for name in chance.sample(list(weights), chance.choice([1, 2])):
        change = chance.choice(CHANGES)
        weights[name] = change(weights[name])
    return sealed(folder, weights)


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

# The classes of files: how one is spoiled (folder, number, chance), and the ending of its name.
CLASSES: dict[str, tuple[Callable[[Path, int, random.Random], bytes], str]] = {
    "model": (lambda _, n, chance: spoiled(model(method=8 * (n % 2)), n, chance), ".zip"),
    "weights in a model": (lambda _, n, chance: model(policy=spoiled(saved(DQN), n, chance)), ".zip"),
    "pickle in a model": (
        lambda _, n, chance: with_pickle(spoiled(members_of(saved(DQN))["archive/data.pkl"], n, chance)),
        ".zip",
    ),
    "settings in a model": (
        lambda _, n, chance: model(settings=spoiled(json.dumps(SETTINGS).encode(), n, chance)),
        ".zip",
    ),
    "sealed expert": (lambda folder, n, chance: spoiled(sealed(folder), n, chance), ".safetensors"),
    "resealed expert": (resealed, ".safetensors"),
    "JSON": (lambda _, n, chance: spoiled(json.dumps(CARD).encode(), n, chance), ".json"),
    "JSON lines": (lambda _, n, chance: spoiled(journal(), n, chance), ".jsonl"),
    "InkML": (lambda _, n, chance: spoiled(inkml("a+b=c", 3).encode(), n, chance), ".inkml"),
    "picture": (lambda _, n, chance: spoiled(picture(), n, chance), ".png"),
}
