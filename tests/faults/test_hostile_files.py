"""Hostile files: each is read exactly or refused in one sentence, quickly and in little memory.

The cases are files that once caused a traceback, and random mutations: a few by default, 1,000 of each class with
AGGREVATED_FAULTS=all.
"""

import json
import os
import pickle
import re
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from aggrevated.core.errors import AggrevatedError, DataError
from aggrevated.experts.loading import BUILTIN_WEIGHTS, ExpertCard, load_expert, read_builtin_expert_cards
from aggrevated.experts.stable_baselines import MAX_WEIGHTS, load_sb3_zip
from aggrevated.simulators.cartpole import CartPole
from aggrevated.simulators.mujoco import MuJoCo
from aggrevated.storage import (
    digest_tensors,
    load_checksummed,
    read_journal,
    read_json,
    rewrite_journal,
    save_checksummed,
)
from aggrevated.storage.journal import MAX_LINE
from helpers.hostile_files import (
    ALL,
    CLASSES,
    DQN,
    HONEST,
    SETTINGS,
    WEIGHT,
    Reader,
    check_mutated_files,
    checksummed_file,
    checksummed_file_with_metadata,
    needs_memory_figures,
    reading_process,
    sb3_model,
    with_pickle,
    zip_bytes,
)

DEEP = b"[" * 200_000
LONG = b"9" * 5_000  # a number that Python refuses to convert
SPARSE = torch.eye(8, 4).to_sparse()
HALF = DQN[WEIGHT].to(torch.bfloat16)


def with_weight(weight: object) -> OrderedDict[str, object]:
    return OrderedDict(DQN, **{WEIGHT: weight})


def with_settings(**more: object) -> bytes:
    return sb3_model(settings=SETTINGS | more)


def tuples_of_tuples(width: int, depth: int) -> bytes:
    """Return a pickle of a dictionary whose key takes width ** depth steps to hash."""
    built = b"".join(b"(" + b"h\0" * width + b"tq\0" for _ in range(depth))
    return b"\x80\x02}q\1)q\0" + built + b"K\1s."


def zip_with_false_sizes(data: bytes, size: int) -> bytes:
    """Return the zip file with `size` as the declared unpacked size of every member."""
    for mark, place in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        for found in re.finditer(re.escape(mark), data):
            start = found.start() + place
            data = data[:start] + struct.pack("<I", size) + data[start + 4 :]
    return data


def zip_of_empty_members(members: int) -> bytes:
    return zip_bytes({str(place): b"" for place in range(members)})


def model_with_corrupt_weights() -> bytes:
    """Return a model whose compressed weights are corrupt."""
    data = bytearray(sb3_model(method=zipfile.ZIP_DEFLATED))
    start = data.index(b"policy.pth") + 100
    data[start : start + 50] = b"\xff" * 50
    return bytes(data)


