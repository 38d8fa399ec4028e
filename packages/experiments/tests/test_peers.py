"""Results of other libraries read from files, and the cost of training the experts."""

import shutil
from pathlib import Path

import pytest

from aggrevated.core.errors import DataError
from aggrevated.storage import read_json, write_json
from aggrevated_experiments.learning_curves_page import write_with_peers
from aggrevated_experiments.peers import find_expert_training_steps, load_peers

PUBLISHED = Path(__file__).parents[3] / "docs/results"
CONTROL = ("cartpole", "acrobot", "acrobot-partial", "hopper", "walker")


def write_peer_file(folder: Path, name: str, **changed: object) -> None:
    """Write a file as benchmarks/tuned_peers.py does, with two seeds, of which the second never reaches the expert."""
    facts = {
        **{"task": "acrobot", "label": "PPO", "budget": 100, "chosen": "zoo", "settings": {"n_steps": 8}},
        **{"steps_to_expert": [64, None], "steps_to_beyond": [None, None], "best_return": [-90.0, -200.0]},
        "curves": {
            "0": {"steps": [0, 64, 100], "returns": [-200.0, -90.0, -91.0], "cpu_seconds": 1.5},
            "1": {"steps": [0, 100], "returns": [-200.0, -200.0], "cpu_seconds": 2.0},
        },
    }
    (folder / "peers/tuned").mkdir(parents=True, exist_ok=True)
    whole = {name: value for name, value in (facts | changed).items() if value is not None}
    write_json(folder / f"peers/tuned/{name}.json", whole)


def test_load_peers_reads_files_and_keeps_seeds_that_never_reach_the_expert(tmp_path: Path) -> None:
    write_peer_file(tmp_path, "ppo-acrobot")
    (peer,) = load_peers("acrobot", tmp_path)
    assert (peer.label, peer.budget, peer.chosen) == ("PPO", 100, "zoo")
    assert peer.seeds == [0, 1] and peer.to_expert == [64, None] and peer.to_beyond == [None, None]
    assert peer.best_return == [-90.0, -200.0] and peer.cpu_seconds == [1.5, 2.0]
    assert peer.curves[1] == ([0, 100], [-200.0, -200.0])


def test_load_peers_reads_only_finished_files_of_the_task(tmp_path: Path) -> None:
    assert load_peers("acrobot", tmp_path) == []
    write_peer_file(tmp_path, "ppo-acrobot-partial", task="acrobot-partial")
    write_peer_file(tmp_path, "dqn-acrobot", chosen=None)
    assert load_peers("acrobot", tmp_path) == []
    assert len(load_peers("acrobot-partial", tmp_path)) == 1


def test_load_peers_error_names_the_invalid_file(tmp_path: Path) -> None:
    write_peer_file(tmp_path, "ppo-acrobot", steps_to_expert=None)
    with pytest.raises(DataError, match=r"ppo-acrobot\.json.*steps_to_expert"):
        load_peers("acrobot", tmp_path)


@pytest.mark.parametrize("task", CONTROL)
def test_published_peer_steps_follow_from_their_curves(task: str) -> None:
    assert load_peers(task, PUBLISHED)
    for path in sorted((PUBLISHED / "peers/tuned").glob(f"*-{task}.json")):
        facts = read_json(path)
        assert "chosen" in facts, f"{path} is not finished"
        for level, key in (("expert", "steps_to_expert"), ("beyond", "steps_to_beyond")):
            for curve, steps in zip(facts["curves"].values(), facts[key], strict=True):
                points = zip(curve["steps"], curve["returns"], strict=True)
                assert steps == next((n for n, r in points if r >= facts[level]), None)


@pytest.mark.parametrize("task", CONTROL)
def test_write_with_peers_reproduces_the_published_page(task: str, tmp_path: Path) -> None:
    for path in [PUBLISHED / f"{task}.json", *(PUBLISHED / "peers/tuned").glob(f"*-{task}.json")]:
        (tmp_path / path.relative_to(PUBLISHED)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(PUBLISHED))
    write_with_peers(task, tmp_path)
    for ending in ("json", "md"):
        assert (tmp_path / f"{task}.{ending}").read_text() == (PUBLISHED / f"{task}.{ending}").read_text()


def test_write_with_peers_adds_and_removes_rows_of_other_libraries(tmp_path: Path) -> None:
    shutil.copy(PUBLISHED / "acrobot.json", tmp_path)
    write_with_peers("acrobot", tmp_path)
    alone = read_json(tmp_path / "acrobot.json")
    assert all(row["label"] in alone["settings"] for row in alone["reach"])
    write_peer_file(tmp_path, "ppo-acrobot")
    write_with_peers("acrobot", tmp_path)
    found = read_json(tmp_path / "acrobot.json")
    assert found["reach"][:-1] == alone["reach"] and found["reach"][-1]["label"] == "PPO"
    assert found["bits"] != alone["bits"] and found["machine"] == alone["machine"]
    assert "| PPO | 64 | 64 to never | 1 of 2 |" in (tmp_path / "acrobot.md").read_text()


def test_expert_training_steps_are_those_of_its_training() -> None:
    assert {task: find_expert_training_steps(task) for task in CONTROL} == {
        "cartpole": 28_160,
        "acrobot": 18_000,
        "acrobot-partial": 18_000,
        "hopper": 30_720,
        "walker": 409_600,
    }
    assert find_expert_training_steps("algebra") is None
