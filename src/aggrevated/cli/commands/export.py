"""`aggrevated export`: the best policy as files that need no run folder."""

from dataclasses import dataclass

from tyro.conf import Positional

from aggrevated.cli.options import File, RunFolder, Trust

FILE_SUFFIXES = {"out": ".safetensors", "onnx": ".onnx", "model_card": ".md"}


@dataclass(frozen=True)
class Export:
    """Write the best policy as one file, as ONNX, or as a model card.

    'aggrevated.load_policy' reads the .safetensors file in Python. The ONNX file is compared with onnxruntime. Of
    several trials, the best on validation is written. Without options, p.safetensors and card.md go to the run folder.

    Try:
      aggrevated export runs/cartpole-aggrevated-exponentiated
      aggrevated export runs/cartpole-aggrevated-exponentiated --onnx cartpole.onnx --model-card cartpole.md --json
    """

    command = "export"
    run_folder: Positional[RunFolder]
    """Run folder."""
    out: File = None
    """Policy file for 'aggrevated.load_policy', .safetensors."""
    onnx: File = None
    """ONNX file, .onnx."""
    model_card: File = None
    """Model card, .md: the policy, its expert, its return and the command that trains it again."""
    trust_code: Trust = False
    json: bool = False
    """Print the paths as one JSON object."""

    def run(self) -> None:
        """Write the files and print their paths."""
        from aggrevated.cli.console import print_dict, print_note
        from aggrevated.core.settings import check_setting
        from aggrevated.storage import JsonDict, write_atomically
        from aggrevated.training.model_card import make_model_card, make_policy_metadata
        from aggrevated.training.run_folder import list_runs

        paths = {name: getattr(self, name) for name in FILE_SUFFIXES}
        for name, ending in FILE_SUFFIXES.items():
            path = paths[name]
            check_setting(path is None or path.suffix == ending, name, path, f"a file name that ends in {ending}")
        runs = list_runs(self.run_folder, self.trust_code)
        run = runs[0] if len(runs) == 1 else max(runs, key=lambda run: run.load_partial_result().best_return)
        if not any(paths.values()):
            paths |= {"out": run.folder / "p.safetensors", "model_card": run.folder / "card.md"}
        result: JsonDict = {"run": str(run.folder)}
        if paths["out"] is not None:
            run.policy.save(paths["out"], make_policy_metadata(run))
            result["out"] = str(paths["out"])
        if paths["onnx"] is not None:
            from aggrevated.export.onnx_files import export_onnx

            difference = export_onnx(run.policy, paths["onnx"], make_policy_metadata(run))
            result |= {"onnx": str(paths["onnx"]), "largest_difference": difference}
            if difference is None:
                print_note(
                    "the ONNX file is not checked, since onnxruntime is not installed: pip install 'aggrevated[onnx]'"
                )
        if paths["model_card"] is not None:
            write_atomically(paths["model_card"], make_model_card(run).encode())
            result["model_card"] = str(paths["model_card"])
        print_dict(result, self.json)