MODELS: dict[str, tuple[Callable[[], bytes], str]] = {
    "a bomb as weights": (
        lambda: sb3_model(policy=bytes(MAX_WEIGHTS + 1), method=zipfile.ZIP_DEFLATED),
        "its policy.pth has 201,326,593 bytes, but at most 201,326,592 are read",
    ),
    "a bomb as settings": (
        lambda: sb3_model(settings=b" " * (17 << 20), method=zipfile.ZIP_DEFLATED),
        "its data has 17,825,792 bytes, but at most 16,777,216 are read",
    ),
    "a bomb that lies": (
        lambda: zip_with_false_sizes(sb3_model(policy=bytes(64 << 20), method=zipfile.ZIP_DEFLATED), 100),
        "Bad CRC-32",
    ),
    "a bomb in the weights": (
        lambda: sb3_model(policy=zip_bytes({"archive/data/0": bytes(MAX_WEIGHTS)} | {"archive/data/1": b"12"}, 8)),
        "its archive/data/1 has 2 bytes, but at most 0 are read",
    ),
    "corrupt deflate": (model_with_corrupt_weights, "Error -3 while decompressing"),
    "LZMA": (
        lambda: sb3_model(method=zipfile.ZIP_LZMA),
        "its policy.pth is encrypted, or its compression is not supported",
    ),
    "thousands of parts": (lambda: zip_of_empty_members(1_001), "it has more than 1,000 members"),
    "a huge directory": (lambda: zip_of_empty_members(30_000), "its directory has more than 1,048,576 bytes"),
    "no weights": (lambda: zip_bytes({"data": b"{}"}), "There is no item named 'policy.pth' in the archive"),
    "weights of the old format": (lambda: sb3_model(policy=pickle.dumps(1)), "File is not a zip file"),
    "settings that are a list": (lambda: sb3_model(settings=[1]), "its data is not a JSON object"),
    "settings that are deep": (lambda: sb3_model(settings=DEEP), "it is nested more than 64 deep"),
    "settings with many values": (lambda: sb3_model(settings=b"[" + b"1," * 2_000_001), "it holds more than 2,000,000"),
    "settings with a long number": (lambda: sb3_model(settings=b'{"gamma": ' + LONG + b"}"), "Exceeds the limit"),
    "settings that are not UTF-8": (lambda: sb3_model(settings=b'"\xff"'), "'utf-8' codec can't decode"),
    "layout that is a list": (lambda: with_settings(policy_kwargs=[1]), "has policy_kwargs that are not an object"),
    "null as gamma": (lambda: with_settings(gamma=None), "has gamma None; pass one with a number from 0 to 1"),
    "NaN as gamma": (lambda: with_settings(gamma=np.nan), "has gamma nan; pass one with a number from 0 to 1"),
    "a list as gamma": (lambda: with_settings(gamma=[0.9]), r"has gamma \[0.9\]; pass one with a number from 0 to 1"),
    "gamma above one": (lambda: with_settings(gamma=10**400), r"has gamma 10*\.\.\.; pass one with a number from 0"),
    "no dictionary": (lambda: sb3_model([DQN[WEIGHT]]), "its pickle has the opcode EMPTY_LIST"),
    "one tensor": (lambda: sb3_model(DQN[WEIGHT]), "it holds a Tensor, not tensors by name"),
    "names that are numbers": (lambda: sb3_model({1: DQN[WEIGHT]}), "it holds something besides tensors by name"),
    "values that are numbers": (lambda: sb3_model(with_weight(1)), "it holds something besides tensors by name"),
    "bfloat16": (lambda: sb3_model(with_weight(HALF)), f"has a {WEIGHT} of bfloat16; save the model in float32"),
    "float16": (lambda: sb3_model(with_weight(DQN[WEIGHT].half())), f"has a {WEIGHT} of float16; save the model in fl"),
    "float8": (lambda: sb3_model(with_weight(HALF.to(torch.float8_e5m2))), "only plain tensors are read"),
    "integers": (lambda: sb3_model(with_weight(DQN[WEIGHT].long())), f"has a {WEIGHT} of int64; save the model in flo"),
    "truth values": (lambda: sb3_model(with_weight(DQN[WEIGHT] > 0)), f"has a {WEIGHT} of bool; save the model in fl"),
    "complex": (lambda: sb3_model(with_weight(DQN[WEIGHT] * 1j)), f"has a {WEIGHT} of complex64; save the model in fl"),
    "sparse": (lambda: sb3_model(with_weight(SPARSE)), "_rebuild_sparse_tensor, but only plain tensors are read"),
    "meta": (lambda: sb3_model(with_weight(DQN[WEIGHT].to("meta"))), "only plain tensors are read"),
    "NaN": (lambda: sb3_model(with_weight(DQN[WEIGHT] * np.nan)), f"has a {WEIGHT} that is not finite; pass an expert"),
    "infinite": (lambda: sb3_model(with_weight(DQN[WEIGHT] / 0)), f"has a {WEIGHT} that is not finite; pass an expert"),
    "one dimension": (
        lambda: sb3_model(with_weight(torch.ones(4))),
        rf"has a {WEIGHT} of shape \[4\], which no dense layer has",
    ),
    "no numbers": (
        lambda: sb3_model(with_weight(torch.ones(8, 0))),
        rf"has a {WEIGHT} of shape \[8, 0\], which no dense layer",
    ),
    "wrong inner shape": (
        lambda: sb3_model(OrderedDict(DQN, **{"q_net.q_net.2.weight": torch.ones(2, 9)})),
        "has a layer q_net.q_net.2 from 9 to 2 with 2 biases, but its input has 8 numbers; save the model again",
    ),
    "more than its numbers": (
        lambda: sb3_model(with_weight(torch.ones(1).expand(10_000, 10_000))),
        "it holds a tensor that is larger than its storage",
    ),
    "a gigabyte of zeros": (
        lambda: with_pickle(b"\x80\x02cbuiltins\nbytearray\nJ\0\0\0\x40\x85R."),
        "it holds a builtins bytearray, but only plain tensors are read",
    ),
    "tuples without end": (lambda: with_pickle(tuples_of_tuples(2, 60)), "has tuples of more than 200 values"),
    "tuples that are deep": (lambda: with_pickle(b"\x80\x02})" + b"\x85" * 60_000 + b"K\1s."), "has tuples of more"),
    "a long pickle": (
        lambda: with_pickle(b"\x80\x02" + b")" * 70_000),
        "has 70,002 bytes, but at most 65,536 are read",
    ),
    "an empty pickle": (lambda: with_pickle(b"\x80\x02."), "is not a Stable-Baselines3 model"),
}


