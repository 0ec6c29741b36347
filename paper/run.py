"""Train what Tables 1 and 2 need: the paper's nested cross-validation on its seven data sets.

    python paper/run.py yacht boston          the paper's six arms, 1000 epochs a stage
    python paper/run.py --default yacht       AutoRegressor's defaults on the same outer folds
    python paper/run.py --dry-run             what it would cost, and what it cost the authors

Finished folds are kept in paper/runs and never trained again; finished data sets are written to
paper/results as CSV. Needs the data sets (MVENET_DATA or a network).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd
from sklearn.model_selection import KFold

from mvenet import AutoRegressor, compare_strategies, datasets, recipes
from mvenet.comparison import Plan, plan_comparison, strategy_arms
from mvenet.comparison._store import Store

HERE = Path(__file__).parent
DATASETS = ("yacht", "boston", "energy", "concrete", "wine_red", "kin8nm", "protein")
COLUMNS = ["fold", "strategy", "regularization", "loglik", "rmse", "reg_mean", "reg_var"]


def n_folds(name: str) -> int:
    """The paper's number of outer folds, and of inner ones."""
    return 5 if name in ("kin8nm", "protein") else 10


def arguments(name: str, default: bool, epochs: int | None) -> dict:
    """Arguments of compare_strategies: the authors' own splits, so that cells can be compared."""
    k = n_folds(name)
    settings = {} if epochs is None else {"epochs": epochs, "warmup_epochs": epochs}
    if default:
        arms = {"default": AutoRegressor()}
    else:
        arms = strategy_arms(**{**recipes.PAPER, **settings})
    return {
        "arms": arms,
        "outer_cv": KFold(k, shuffle=True, random_state=1),
        "inner_cv": None if default else KFold(k, shuffle=True, random_state=5),
        "random_state": 1,
    }


def run(
    name: str, *, default: bool, epochs: int | None, runs: Path, results: Path, dry: bool
) -> Plan:
    """Train one data set, or go on with it, and write its CSV; what there was to do."""
    data = datasets.load(name)
    label = f"{name}-default" if default else name
    what = arguments(name, default, epochs)
    plan = plan_comparison(data.X, data.y, store=runs / label, **what)
    print(f"{label}: {plan}", flush=True)
    if dry:
        return plan
    outcome = compare_strategies(data.X, data.y, store=runs / label, verbose=1, **what)
    results.mkdir(parents=True, exist_ok=True)
    frame = outcome.to_frame()
    if default:
        frame = frame[["fold", "loglik", "rmse", "reg_mean", "reg_var"]]
        frame["seconds"] = round(outcome.seconds / n_folds(name), 1)
    else:
        frame = frame[COLUMNS]
    frame.to_csv(results / f"{label}.csv", index=False)
    print(
        f"{outcome}\n\n{outcome.steps:,} gradient steps in {outcome.seconds:,.0f} s\n", flush=True
    )
    return plan


def costs(plans: dict[str, Plan]) -> str:
    """A table of what is to do, beside the authors' code: nothing shared, a millisecond a step."""
    frame = pd.DataFrame({name: plan.as_dict() for name, plan in plans.items()}).T
    frame.loc["together"] = frame.sum()
    lines = [
        "| data set | trainings | million steps | seconds | authors' steps | days at 1 ms |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, work in frame.iterrows():
        ours = f"{work['networks']:,.0f} | {work['steps'] / 1e6:,.0f} | {work['seconds']:,.0f}"
        theirs = f"{work['unshared_steps'] / 1e6:,.0f} | {work['unshared_steps'] / 86.4e6:,.1f}"
        lines.append(f"| {name} | {ours} | {theirs} |")
    return "\n".join(lines)


def export(name: str, runs: Path, results: Path) -> None:
    """Write the CSV of the folds that are finished, of a run that was stopped."""
    with Store(runs / name) as store:
        finished = store.results()
    rows = [
        [fold, *arm.split(", "), *(scores[key] for key in COLUMNS[3:])]
        for fold, result in finished.items()
        for arm, scores in result["arms"].items()
    ]
    results.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=COLUMNS).to_csv(results / f"{name}.csv", index=False)
    print(f"{name}: {len(finished)} of {n_folds(name)} outer folds")


def main() -> None:
    """Run the data sets named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", help=f"of {', '.join(DATASETS)}; all if none")
    parser.add_argument("--default", action="store_true", help="AutoRegressor's defaults instead")
    parser.add_argument("--epochs", type=int, help="of each stage, instead of the recipe's own")
    parser.add_argument("--export", action="store_true", help="only write what is finished")
    parser.add_argument("--dry-run", action="store_true", help="only tell what it would cost")
    parser.add_argument("--runs", type=Path, default=HERE / "runs", help="where folds are kept")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="where CSVs go")
    given = parser.parse_args()
    if given.default and given.epochs is not None:
        parser.error("--epochs is for the paper's arms: leave it out with --default")
    unknown = sorted(set(given.datasets) - set(DATASETS))
    if unknown:
        parser.error(f"unknown data set {unknown[0]!r}: choose from {', '.join(DATASETS)}")
    plans = {}
    for name in given.datasets or DATASETS:
        try:
            if given.export:
                export(name, given.runs, given.results)
                continue
            plans[name] = run(
                name,
                default=given.default,
                epochs=given.epochs,
                runs=given.runs,
                results=given.results,
                dry=given.dry_run,
            )
        except (OSError, ValueError) as error:  # no data, another version's store, a full disk
            sys.exit(f"{name}: {error}")
    if given.dry_run:
        print(f"\n{costs(plans)}")


if __name__ == "__main__":
    main()
