"""`aggrevated export`: the learned policy as files that need no run folder."""

from dataclasses import dataclass

from tyro.conf import Positional

from aggrevated.cli.options import File, RunFolder, Trust

FILE_SUFFIXES = {"out": ".safetensors", "onnx": ".onnx", "model_card": ".md"}


@dataclass(frozen=True)
class Export:
    """Write the chosen policy as a file of its own, as ONNX, or what there is to say of it as a card.

    'aggrevated.load' reads the first in Python, without the run folder; onnxruntime reads the second anywhere, against
    which it is checked first. Of several trials it is the best on validation. Without options: p.safetensors and
    card.md in the run folder.

    Try:
      aggrevated export runs/cartpole-aggrevated-exponentiated
      aggrevated export runs/cartpole-aggrevated-exponentiated --onnx cartpole.onnx --model-card cartpole.md --json
    """

    command = "export"
    run_folder: Positional[RunFolder]
    """The folder that 'aggrevated train' made."""
    out: File = None
    """Where the policy goes, a .safetensors file for 'aggrevated.load'."""
    onnx: File = None
    """Where the policy goes as ONNX, an .onnx file."""
    model_card: File = None
    """Where its card goes, a .md file: what it is, from whom, how good, by which command."""
    trust_code: Trust = False
    json: bool = False
    """Print where they went as one JSON object."""

    def run(self) -> None:
        """Write what was asked for, and print where it is."""
        from aggrevated.cli.console import print_dict, print_note
        from aggrevated.core.settings import check_setting
        from aggrevated.storage import JsonDict, write_atomically
        from aggrevated.training.model_card import make_model_card, make_policy_metadata
        from aggrevated.training.run_folder import list_runs

        wanted = {name: getattr(self, name) for name in FILE_SUFFIXES}
        for name, ending in FILE_SUFFIXES.items():
            path = wanted[name]
            check_setting(path is None or path.suffix == ending, name, path, f"a file name that ends in {ending}")
        runs = list_runs(self.run_folder, self.trust_code)
        run = runs[0] if len(runs) == 1 else max(runs, key=lambda run: run.load_partial_result().best_return)
        if not any(wanted.values()):
            wanted |= {"out": run.folder / "p.safetensors", "model_card": run.folder / "card.md"}
        facts: JsonDict = {"run": str(run.folder)}
        if wanted["out"] is not None:
            run.policy.save(wanted["out"], make_policy_metadata(run))
            facts["out"] = str(wanted["out"])
        if wanted["onnx"] is not None:
            from aggrevated.export.onnx_files import export_onnx

            difference = export_onnx(run.policy, wanted["onnx"], make_policy_metadata(run))
            facts |= {"onnx": str(wanted["onnx"]), "largest_difference": difference}
            if difference is None:
                print_note("not checked against onnxruntime, which is not installed: pip install 'aggrevated[onnx]'")
        if wanted["model_card"] is not None:
            write_atomically(wanted["model_card"], make_model_card(run).encode())
            facts["model_card"] = str(wanted["model_card"])
        print_dict(facts, self.json)