def assert_refused(words: str, path: Path, read: Callable[[], object]) -> None:
    """Assert that reading fails with exit code 65 and one line that has the path and these words."""
    with pytest.raises(DataError, match=words) as refused:
        read()
    message = str(refused.value)
    assert refused.value.exit_code == 65 and str(path) in message and "; " in message
    assert "\n" not in message and message.isprintable() and len(message) < len(str(path)) + 400


@pytest.mark.parametrize("kind", MODELS)
def test_load_expert_refuses_a_hostile_sb3_model(kind: str, tmp_path: Path) -> None:
    make_file, words = MODELS[kind]
    path = tmp_path / "model.zip"
    path.write_bytes(make_file())
    assert_refused(words, path, lambda: load_expert(str(path), CartPole()))


def test_load_expert_reads_sb3_models_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    parameters = OrderedDict((k, torch.nn.Parameter(w)) for k, w in DQN.items())
    transposed = OrderedDict(
        DQN, **{WEIGHT: DQN[WEIGHT].T.contiguous().T, "q_net_target.counter": torch.ones(3).long()}
    )
    for state in (DQN, parameters, transposed, dict(DQN)):
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            path.write_bytes(sb3_model(state, method=method))
            expert = load_expert(str(path), CartPole())
            assert expert.discount == 0.98
            for name, found in zip(("0", "2"), expert.networks[0].weights, strict=True):
                np.testing.assert_array_equal(found, DQN[f"q_net.q_net.{name}.weight"].numpy().T)
                assert found.flags["C_CONTIGUOUS"]
    path.write_bytes(sb3_model(OrderedDict((k, w.double()) for k, w in DQN.items())))
    assert load_expert(str(path), CartPole()).networks[0].weights[0].dtype == np.float64


