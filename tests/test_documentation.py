"""Documents: the names and files that they mention exist, and their examples run."""

import importlib
import importlib.util
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aggrevated import RollInPolicy, train
from aggrevated.cli import discover_commands
from aggrevated.rollout.roll_in import roll_in
from helpers.tiny_mdp import Home, Walk

ROOT = Path(__file__).parent.parent
GLOBS = ("*.md", "docs/**/*.md", "benchmarks/*.md", "packages/*/*.md")
PAGES = sorted(page for glob in GLOBS for page in ROOT.glob(glob))
MAP = (ROOT / "docs/paper-map.md").read_text()
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def is_importable(dotted: str) -> bool:
    """Return whether the dotted name is a module, or an attribute of one."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        try:
            for part in parts[cut:]:
                found = getattr(found, part)
        except AttributeError:
            return False
        return True
    return False


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(aggrevated(?:_\w+)?(?:\.\w+)+)`", MAP))))
def test_paper_map_name_is_importable(name: str) -> None:
    assert is_importable(name)


def test_paper_map_mentions_only_known_commands() -> None:
    commands = re.findall(r"`aggrevated ([\w-]+)", MAP)
    assert commands and set(commands) <= set(discover_commands(None))
    assert not is_importable("aggrevated.no_such_module")
    assert not is_importable("aggrevated.algorithm.no_such_name")


def test_paper_map_has_every_algorithm_line_and_equation() -> None:
    for line in (1, 2, 4, 5, 6, 7, 9):
        assert re.search(rf"^\| {line} \|", MAP, re.MULTILINE), f"line {line}"
    numbers = [int(n) for row in re.findall(r"^\| ([\d, ]+) \| ", MAP, re.MULTILINE) for n in row.split(",")]
    assert set(range(1, 15)) <= set(numbers)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_document_links_lead_to_existing_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("https://") or (page.parent / target).exists(), target


def test_readme_call_trains_a_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ppo = pytest.importorskip("stable_baselines3", reason="no Stable-Baselines3").PPO
    pytest.importorskip("Box2D", reason="no Box2D, in which LunarLander is")
    monkeypatch.chdir(tmp_path)
    ppo("MlpPolicy", "LunarLander-v3", device="cpu").save("ppo.zip")
    call, _ = CODE.findall((ROOT / "README.md").read_text())
    few = "iterations=1, horizon=60, validation_episodes=2, test_episodes=2)"
    scope: dict[str, object] = {"observation": np.zeros(8, np.float32)}
    exec(call.replace('expert="ppo.zip")', f'expert="ppo.zip", {few}'), scope)
    assert (tmp_path / "runs" / "LunarLander-v3-aggrevated-exponentiated" / "curve.png").is_file()


def test_readme_loop_surpasses_200() -> None:
    scope: dict[str, object] = {}
    exec(CODE.findall((ROOT / "README.md").read_text())[1], scope)
    assert scope["iteration"].best_return > 200  # type: ignore[attr-defined]


def test_guide_examples_run(tmp_path: Path) -> None:
    scope: dict[str, object] = {}
    continuous, corridor, loop, experts, _, engines = CODE.findall((ROOT / "docs/guide.md").read_text())
    exec(corridor, scope)
    exec(loop, scope)
    exec(experts, scope)
    oracle = scope["oracle"]
    trajectories = roll_in(scope["corridor"], RollInPolicy(scope["clone"], None, 1.0), np.arange(2))
    assert oracle(trajectories).values[0, 1].tolist() == [2.0, 0.0]  # type: ignore[operator]
    walk: dict[str, object] = {"simulator": Walk(), "expert": Home()}
    exec(continuous.replace("FeedForwardPolicy(3, GaussianHead(1,", "FeedForwardPolicy(1, GaussianHead(2,"), walk)
    assert next(walk["learning"]).n == 1  # type: ignore[call-overload]
    small = f'"cartpole", iterations=1, horizon=20, test_episodes=4, out="{tmp_path}/run", trajectories=4'
    exec(engines.replace('"hopper", trajectories=50', small).replace("ProcessEngine(8)", "ProcessEngine(2)"), scope)
    assert scope["run"].result().iterations == 1  # type: ignore[attr-defined]


def test_parsing_examples_run() -> None:
    reading, of_files, example = CODE.findall((ROOT / "docs/parsing.md").read_text())
    exec(reading, {})
    exec(of_files.replace("page.png", str(ROOT / "docs/images/page.png")), found := dict[str, Any]())
    assert found["parsed"].text.splitlines() == ["3(x+2)=21", "x+2=21/3", "x=5"] and not found["parsed"].doubts
    scope: dict[str, object] = {}
    exec(example.replace("sets=100", "sets=20").replace("islice(learning, 40)", "islice(learning, 2)"), scope)
    assert 0 < scope["iteration"].best_return < 1  # type: ignore[attr-defined]


def test_settings_page_equals_component_declarations() -> None:
    spec = importlib.util.spec_from_file_location("make_settings", ROOT / "docs/make_settings.py")
    assert spec is not None and spec.loader is not None
    make_settings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_settings)
    written = (ROOT / "docs/settings.md").read_text()
    assert written == make_settings.make_page(), "run 'python docs/make_settings.py'"
    assert "| `--delta-kl` |" in written and "| `--augmented-copies` |" in written


def test_architecture_task_and_update_train(tmp_path: Path) -> None:
    task, update = CODE.findall((ROOT / "docs/architecture.md").read_text())
    scope: dict[str, object] = {"__name__": "page"}
    exec(task, scope)
    exec(update, scope)
    whole = replace(scope["TASK"], components=(scope["SignedSettings"],))  # type: ignore[type-var]
    few = {"iterations": 1, "trajectories": 2, "horizon": 30, "validation_episodes": 2, "test_episodes": 2}
    run = train(whole, update="signed", start_steps=2, out=tmp_path / "run", **few)
    assert run.config.update.step_size == 0.01 and run.policy.predict([-0.5, 0.0])[0] in (0, 1, 2)


def test_export_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="pip install 'aggrevated[onnx]'")
    pytest.importorskip("onnx", reason="pip install 'aggrevated[onnx]'")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    few = "horizon=30, trajectories=2, validation_episodes=2, test_episodes=2, iterations=2"
    for example in CODE.findall((ROOT / "docs/export.md").read_text()):
        exec(re.sub(r"iterations=\d", few, example), scope)
    assert scope["action"].tolist() in ([0], [1])  # type: ignore[attr-defined]
    assert (tmp_path / "p.safetensors").is_file()
