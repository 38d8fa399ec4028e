"""What a Stable-Baselines3 zip holds: its tensors, and what it says in words. Nothing that is pickled in it is run."""

import io
import re
from pathlib import Path
from typing import Any, BinaryIO

from torch import Tensor

from aggrevated.actors.activations import named_by_torch
from aggrevated.errors import DataError
from aggrevated.experts.checkpoint_formats import FUNCTION, kind_of
from aggrevated.storage import MAX_JSON, Facts, chunks, decoded, in_short, open_zip, parsed, plain_file, read_state_dict

MAX_WEIGHTS = 192 << 20  # bytes, 50 million float32: reading takes twice as much
OWN = re.compile(r"(stable_baselines3|sb3_contrib)\b")  # modules whose policies do what the names of their tensors say
FLATTENING = ("FlattenExtractor'>", "CombinedExtractor'>")


def stable_baselines(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """The weights in a Stable-Baselines3 zip, and of all that it says, what a network needs to be run."""
    tensors, settings = unzipped(path)
    layout = settings.get("policy_kwargs") or {}
    if not isinstance(layout, dict):
        raise DataError(f"the expert {path} has policy_kwargs that are no object; save it again with model.save")
    check_own(path, settings.get("policy_class"), layout)
    return tensors, {
        "activation": activation_in(path, tensors, layout),
        "gamma": discount(path, settings),
        "finite": "log_std" not in tensors if "action_net.weight" in tensors else None,
        "squash": layout.get("squash_output") is True,
        "clip_mean": clip_in(path, layout),
    }


def unzipped(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """(tensors by name, its JSON)."""
    with plain_file(path, "a Stable-Baselines3 model") as file:
        try:
            policy, data = unpacked(file)
            tensors, settings = read_state_dict(policy, MAX_WEIGHTS), parsed(decoded(data))
            if not isinstance(settings, dict):
                raise DataError("its data is no JSON object")
        except OSError:
            raise
        except Exception as error:  # what decoders may say about hostile bytes is not written down anywhere
            raise DataError(
                f"{path} is not a Stable-Baselines3 model ({in_short(error)}); save it again with model.save"
            ) from error
    return tensors, settings


def unpacked(file: BinaryIO) -> tuple[BinaryIO, bytes]:
    """(policy.pth, data), in memory."""
    with open_zip(file) as archive:
        policy = io.BytesIO()
        policy.writelines(chunks(archive, archive.getinfo("policy.pth"), MAX_WEIGHTS))
        return policy, b"".join(chunks(archive, archive.getinfo("data"), MAX_JSON))


def check_own(path: Path, policy: Any, layout: Facts) -> None:
    """Raise a `DataError` if its policy or its features are of a class that may do something else."""
    module = policy.get("__module__") if isinstance(policy, dict) else None
    if module is not None and not OWN.match(str(module)):
        raise DataError(f"the expert {path} has a policy of a class of its own, in {in_short(module, 60)}; {FUNCTION}")
    features = layout.get("features_extractor_class")
    if features is not None and not (str(features).endswith(FLATTENING) and OWN.search(str(features))):
        raise DataError(f"the expert {path} sees by {in_short(features, 80)}, which is not read; {FUNCTION}")


def activation_in(path: Path, tensors: dict[str, Tensor], layout: Facts) -> str:
    """What the zip says in words of its activation, or else Stable-Baselines3's usual one for such a model."""
    named = str(layout.get("activation_fn", ""))
    if not named:
        kind = kind_of(tensors)
        return kind.usual if kind else "relu"
    activation = named_by_torch(named)
    if activation is None:
        raise DataError(
            f"the expert {path} uses {in_short(named)}; give one with an activation of torch.nn that has no parameters"
        )
    return activation


def discount(path: Path, settings: Facts) -> float:
    """γ, if it is one."""
    gamma: Any = settings.get("gamma", 0.99)
    if not isinstance(gamma, int | float) or isinstance(gamma, bool) or not 0 <= gamma <= 1:
        raise DataError(f"the expert {path} has gamma {in_short(gamma, 40)}; give one with a number from 0 to 1")
    return float(gamma)


def clip_in(path: Path, layout: Facts) -> float:
    """Where the mean of a SAC with noise on states is clipped."""
    clip: Any = layout.get("clip_mean", 2.0)
    if not isinstance(clip, int | float) or isinstance(clip, bool) or not 0 <= clip < 1e30:
        raise DataError(
            f"the expert {path} has clip_mean {in_short(clip, 40)}; give one with a number that is not negative"
        )
    return float(clip)