class Marker:
    """Object whose unpickling leaves a mark."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch marker",)


def test_load_expert_runs_no_code_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.zip"
    command = b"cposix\nsystem\nX\x0c\0\0\0touch marker\x85R."
    pickle.loads(pickle.dumps(Marker()))
    Path("marker").unlink()  # the payload itself works
    evil = [with_weight(Marker()), Marker(), {"a": Marker()}]
    files = [sb3_model(state) for state in evil] + [
        with_pickle(b"\x80\x02" + command),
        sb3_model(policy=b"\x80\x02" + command),
    ]
    files += [sb3_model(policy=pickle.dumps(Marker())), sb3_model(settings=pickle.dumps(Marker()))]
    for data in files:
        path.write_bytes(data)
        assert_refused("is not a Stable-Baselines3 model", path, lambda: load_expert(str(path), CartPole()))
    path.write_bytes(
        with_settings(
            policy_kwargs={"activation_fn": "<class 'torch.nn.modules.activation.ReLU'>", ":serialized:": "gASVLw=="}
        )
    )
    load_expert(str(path), CartPole())
    save_checksummed(tmp_path / "a.safetensors", DQN, {"settings": {":serialized:": "gASVLw=="}})
    load_expert("a.safetensors", CartPole())
    assert not Path("marker").exists()


CHECKSUMMED: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "wrong inner shape": (
        lambda folder: checksummed_file(folder, {**DQN, "q_net.q_net.2.weight": torch.ones(2, 9)}),
        "has a layer q_net.q_net.2 from 9 to 2 with 2 biases, but its input has 8 numbers; save the model again",
    ),
    "wrong bias": (
        lambda folder: checksummed_file(folder, {**DQN, "q_net.q_net.0.bias": torch.ones(7)}),
        "has a layer q_net.q_net.0 from 4 to 8 with 7 biases, but its input has 4 numbers; save the model again",
    ),
    "one dimension": (
        lambda f: checksummed_file(f, {**DQN, WEIGHT: torch.ones(4)}),
        r"of shape \[4\], which no dense layer has",
    ),
    "three dimensions": (
        lambda f: checksummed_file(f, {**DQN, WEIGHT: torch.ones(1, 8, 4)}),
        r"of shape \[1, 8, 4\], which",
    ),
    "bfloat16": (
        lambda f: checksummed_file(f, {**DQN, WEIGHT: HALF}),
        f"its tensor {WEIGHT} has an unsupported type",
    ),
    "float8": (
        lambda f: checksummed_file(f, {**DQN, WEIGHT: HALF.to(torch.float8_e4m3fn)}),
        "has an unsupported type",
    ),
    "float16": (
        lambda f: checksummed_file(f, {**DQN, WEIGHT: HALF.half()}),
        f"has a {WEIGHT} of float16; save the model in ",
    ),
    "integers": (
        lambda f: checksummed_file(f, {**DQN, WEIGHT: HALF.long()}),
        f"has a {WEIGHT} of int64; save the model in f",
    ),
    "truth values": (
        lambda f: checksummed_file(f, {**DQN, WEIGHT: HALF > 0}),
        f"has a {WEIGHT} of bool; save the model in fl",
    ),
    "complex": (lambda f: checksummed_file(f, {**DQN, WEIGHT: DQN[WEIGHT] * 1j}), "has an unsupported type"),
    "NaN": (
        lambda f: checksummed_file(f, {**DQN, WEIGHT: DQN[WEIGHT] * np.nan}),
        f"has a {WEIGHT} that is not finite; pass",
    ),
    "minus infinity": (
        lambda f: checksummed_file(f, {**DQN, WEIGHT: DQN[WEIGHT] - np.inf}),
        "that is not finite; pass an ex",
    ),
    "a card that is a list": (lambda f: checksummed_file(f, facts=[1]), "its metadata is not a JSON object"),
    "a card that is deep": (
        lambda f: checksummed_file_with_metadata(f, DEEP.decode()),
        "it is nested more than 64 deep",
    ),
    "a card with a long number": (
        lambda f: checksummed_file_with_metadata(f, f'{{"n": {LONG.decode()}}}'),
        "Exceeds the limit",
    ),
    "half a character": (lambda f: checksummed_file_with_metadata(f, '{"n": "\\ud800"}'), "surrogates not allowed"),
    "settings that are a list": (
        lambda f: checksummed_file(f, facts={"settings": []}),
        "has settings that are not a JSON object; make",
    ),
    "null as gamma": (
        lambda f: checksummed_file(f, facts={"settings": {"gamma": None}}),
        "has gamma None; pass one with a num",
    ),
    "an unknown activation": (
        lambda f: checksummed_file(f, facts={"activation": ["x"]}),
        r"uses \['x'\]; pass one with an a",
    ),
    "a deep header": (
        lambda f: checksummed_file(f, header=lambda text: '{"a":' + DEEP.decode()),
        "nested more than 64 deep",
    ),
    "a header that is a list": (
        lambda f: checksummed_file(f, header=lambda text: "[]"),
        "its header is not a JSON object",
    ),
    "shapes without end": (
        lambda f: checksummed_file(f, header=lambda text: text.replace("[8,4]", f"[{2**63},0,{2**62}]")),
        "is damaged or is not a checksummed file",
    ),
    "a header as long as can be": (
        lambda f: b"\xff" * 8 + checksummed_file(f)[8:],
        "it is cut off, or its header is too large",
    ),
}


@pytest.mark.parametrize("kind", CHECKSUMMED)
def test_load_expert_refuses_a_hostile_checksummed_file(kind: str, tmp_path: Path) -> None:
    make_file, words = CHECKSUMMED[kind]
    path = tmp_path / "expert.safetensors"
    path.write_bytes(make_file(tmp_path))
    assert_refused(words, path, lambda: load_expert(str(path), CartPole()))


def test_load_expert_refuses_a_huge_file_unread(tmp_path: Path) -> None:
    path = tmp_path / "expert.safetensors"
    path.write_bytes(checksummed_file(tmp_path))
    with path.open("r+b") as file:
        file.truncate(1 << 40)  # a sparse file of one terabyte
    assert_refused(
        "it has 1,099,511,627,776 bytes, but at most 201,326,592 are read",
        path,
        lambda: load_expert(str(path), CartPole()),
    )


def test_load_expert_refuses_a_critic_of_wrong_shape(tmp_path: Path) -> None:
    weights, card = load_checksummed(BUILTIN_WEIGHTS / "hopper.safetensors")
    path = tmp_path / "expert.safetensors"
    for name, rows in (
        ("mlp_extractor.value_net.0.weight", torch.ones(64, 5)),
        ("value_net.weight", torch.ones(2, 64)),
    ):
        bias = {"value_net.bias": torch.ones(len(rows))} if name == "value_net.weight" else {}
        save_checksummed(path, weights | {name: rows} | bias, card)
        assert_refused("has a critic from", path, lambda: load_expert(str(path), MuJoCo("hopper")))


def test_digest_tensors_covers_every_type_and_keeps_published_digests() -> None:
    types = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.complex64, torch.bool, torch.int8)
    assert len({digest_tensors({"a": DQN[WEIGHT].to(dtype)}) for dtype in types}) == len(types)
    for tensor in (torch.tensor(1.5), torch.ones(0, 3), torch.ones(2, 3).T, torch.arange(3), torch.tensor([True])):
        header = f"a {tensor.dtype} {tuple(tensor.shape)}".encode()
        assert digest_tensors({"a": tensor}) == sha256(b"{}" + header + tensor.numpy().tobytes()).hexdigest()


TEXTS = {
    "brackets": (DEEP, "it is nested more than 64 deep"),
    "brackets around names": (b'{"a":' * 200_000, "it is nested more than 64 deep"),
    "a bracket after a quotation mark": (rb'["\\", ' + DEEP + rb'"]', "it is nested more than 64 deep"),
    "a long number": (b'{"n": ' + LONG + b"}", "Exceeds the limit"),
    "half a character": (rb'{"n": "\udead"}', "surrogates not allowed"),
    "many values": (b"[" + b"1," * 2_000_001, "it holds more than 2,000,000 values"),
    "many strings": (b"[" + b'""' * 2_000_001, "it holds more than 2,000,000 values"),
    "many bytes": (b" " * (17 << 20), "it has more than 16 MB"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "'utf-8' codec can't decode"),
    "no object": (b"[1]", "does not hold a JSON object"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_read_json_refuses_hostile_files(kind: str, tmp_path: Path) -> None:
    data, words = TEXTS[kind]
    path = tmp_path / "config.json"
    path.write_bytes(data)
    assert_refused(words, path, lambda: read_json(path))


@pytest.mark.parametrize(
    "kind", ["brackets", "a long number", "half a character", "many values", "many bytes", "no object"]
)
def test_read_journal_refuses_hostile_lines(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    rewrite_journal(path, [{"n": 1}, {"n": 2}])
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + TEXTS[kind][0] + b"\n" + second)
    if len(TEXTS[kind][0]) > MAX_LINE:  # lines after it are not read
        assert read_journal(path) == [{"n": 1}]
        return
    assert_refused("line 2 of .* was changed", path, lambda: read_journal(path))
    path.write_bytes(first + TEXTS[kind][0] + b"\n")  # it cannot be distinguished from a torn line
    assert read_journal(path) == [{"n": 1}]


def test_read_json_and_read_journal_accept_unusual_honest_content(tmp_path: Path) -> None:
    facts = {"ü": [[{"[" * 99: '\\"{'}]], "inf": [np.inf, -np.inf], "many": ["," * 3_000_000], "😀": "\\"}
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(facts))
    assert read_json(path) == facts
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(facts, ensure_ascii=False).encode())
    assert read_json(path) == facts
    rewrite_journal(path, [facts, {"a": -np.inf}])
    assert read_journal(path) == []  # the package never writes a line of three million commas
    del facts["many"]
    rewrite_journal(path, [facts, {"a": -np.inf}])
    path.write_bytes(path.read_bytes() + b'{"b": ')
    assert read_journal(path) == [facts, {"a": -np.inf}]  # up to the incomplete line


def test_file_readers_refuse_a_pipe_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (read_json, load_checksummed, load_sb3_zip, read_journal):
        assert_refused("is not a regular file; give the path of", pipe, lambda read=read: read(pipe))  # type: ignore[misc]


def test_load_expert_refuses_a_name_that_no_file_can_have() -> None:
    for length in (250, 5_000):
        with pytest.raises(AggrevatedError, match=r"File name too long|no expert"):
            load_expert("x" * length, CartPole())


def test_expert_card_refuses_values_of_wrong_types(tmp_path: Path) -> None:
    facts = read_builtin_expert_cards()["cartpole"].to_dict()
    assert ExpertCard.read(facts | {"mean_return": 300}, "a").mean_return == 300
    for more in ({"seed": "0"}, {"settings": []}, {"mean_return": None}, {"horizon": True}, {"task": 1}):
        with pytest.raises(DataError, match=f"a has a card with an invalid {next(iter(more))}; make it with"):
            ExpertCard.read(facts | more, "a")


@pytest.fixture
def reader() -> Iterator[Reader]:
    """Return a reader in a process of its own; it returns seconds, peak of memory so far, and what was printed."""
    with reading_process() as read:
        yield read


@needs_memory_figures
@pytest.mark.timeout(7200)
def test_file_readers_read_or_refuse_mutated_files_soon_and_in_little_memory(tmp_path: Path, reader: Reader) -> None:
    check_mutated_files(tmp_path, reader, CLASSES, HONEST)


def wide_expert(hidden: int) -> dict[str, torch.Tensor]:
    """Return the weights of an expert with two layers of `hidden` units."""
    shapes = {"0": (hidden, 4), "2": (hidden, hidden), "4": (2, hidden)}
    weights = {f"q_net.q_net.{place}.weight": torch.full(shape, 0.01) for place, shape in shapes.items()}
    return weights | {f"q_net.q_net.{place}.bias": torch.zeros(shape[0]) for place, shape in shapes.items()}


LARGEST: dict[str, Callable[[Path], bytes]] = {  # sizes at or near the limits
    "wide.zip": lambda _: sb3_model(wide_expert(7_000)),
    "packed.zip": lambda _: sb3_model(wide_expert(7_000), method=zipfile.ZIP_DEFLATED),
    "wide.safetensors": lambda folder: checksummed_file(folder, wide_expert(7_000)),
    "zeros.zip": lambda _: sb3_model(policy=bytes(MAX_WEIGHTS), method=zipfile.ZIP_DEFLATED),
    "many.safetensors": lambda folder: checksummed_file(folder, {f"{k}": torch.ones(()) for k in range(90_000)}),
    "objects.json": lambda _: b'{"a":[' + b'{"":1},' * 600_000 + b"1]}",
    "nested.json": lambda _: b'{"a":[' + (b'{"":' * 60 + b"1" + b"}" * 60 + b",") * 15_000 + b"1]}",
    "names.json": lambda _: b"{" + b",".join(b'"%07d":"%07d"' % (k, k) for k in range(800_000)) + b"}",
    "emoji.json": lambda _: b'{"a":"' + "😀".encode() * ((4 << 20) - 3) + b'"}',
    "marks.json": lambda _: b'""' * 2_000_000,
    "lines.jsonl": lambda _: b"".join(b'{"":{"":{"":{"":%d}}}}\n' % k for k in range(400_000)),
    "empty.jsonl": lambda _: b"{}\n" * 790_000,
    "emoji.jsonl": lambda _: (b'{"a":"' + b"a" * 1_000_000 + "😀".encode() + b'"}\n') * 67,
    "calls.zip": lambda _: with_pickle(b"\x80\x02ccollections\nOrderedDict\nq\0" + b")Rh\0" * 16_000 + b")R."),
    "collisions.zip": lambda _: with_pickle(
        b"\x80\x02}("
        + b"".join(b"\x8a\x0a" + (k * (2**61 - 1)).to_bytes(10, "little") + b"N" for k in range(5_000))
        + b"u."
    ),
}


@needs_memory_figures
@pytest.mark.skipif(not ALL, reason="writes some hundreds of MB")
@pytest.mark.parametrize("name", LARGEST)
def test_file_readers_read_the_largest_files_in_little_memory(name: str, tmp_path: Path, reader: Reader) -> None:
    path = tmp_path / name
    path.write_bytes(HONEST[path.suffix](tmp_path))
    _, start, _ = reader(path)
    path.write_bytes(LARGEST[name](tmp_path))
    seconds, peak, printed = reader(path)
    print(
        f"{name}: {path.stat().st_size >> 20} MB, {seconds:.2f} s, peak {peak - start:.0f} MB above the start,"
        f" {printed[:99]}"
    )
    assert seconds < 5 and peak - start < 500
