"""Pages read by a policy of the task algebra: frames of the parse, heads and printed lines."""

from pathlib import Path

import pytest
import torch

from aggrevated.config.builder import build_algorithm_inputs
from aggrevated.parsing.pages.handwriting import write_page
from aggrevated.training.run_folder import Run
from aggrevated_reader.pages_report import ParsedPage, format_arcs, list_frames, load_run_reader, select_frames
from aggrevated_reader.pictures.segmentation import SegmentedPage
from helpers.algebra_runs import make_tiny_config
from helpers.small_runs import create_and_run


def test_frames_of_a_page_show_the_parse_step_by_step(tmp_path: Path) -> None:
    run, _ = create_and_run(tmp_path / "run", make_tiny_config(iterations=1, validate_every=1))
    page = write_page(["x=3+a", "a=2"], 5, 0)
    reads = load_run_reader(run).reads
    heads = reads.read([page])[0].heads.tolist()
    frames = list_frames(*reads.make_parser(page))
    assert len(heads) == 8 and all(0 <= head <= 8 and head != number for number, head in enumerate(heads, 1))
    assert frames[0][3] == "start" and frames[0][1] == [0] and frames[0][2] == 1 and (frames[0][0] == -1).all()
    assert frames[-1][2] == 9 and all(int(head) in (-1, own) for head, own in zip(frames[-1][0], heads, strict=True))
    assert [len(select_frames(frames, count)) for count in (1, 3, 6)] == [1, 3, 6] and select_frames(frames, 1) == [
        frames[-1]
    ]
    assert select_frames(frames[:2])[-1] is frames[1]
    lines = format_arcs(ParsedPage(Path("page"), SegmentedPage(page), reads.read([page])[0]))
    assert len(lines) == 8 and lines[0].split()[:2] == ["1", "x"] and lines[0].split()[3] == str(heads[0])


def test_read_attaches_symbols_without_head_to_the_first_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The policy only shifts."""
    config = make_tiny_config()
    policy = build_algorithm_inputs(config).learner.policy
    with torch.no_grad():
        policy.readout.weight.zero_()
        policy.readout.bias.copy_(torch.tensor([5.0, 0.0, 0.0, 0.0]))
    monkeypatch.setattr(Run, "policy", policy)
    reads = load_run_reader(Run(tmp_path, config)).reads
    page = write_page(["x=3"], 5, 0)
    heads = reads.read([page])[0].heads.tolist()
    frames = list_frames(*reads.make_parser(page))
    assert heads == [0, 1, 1] and [frame[3] for frame in frames] == ["start", "shift", "shift", "shift"]
    assert frames[-1][0].tolist() == [-1, -1, -1]
