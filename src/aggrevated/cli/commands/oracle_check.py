"""`aggrevated oracle-check`: compare the dynamic oracles of the parser with brute force."""

from dataclasses import dataclass


@dataclass(frozen=True)
class OracleCheck:
    """Compare the cost-to-go of every transition with brute force, in every reachable state.

    Try:
      aggrevated oracle-check --trees 50
      aggrevated oracle-check --trees 500 --symbols 7 --json
    """

    command = "oracle-check"
    trees: int = 500
    """Number of random projective trees for each transition system."""
    symbols: int = 7
    """Largest number of symbols of a tree, 1 to 9; each more triples the states."""
    seed: int = 0
    """Seed of the trees."""
    json: bool = False
    """Print one JSON object per transition system, in a list."""

    def run(self) -> None:
        """Check both transition systems; fail if there is a mismatch."""
        from aggrevated.cli.console import print_note, print_table
        from aggrevated.core.errors import AggrevatedError
        from aggrevated.core.settings import SEED, at_least, check_setting
        from aggrevated.parsing.transitions.oracle_check import compare_with_brute_force
        from aggrevated.parsing.transitions.systems import SYSTEMS
        from aggrevated.reports import Table

        at_least(1).check("trees", self.trees)
        check_setting(1 <= self.symbols <= 9, "symbols", self.symbols, "from 1 to 9")
        SEED.check("seed", self.seed)
        results = []
        for name in SYSTEMS:
            comparison = compare_with_brute_force(name, self.trees, self.symbols, self.seed)
            print_note(
                "{system}: {trees} trees, {compared} transitions compared, {mismatches} mismatches".format(**comparison)
            )
            results.append(comparison)
        n_mismatches = sum(int(result["mismatches"]) for result in results)
        print_table(Table(results, closing=f"{n_mismatches} mismatches"), self.json)
        if n_mismatches:
            raise AggrevatedError(
                f"the oracle and brute force differ for {n_mismatches} transitions; this is a bug, please report it"
            )
