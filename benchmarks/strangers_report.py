"""The table and the figure of strangers.py, from its runs."""

import json
from statistics import mean

METHODS = ("aggrevated", "dagger")


def report(cases, folder, results):
    """Write strangers.{json,md,png}."""
    rows = [row for row in (row_of(name, case, folder) for name, case in cases.items()) if row]
    (results / "strangers.json").write_text(json.dumps(rows, indent=1) + "\n")
    (results / "strangers.md").write_text(page(rows, len(cases)))
    draw(rows, results / "strangers.png")


def row_of(name, case, folder):
    """Return the results of one case, or None without runs."""
    runs = {m: [json.loads(path.read_text()) for path in sorted(folder.glob(f"{name}; {m}; ?.json"))] for m in METHODS}
    if not all(runs.values()):
        return None
    paired = min(map(len, runs.values()))
    row = {"name": name, "expert_kind": case.kind, "seeds": paired}
    row |= {key: runs["aggrevated"][0][key] for key in ("oracle", "policy")}
    row["expert"] = mean(run["result"]["expert_return"] for own in runs.values() for run in own[:paired])
    for method, own in runs.items():
        results = [run["result"] for run in own[:paired]]
        error = mean(one["test_standard_error"] ** 2 for one in results) ** 0.5 / paired**0.5
        row[method] = {
            "return": mean(one["test_return"] for one in results),
            "standard_error": error,
            "returns": [one["test_return"] for one in results],
            "iterations": [one["iterations"] for one in results],
            "steps": [one["simulator_steps"] for one in results],
        }
    ours = row["aggrevated"]
    theirs = row["dagger"]
    noise = 2 * (ours["standard_error"] ** 2 + theirs["standard_error"] ** 2) ** 0.5
    row["not_below_expert"] = ours["return"] >= row["expert"] - 0.05 * abs(row["expert"]) - 2 * ours["standard_error"]
    row["not_below_dagger"] = ours["return"] >= theirs["return"] - noise
    return row


def page(rows, cases):
    """Return the page: a summary and a table."""
    n_expert = sum(row["not_below_expert"] for row in rows)
    n_dagger = sum(row["not_below_dagger"] for row in rows)
    lines = [
        "# Environments and experts that the library does not know",
        "",
        f"`python benchmarks/strangers.py run` and `report`: {len(rows)} of its {cases} cases, everything at default "
        "settings but for 30 iterations instead of 100, AggreVaTeD and DAgger with equally many trajectories. Returns "
        "are those of the chosen policy on 400 fresh episodes, means over seeds; ± "
        "is the standard error over episodes. *Not below* allows 5 % of the expert's return, and two standard errors.",
        "",
        f"Not below the expert: {n_expert} of {len(rows)}. Not below DAgger: {n_dagger} of {len(rows)}.",
        "",
        "![Returns beside those of the expert](strangers.png)",
        "",
        "| environment | expert | oracle | steps, ours and DAgger's | seeds | expert's return | AggreVaTeD | DAgger "
        "| not below |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        ours, theirs = (f"{row[m]['return']:.4g} ± {row[m]['standard_error']:.2g}" for m in METHODS)
        steps = " and ".join(f"{mean(row[m]['steps']):,.0f}" for m in METHODS)
        names = [name for name in ("expert", "dagger") if row[f"not_below_{name}"]]
        passed = " and ".join({"expert": "the expert", "dagger": "DAgger"}[name] for name in names) or "—"
        lines.append(
            f"| {row['name']} | {row['expert_kind']} | {row['oracle']} | {steps} | {row['seeds']} "
            f"| {row['expert']:.4g} | {ours} | {theirs} | {passed} |"
        )
    return "\n".join(lines) + "\n"


def draw(rows, path):
    """Plot the distance of each case from the expert, relative to the expert's return."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 0.28 * len(rows) + 1.2))
    for i, (method, colour) in enumerate(zip(METHODS, ("#1f5fa8", "#d08020"), strict=True)):
        unit = [max(abs(row["expert"]), 1e-9) for row in rows]
        x = [(row[method]["return"] - row["expert"]) / u for row, u in zip(rows, unit, strict=True)]
        y = [-k - 0.18 * (2 * i - 1) for k in range(len(rows))]
        error = [2 * row[method]["standard_error"] / u for row, u in zip(rows, unit, strict=True)]
        clipped = [max(min(one, 1.0), -1.0) for one in x]
        label = {"aggrevated": "AggreVaTeD", "dagger": "DAgger"}[method]
        axes.errorbar(clipped, y, xerr=error, fmt="o", ms=4, lw=1, color=colour, label=label)
    axes.axvline(0, color="black", lw=0.8)
    axes.axvline(-0.05, color="grey", lw=0.8, ls=":")
    axes.set_yticks([-k for k in range(len(rows))], [row["name"] for row in rows], fontsize=7)
    axes.set_xlim(-1.05, 1.05)
    axes.set_xlabel("(return − expert's) / |expert's|; dotted: −5 %")
    axes.legend(loc="lower left", fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120, metadata={"Software": None})
