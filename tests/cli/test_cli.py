"""The command line as a newcomer would type it, wrongly too."""

from __future__ import annotations

import dataclasses
import functools
import gc
import importlib.util
import io
import json
import os
import pty
import re
import runpy
import select
import signal
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import pytest
from processes import full_disk
from shorter import short_trainings

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("skops")
pytest.importorskip("rich")

import mvenet  # noqa: E402
from mvenet import (  # noqa: E402
    cli,
    comparison,
    persistence,
    predictive,
    report,
    workflow,
)
from mvenet._columns.cells import split_target  # noqa: E402
from mvenet._training import fleet  # noqa: E402
from mvenet._utils import wording  # noqa: E402
from mvenet.cli import _demo, _doctor  # noqa: E402
from mvenet.cli._commands import app  # noqa: E402
from mvenet.table import TableEncoder, _files, read  # noqa: E402

pytestmark = pytest.mark.usefixtures("short", "blank")

COMMANDS = (
    *("fit", "predict", "evaluate", "check", "compare", "strategies", "export", "info", "doctor"),
    "demo",
)
SMALL = ("--no-search", "--members", "1")


class Ran(types.SimpleNamespace):
    """Exit code, standard output and standard error of a command."""

    def told(self):
        """The one line of an error."""
        assert self.code not in (0, None), self
        assert re.fullmatch(r"(Reading [^\n]+\.\n)?", self.out), self
        assert re.fullmatch(r"Error: [^\n]+\n", self.err), self
        return self.err


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command in this process, as ``mvenet`` would."""

    def run(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["mvenet", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(stdin)))
        capsys.readouterr()
        often = gc.get_threshold()
        with pytest.raises(SystemExit) as left:
            cli.main()
        gc.unfreeze()  # this process goes on
        gc.set_threshold(*often)
        code = left.value.code
        out, err = capsys.readouterr()
        if isinstance(code, str):  # what sys.exit prints
            code, err = 1, f"{err}{code}\n"
        return Ran(code=code or 0, out=out, err=err)

    return run


def houses(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(20, 200, n).round(1),
            "rooms": rng.integers(1, 7, n),
            "town": rng.choice(["Bonn", "Köln", "007"], n),
            "garden": rng.choice([True, False], n),
            "sold": [f"2020-01-{i % 28 + 1:02}" for i in range(n)],
        }
    )
    frame["price"] = (3000 * frame["size"] + rng.normal(0, 9000, n)).round()
    return frame


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table and a model that was fitted to it."""
    folder = tmp_path_factory.mktemp("cli")
    houses().to_csv(folder / "houses.csv", index=False)
    with short_trainings(times=1):  # good enough for `evaluate` and `check` to be content with it
        fitted = workflow.fit_table(houses(), "price", search=False, members=2, seed=0)
    persistence.save(fitted.model, folder / "houses.mve")
    return folder


@pytest.fixture
def here(place, tmp_path, monkeypatch):
    """The same, to be changed at will, as the current folder."""
    for file in place.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- help, versions, typing errors ---------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(run, command):
    ran = run(command, "--help")
    assert ran.code == 0 and f"Example: mvenet {command}" in ran.out
    for option in ("--json", "--quiet", "--debug"):
        assert option in ran.out
    assert ("--seed" in ran.out) == (command in ("fit", "compare", "strategies", "demo"))
    assert "\x1b" not in ran.out  # no colour without a terminal


def test_help_and_version(run):
    assert run("--version").out == f"mvenet {mvenet.__version__}\n"
    alone = run()
    assert alone.code == 0 and alone.out == run("--help").out == run("-h").out
    assert run("fit", "-h").out == run("fit", "--help").out
    for command in COMMANDS:
        assert command in alone.out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["fti"], r"no command 'fti': did you mean fit\? \(see mvenet --help\)"),
        (["info", "a.mve", "b.mve"], r"What is b\.mve\? It is one argument too many \(see mvenet"),
        (["train"], r"no command 'train': use fit, predict, .* \(see mvenet --help\)"),
        (["fit"], r"argument data is missing: CSV, .* \(see mvenet fit --help\)"),
        (["fit", "x.csv", "--target", "y"], "option --output or -o is missing: Where to save"),
        (
            ["fit", "x.csv", "--target", "y", "-o", "m", "--effort", "max"],
            r"'--effort': 'max' is not one of 'low', 'medium', 'high' \(see",
        ),
        (["fit", "x.csv", "--target", "y", "-o", "m", "--holdout", "20%"], r"must be a number|20%"),
        (["fit", "x.csv", "--target", "y", "-o", "m", "--members", "0"], "'--members'"),
        (["fit", "x.csv", "--target", "y", "-o", "m", "--holdout", "1"], "'--holdout'"),
        (["fit", "x.csv", "--target", "y", "-o", "m", "--holdout", "nan"], "'--holdout'"),
        (["fit", "x.csv", "--target", "y", "-o", "m", "--seed", "4294967296"], "'--seed'"),
        (["demo", "--seed", "-1"], "'--seed'"),
        (
            ["predict", "m", "x.csv", "-o", "o.xlsx"],
            "--output: o.xlsx would hold no xlsx: name it .csv",
        ),
        (["check", "x.csv", "m.mve"], "'model': the model comes first: m.mve x.csv"),
        (["predict", "m", "x.csv", "-o", "o.csv", "--wrong"], "There is no option --wrong"),
        (["fit", "x.csv", "--taget", "y"], "no option --taget: did you mean --target?"),
        (
            ["predict", "m", "x.csv", "-o", "o.csv", "--interval", "0"],
            "--interval: 0 must lie betw",
        ),
        (
            ["predict", "m", "x.csv", "-o", "o.csv", "--interval", "1"],
            "--interval: 1 must lie betw",
        ),
        (
            ["predict", "m", "x.csv", "-o", "o.csv", "--interval", "2"],
            "--interval: 2 must lie betw",
        ),
        (["predict", "m", "x.csv", "-o", "o.csv", "--interval", "nan"], "--interval: nan must lie"),
        (["predict", "m", "x.csv", "-o", "o.csv", "--interval", "text"], "--interval.*number"),
        (["predict", "m", "x.csv", "-o", "o.csv", "--quantile", "90"], "--quantile: 90 must lie"),
    ],
)
def test_typing_errors_are_one_line_and_code_2(run, tmp_path, monkeypatch, arguments, reason):
    monkeypatch.chdir(tmp_path)
    ran = run(*arguments)
    assert re.search(reason, ran.told()), ran
    assert ran.code == 2
    assert not list(tmp_path.iterdir())


def value_of(option):
    """Something that the option takes, as words."""
    choices = getattr(option.type, "choices", None)
    return [choices[0] if choices else "2"] * option.nargs


ONCE = [
    (command.name, option)
    for command in app.commands.values()
    for option in command.params
    if option.opts[0].startswith("-") and not option.multiple and not option.is_flag
]


@pytest.mark.parametrize(("command", "option"), ONCE, ids=lambda x: getattr(x, "name", x))
def test_an_option_of_one_value_is_given_once(run, command, option):
    given = [word for name in option.opts for word in (name, *value_of(option))] * 2
    ran = run(command, *given)
    assert ran.code == 2
    several = r" is given \d times: give it once \(see mvenet "
    assert re.search(f"Error: {' or '.join(option.opts)}{several}{command} --help", ran.told())


def test_flags_and_repeatable_options_may_be_given_twice(run, here):
    command = ("fit", "houses.csv", "--target", "price", "-o", "n.mve", *SMALL, "-q", "-q")
    assert run(*command, "--drop", "town", "--drop", "sold").code == 0
    ran = run(*command, "--search")
    assert ran.code == 2 and "--search or --no-search is given 2 times" in ran.told()
    ran = run("predict", "houses.mve", "houses.csv", "-o", "a.csv", "--output=b.csv")
    assert ran.code == 2 and "--output or -o is given 2 times" in ran.told()


def test_installed_command_and_missing_click():
    command = Path(sys.executable).with_name("mvenet")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"mvenet {mvenet.__version__}"
    code = "import sys; sys.modules['click'] = None; import mvenet.cli; mvenet.cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == "The mvenet command needs click: pip install 'mvenet[cli]'"


def test_predict_tells_how_many_rows_are_outside_what_was_seen(run, here):
    frame = houses(9, seed=1).assign(size=100.0)
    frame.to_csv("inside.csv", index=False)
    frame.assign(size=[1e6, *frame["size"][1:]]).to_csv("outside.csv", index=False)
    assert "outside" not in run("predict", "houses.mve", "inside.csv", "-o", "o.csv").out
    told = run("predict", "houses.mve", "outside.csv", "-o", "o.csv").out
    assert "\n1 of them far outside what the model has seen: mvenet check tells where.\n" in told
    ran = run("predict", "houses.mve", "outside.csv", "-o", "o.csv", "--json")
    assert json.loads(ran.out)["rows_far_outside"] == 1


def test_debug_shows_where_it_went_wrong(run, here):
    for arguments in (["info", "houses.csv", "--debug"], ["--debug", "info", "houses.csv"]):
        ran = run(*arguments)
        assert ran.code == 1 and ran.err.startswith("Traceback (most recent call last):\n")
        assert re.search(r"\nValueError: 'houses\.csv' is no model file[^\n]*\n$", ran.err)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyError("x"), "Error: KeyError 'x' (not foreseen: add --debug, and report what it says)"),
        (MemoryError(), "Error: The memory is full: use fewer rows or columns."),
        (ValueError("two\n  lines"), "Error: two lines"),
        (OSError(), "Error: OSError  (not foreseen: add --debug, and report what it says)"),
    ],
)
def test_no_error_is_a_traceback(run, monkeypatch, error, line):
    def fail(*_):
        raise error

    monkeypatch.setattr(persistence, "info", fail)
    ran = run("info", "m.mve")
    assert ran.told() == f"{line}\n" and ran.code == 1


# --- fit -----------------------------------------------------------------------------------------


def test_fit_tells_what_it_did(run, here):
    ran = run("fit", "houses.csv", "--target", "price", "-o", "new.mve", *SMALL)
    assert ran.code == 0 and ran.err == ""
    lines = [" ".join(re.sub("[│┃]", " ", line).split()) for line in ran.out.splitlines()]
    for line in ("size number", "rooms number", "town category 3 levels", "garden truth",
                 "price target 60 rows", "On 12 rows held out", "Model: new.mve"):  # fmt: skip
        assert line in lines, ran.out
    assert any(line.startswith("sold date 2020-01-01 to 2020-01-28, days since") for line in lines)
    assert any(line.startswith("Fitted to 48 rows in ") for line in lines)
    assert "2 candidates" in ran.out
    for word in ("RMSE", "log-likelihood a row", "CRPS", "90 % interval", "a constant has"):
        assert word in ran.out
    assert "\x1b" not in ran.out
    assert persistence.info(here / "new.mve")["model"] == "MVERegressor"


def test_fit_as_json_and_quiet(run, here):
    command = ("fit", "houses.csv", "--target", "price", "-o", "new.mve", *SMALL)
    ran = run(*command, "--json")
    told = json.loads(ran.out)
    assert ran.out.count("\n") == 1 and ran.err == ""
    assert told["rows"] == 48 and told["columns"]["town"]["kind"] == "category"
    assert told["held_out"]["rows"] == 12 and 0 <= told["held_out"]["coverage"]["0.9"] <= 1
    first = (here / "new.mve").read_bytes()
    ran = run(*command, "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert (here / "new.mve").read_bytes() == first  # the same seed, the same file
    run(*command, "--quiet", "--seed", "7")
    assert (here / "new.mve").read_bytes() != first


def test_fit_prints_what_it_evaluated(run, here):
    command = ("fit", "houses.csv", "--target", "price", "-o", "new.mve", *SMALL)
    told = json.loads(run(*command, "--json").out)["held_out"]
    expected = workflow.fit_table(
        pd.read_csv("houses.csv"), "price", search=False, members=1, seed=0
    ).evaluation
    for name in ("rmse", "mae", "nll", "crps", "r2"):
        assert told[name] == expected.scores[name]
    assert f" {wording.readable(expected.scores['rmse'])} " in run(*command).out


def test_fit_from_standard_input_and_without_a_check(run, here):
    stdin = (here / "houses.csv").read_bytes()
    ran = run("fit", "-", "--target", "price", "-o", "n.mve", *SMALL, "--holdout", 0, stdin=stdin)
    assert ran.code == 0 and "60 rows" in ran.out and "held out" not in ran.out
    (here / "few.csv").write_bytes(b"\n".join(stdin.splitlines()[:8]))  # too few for folds
    few = ("fit", "few.csv", "--target", "price", "-o", "n.mve", *SMALL, "--holdout", 0)
    assert "Not checked, because no rows were held out" in run(*few).out
    assert "held_out" not in json.loads(run(*few, "--json").out)


def test_no_number_in_json_is_nan(run, here):
    frame = houses()
    frame["price"] = 5.0
    frame.to_csv("same.csv", index=False)
    ran = run("fit", "same.csv", "--target", "price", "-o", "n.mve", *SMALL, "--json")
    assert ran.code == 0, ran
    told = json.loads(ran.out, parse_constant=pytest.fail)
    assert told["held_out"]["r2"] is None


def test_rows_without_a_target_are_told(run, here):
    frame = houses()
    frame.loc[:4, "price"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    ran = run("fit", "gaps.csv", "--target", "price", "-o", "n.mve", *SMALL)
    assert "55 rows, 5 without it left out" in ran.out
    ran = run("evaluate", "houses.mve", "gaps.csv")
    assert "55 rows of gaps.csv" in ran.out and "5 row(s) without the target left out" in ran.out
    told = json.loads(run("evaluate", "houses.mve", "gaps.csv", "--json").out)
    assert told["rows"] == 55 and told["rows_without_target"] == 5


def test_names_are_neither_markup_nor_emoji(run, here):
    strange = ["[red]x[/red]", "[/]", ":smile:", "<script>alert(1)</script>", "a,b", 'q"q', "$a$"]
    frame = houses().rename(columns={"size": strange[0], "price": "p [b]"})
    for i, name in enumerate(strange[1:]):
        frame[name] = np.arange(len(frame)) * (i + 1.5) % 7
    frame.to_csv("strange.csv", index=False)
    ran = run("fit", "strange.csv", "--target", "p [b]", "-o", "n.mve", *SMALL)
    assert ran.code == 0, ran
    for name in (*strange, "p [b]"):
        assert name in ran.out
    assert run("predict", "n.mve", "strange.csv", "-o", "o.csv", "-q").code == 0
    assert list(pd.read_csv("o.csv")) == [*frame, "mean", "std", "outside"]


STEERING = "a\x1b[2J\x1b]0;x\x07b\x9b31m\u202ec\x08"


def test_no_name_of_a_file_steers_the_terminal(run, here, monkeypatch):
    """Neither of a column, nor of a level, nor of the file, whatever the command says of it."""
    frame = houses(60, seed=4)
    level = frame["town"].replace("007", f"T{STEERING}")
    frame = frame.assign(town=level, **{f"x{STEERING}": np.arange(60) % 7 * 1.5})
    frame = frame.rename(columns={"price": f"y{STEERING}", "size": f"s{STEERING}"})
    data, model = f"t{STEERING}.csv", f"m{STEERING}.mve"
    frame.to_csv(data, index=False)
    frame.assign(town="N" + STEERING, rooms=99, **{f"y{STEERING}": 7.0}).to_csv("new.csv")
    frame.drop(columns=f"s{STEERING}").to_csv("less.csv")
    pd.DataFrame({f"y{STEERING}": ["z" + STEERING] * 9, "x": 1.5}).to_csv("bad.csv", index=False)
    monkeypatch.setattr(comparison, "compare_strategies", lambda *_, **__: "done")
    target = ("--target", f"y{STEERING}")
    commands = [
        ("fit", data, *target, "-o", model, *SMALL),
        ("fit", data, "--target", f"z{STEERING}", "-o", model),
        ("fit", data, *target, "-o", model, "--drop", STEERING),
        ("fit", "bad.csv", *target, "-o", "n.mve"),
        ("fit", data, *target, "-o", f"no{STEERING}/n.mve"),
        ("strategies", data, *target),
        ("predict", model, data, "-o", f"o{STEERING}.csv"),
        ("predict", model, "less.csv", "-o", "o.csv"),
        ("predict", model, f"none{STEERING}.csv", "-o", "o.csv"),
        ("evaluate", model, data),
        ("evaluate", model, "bad.csv"),
        ("check", model, "new.csv"),
        ("info", model),
        ("info", data),
        ("info", model, STEERING),
        (STEERING,),
        ("fit", f"--{STEERING}"),
    ]
    if importlib.util.find_spec("onnx"):
        commands.append(("export", model, f"o{STEERING}.onnx"))
    told = {}
    for command in commands:
        for more in ((), ("--json",), ("--debug",)):
            ran = run(*command, *more)
            assert (ran.out + ran.err).replace("\n", "").isprintable(), (command, more)
            told[command, more] = ran
    assert "\\x1b[2J" in told[commands[0], ()].out
    columns = json.loads(told[commands[0], ("--json",)].out)["columns"]
    assert f"x{STEERING}" in columns


def test_a_terminal_without_the_letters(here, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    frame = houses().rename(columns={"size": "größe"})
    frame.to_csv("g.csv", index=False)
    command = ["fit", "g.csv", "--target", "price", "-o", "n.mve", *SMALL]
    monkeypatch.setattr(sys, "argv", ["mvenet", *command])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert not left.value.code and rb"gr\xf6\xdfe" in raw.getvalue()
    monkeypatch.setattr(sys, "argv", ["mvenet", "predict", "n.mve", "g.csv", "-o", "-"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "größe,rooms".encode() in raw.getvalue()  # a table is UTF-8 everywhere


# --- predict -------------------------------------------------------------------------------------


def test_predict_adds_columns(run, here):
    ran = run("predict", "houses.mve", "houses.csv", "-o", "out.csv", "--interval", 0.5,
              "--interval", 0.9, "--quantile", 0.1)  # fmt: skip
    assert ran.code == 0 and re.fullmatch(r"60 rows in \d+\.\d s: out\.csv\n", ran.out)
    out, given = pd.read_csv("out.csv"), houses()
    ends = ["low_50", "high_50", "low_90", "high_90"]
    assert list(out) == [*given, "mean", "std", *ends, "q_10", "outside"]
    model = persistence.load("houses.mve")
    expected = workflow.predictions(model, given, [0.5, 0.9], [0.1])
    written = pl.read_csv("out.csv")[expected.columns]  # pandas of old may lose the last digit
    np.testing.assert_array_equal(written, expected)
    pd.testing.assert_frame_equal(out[list(given)], given)
    assert (out["low_90"] < out["low_50"]).all() and (out["high_50"] < out["high_90"]).all()


def test_flags_may_be_written_in_another_way_than_at_the_fit(run, here):
    frame = houses()
    for place, words in (("as.csv", (True, False)), ("f.csv", (1.0, 0.0)), ("yn.csv", ("Y", "n"))):
        flags = frame["garden"].map(dict(zip((True, False), words, strict=True)))
        frame.assign(garden=flags).to_csv(place, index=False)
    told = {n: json.loads(run("evaluate", "houses.mve", n, "--json").out)["rmse"]
            for n in ("as.csv", "f.csv", "yn.csv")}  # fmt: skip
    assert len(set(told.values())) == 1
    frame.assign(garden=["ja", "nein"] * 30).to_csv("ja.csv", index=False)
    for command, *more in (["predict", "-o", "o.csv"], ["check"], ["evaluate"]):
        told = run(command, "houses.mve", "ja.csv", *more).told()
        assert "'garden' held truth values when the model was fitted: row 1 has 'ja'." in told


def test_predict_leaves_the_cells_as_they_were(run, here):
    given = (
        "price;town;id;rooms;size;garden;sold;note\n1,50;007;0009;3;50,10;True;2020-01-02;a;NA\n"
    )
    given = given.replace(";a;NA", ';"a;NA"') + "2;Köln;10;;77;;;null\n"
    (here / "new.csv").write_text(given, encoding="utf-8")
    assert run("predict", "houses.mve", "new.csv", "-o", "out.csv", "-q").code == 0
    lines = (here / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "price,town,id,rooms,size,garden,sold,note,mean,std,outside"
    assert lines[1].startswith("1.50,007,0009,3,50.10,True,2020-01-02,a;NA,")
    assert lines[2].startswith("2,Köln,10,,77,,,null,")


@pytest.mark.parametrize("size", [1, 200])
def test_predict_in_parts_is_the_same_to_the_bit(run, here, monkeypatch, size):
    frame = houses(16, seed=3).drop(columns="price")
    frame["town"] = ["007"] * 4 + ["Bonn"] * 4 + ["new"] * 4 + [None] * 4
    frame.loc[10:, "rooms"] = np.nan
    frame.to_csv("new.csv", index=False)
    command = ("predict", "houses.mve", "new.csv", "--interval", 0.9, "--quantile", 0.025)
    assert run(*command, "-o", "whole.csv").code == 0
    monkeypatch.setattr(_files, "BLOCK", size)
    assert run(*command, "-o", "parts.csv").code == 0
    assert (here / "parts.csv").read_bytes() == (here / "whole.csv").read_bytes()
    printed = run(*command, "-o", "-").out
    assert printed.encode() == (here / "whole.csv").read_bytes()
    stdin = (here / "new.csv").read_bytes()
    command = ("predict", "houses.mve", "-", "-o", "-", "--interval", 0.9, "--quantile", 0.025)
    assert run(*command, stdin=stdin).out == printed
    shuffled = frame[frame.columns[::-1]].assign(more="x")
    shuffled.to_csv("new.csv", index=False)
    run("predict", "houses.mve", "new.csv", "-o", "other.csv", "--interval", 0.9)
    whole, other = pd.read_csv("whole.csv"), pd.read_csv("other.csv")
    assert (whole["mean"] == other["mean"]).all() and (whole["high_90"] == other["high_90"]).all()


def test_parquet_gives_what_csv_gives(run, here):
    frame = pl.DataFrame(houses(20, seed=5).to_dict("list"))
    frame.write_csv("new.csv")
    frame.write_parquet("new.parquet")
    for name in ("csv", "parquet"):
        ran = run("predict", "houses.mve", f"new.{name}", "-o", f"{name}.csv", "--json")
        told = json.loads(ran.out)
        assert told["rows"] == 20 and told["output"] == f"{name}.csv"
    assert (here / "csv.csv").read_bytes() == (here / "parquet.csv").read_bytes()
    command = ("--target", "price", "-o", "n.mve", *SMALL, "--json")
    first, second = (json.loads(run("fit", f"new.{name}", *command).out)["held_out"]
                     for name in ("csv", "parquet"))  # fmt: skip
    assert first == second


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_predictions_in_files_that_know_their_types(run, here, ending):
    frame = houses(20, seed=5)
    frame.loc[3, "size"] = np.nan
    frame.to_csv("new.csv", index=False)
    run("predict", "houses.mve", "new.csv", "-o", "out.csv", "--interval", 0.9)
    ran = run("predict", "houses.mve", "new.csv", "-o", f"out.{ending}", "--interval", 0.9)
    assert ran.code == 0 and "20 rows in" in ran.out
    made = pl.read_parquet("out.parquet") if ending == "parquet" else pl.read_ipc("out.arrow")
    expected = pd.read_csv("out.csv")
    assert made.columns == list(expected.columns)
    for name in ("size", "rooms", "price", "mean", "std", "low_90", "high_90"):
        assert made.schema[name] == pl.Float64
        np.testing.assert_allclose(made[name].to_numpy(), expected[name], rtol=1e-15)
    assert made["size"].null_count() == 1 and made["town"].to_list() == expected["town"].to_list()
    (here / "new.csv").write_text("size\n1\n")
    ran = run("predict", "houses.mve", "new.csv", "-o", f"other.{ending}")
    assert ran.code == 1 and ran.err.startswith("Error: The table lacks the column(s) ")
    assert f"other.{ending}" not in os.listdir() and not list(here.glob(".*"))


def test_whoever_reads_our_output_may_stop(here):
    houses(3000).to_csv("long.csv", index=False)
    command = [Path(sys.executable).with_name("mvenet"), "predict", "houses.mve", "long.csv"]
    with subprocess.Popen(
        [*command, "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline().startswith(b"size,")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


# --- bad input -----------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(40)


def column(**changes):
    return houses().assign(**changes).to_csv(index=False).encode()


BAD_TABLES = {
    "no such file": (None, r"There is no file bad\.csv"),
    "png": (PNG, "bad.csv is no text"),
    "zip": (b"PK\x03\x04" + bytes(40), "bad.csv is no text"),
    "empty": (b"", "bad.csv is empty"),
    "header only": (b"size,price\n", "bad.csv has no rows"),
    "wrong target": (b"size,prise\n1,2\n3,4\n", "no column 'price': did you mean 'prise'"),
    "text target": (column(price="dear"), r"target 'price' must hold numbers: row 1 has 'dear'"),
    "all targets missing": (column(price=None), "No row has a 'price': at least 2"),
    "dollars": (b"size,price\n1,$2.50\n2,$3\n", r"row 1 has '\$2.50'. Write numbers plainly, as"),
    "infinite target": (b"size,price\n1,2\n2,inf\n", "'price' holds infinity"),
    "one row": (b"size,price\n1,2\n", "Only one row has a 'price'"),
    "two rows": (b"size,price\n1,2\n2,3\n", "--holdout 0.2 leaves 1 of 2 rows"),
    "twice": (b"size,size,price\n1,2,3\n", "has the column 'size' twice"),
    "nothing to go by": (b"size,price\n,2\n,3\n,4\n,5\n,6\n", r"size is dropped \(all missing\)"),
    "target alone": (b"price\n1\n2\n3\n4\n", "No column can be used to predict: there is none"),
    "infinite": (b"size,price\n1,2\ninf,3\n4,5\n6,7\n", "'size' holds infinity"),
    "ragged": (b"size,price\n1,2\n3,4,5\n", "cannot be read as a table"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_for_fit(run, here, case):
    content, reason = BAD_TABLES[case]
    if content is not None:
        (here / "bad.csv").write_bytes(content)
    for name in ("old.mve", "old.html"):
        (here / name).write_bytes(b"precious")
    before = sorted(os.listdir())
    ran = run("fit", "bad.csv", "--target", "price", "-o", "old.mve", "--report", "old.html",
              "--no-search", "--members", 1)  # fmt: skip
    assert re.search(reason, ran.told()) and ran.code == 1
    assert (here / "old.mve").read_bytes() == (here / "old.html").read_bytes() == b"precious"
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            ["--log"],
            "--log needs a column above zero everywhere, and price holds 0: drop --log, or",
        ),
        (["--members", 2], "--members 2 is for .* how many it needs: drop it, or use --no-search."),
        (["--no-search", "--effort", "low"], "--effort low is for a search: .* or use --search."),
        (["--holdout", 0.9], "--holdout 0.9 leaves 1 of 10 rows to train on"),
        (["--holdout", 0.7], "3 rows are too few for a search: use more rows, or --no-search."),
        (["--header-rows", 2], r"to have 3 rows of column names \(.*: use --header-rows 3, or"),
    ],
    ids=str,
)
def test_what_the_library_refuses_is_told_in_options(run, here, options, line):
    rows = [f"{i},{i * i}" for i in range(10)]
    names = ["size,price"] + ["m2,EUR", "of,it"] * ("--header-rows" in options)
    (here / "t.csv").write_text("\n".join([*names, *rows, ""]))
    ran = run("fit", "t.csv", "--target", "price", "-o", "n.mve", *options)
    assert re.search(line, ran.told()) and ran.code == 1


def test_so_is_what_the_library_notes(run, here, monkeypatch):
    note = "target='log' keeps them above."
    fit_table = workflow.fit_table

    def noting(*args, **kwargs):
        return dataclasses.replace(fit_table(*args, **kwargs), notes=[note])

    monkeypatch.setattr(workflow, "fit_table", noting)
    command = ("fit", "houses.csv", "--target", "price", "-o", "n.mve", *SMALL, "--log")
    assert json.loads(run(*command, "--json").out)["notes"] == ["--log keeps them above."]


@pytest.mark.parametrize("options", [[], ["--calibrate"]], ids=str)
def test_ctrl_c_in_a_search_keeps_the_best_model(run, here, options, monkeypatch):
    wanted = 3  # the first fleet that a model can do without
    train, fleets = fleet.train, []

    def interrupted(*args, **kwargs):
        fleets.append(1)
        if len(fleets) == wanted:
            signal.raise_signal(signal.SIGINT)
        return train(*args, **kwargs)

    monkeypatch.setattr(fleet, "train", interrupted)
    houses(30).to_csv("houses.csv", index=False)
    ran = run("fit", "houses.csv", "--target", "price", "-o", "kept.mve", "--json", *options)
    assert ran.code == 128 + signal.SIGINT and ran.err == ""
    assert "Stopped before all was tried" in json.loads(ran.out)["notes"][0]
    assert run("predict", "kept.mve", "houses.csv", "-o", "out.csv").code == 0


def test_ctrl_c_in_the_report_leaves_the_model(run, here, monkeypatch):
    monkeypatch.setattr(report, "render", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    before = sorted(os.listdir())
    command = ("fit", "houses.csv", "--target", "price", "-o", "n.mve", "--report", "n.html")
    ran = run(*command, *SMALL)
    assert ran.code == 128 + signal.SIGINT and ran.err == ""
    assert ran.out.endswith("Model: n.mve   Report: stopped, and not written\n")
    assert set(os.listdir()) - set(before) == {"n.mve"}


def test_a_model_that_is_not_there(run, here):
    ran = run("predict", "house.mve", "houses.csv", "-o", "out.csv")
    assert ran.told() == "Error: There is no file house.mve. Did you mean houses.mve?\n"


BAD_NEW = {
    "no such file": (None, r"There is no file bad\.csv"),
    "png": (PNG, "is no text"),
    "empty": (b"", "is empty"),
    "header only": (houses(0).to_csv(index=False).encode(), "has no rows"),
    "missing columns": (b"size,sold\n1,2\n", r"lacks the column\(s\) 'rooms', 'town', 'garden'"),
    "text": (column(rooms="many"), "'rooms' held numbers .* row 1 has 'many'"),
    "taken": (column(std=1), "has a column 'std' already"),
    "late": (column(rooms=[1] * 59 + ["x"]), "'rooms' held numbers .* row 60 has 'x'"),
}


@pytest.mark.parametrize("case", BAD_NEW)
@pytest.mark.parametrize("output", ["old.csv", "-"])
def test_bad_tables_for_predict(run, here, monkeypatch, case, output):
    content, reason = BAD_NEW[case]
    monkeypatch.setattr(_files, "BLOCK", 1000)
    if content is not None:
        (here / "bad.csv").write_bytes(content)
    (here / "old.csv").write_bytes(b"precious")
    before = sorted(os.listdir())
    ran = run("predict", "houses.mve", "bad.csv", "-o", output)
    if (case, output) == ("late", "-"):  # the first rows are out before the last are read
        assert 20 < ran.out.count("\n") < 61 and ran.code == 1
        ran.out = ""
    assert re.search(reason, ran.told()) and ran.code == 1
    assert (here / "old.csv").read_bytes() == b"precious"
    assert sorted(os.listdir()) == before


def newer(path):
    """The model as a later release might write it."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    told = json.loads(parts["mvenet.json"])
    parts["mvenet.json"] = json.dumps({**told, "format": 99}).encode()
    return persistence.archive.pack(parts)


@pytest.mark.parametrize("command", ["predict", "evaluate", "export", "info"])
def test_files_that_are_no_models(run, here, command):
    arguments = {"predict": ["houses.csv", "-o", "old"], "evaluate": ["houses.csv"],
                 "export": ["old"], "info": []}[command]  # fmt: skip
    (here / "old").write_bytes(b"precious")
    good = (here / "houses.mve").read_bytes()
    cases = {
        "text": (b"x,y\n1,2\n", "no model file of mvenet"),
        "png": (PNG, "no model file of mvenet"),
        "half": (good[: len(good) // 2], "is cut short or was added to"),
        "empty": (b"", "is empty"),
        "newer": (newer(here / "houses.mve"), "format 99 .* upgrade mvenet"),
    }
    for content, reason in cases.values():
        (here / "bad.mve").write_bytes(content)
        ran = run(command, "bad.mve", *arguments)
        assert re.search(reason, ran.told()) and ran.code == 1
    assert "none.mve" in run(command, "none.mve", *arguments).told()
    assert (here / "old").read_bytes() == b"precious"


def test_a_model_that_knows_no_table(run, here):
    model = mvenet.MVERegressor(epochs=1, warmup_epochs=1).fit([[0.0], [1.0]], [0.0, 1.0])
    persistence.save(model, here / "plain.mve")
    for command in (["predict", "plain.mve", "houses.csv", "-o", "o.csv"],
                    ["evaluate", "plain.mve", "houses.csv"]):  # fmt: skip
        ran = run(*command)
        assert ran.code == 1 and ran.told().startswith("Error: "), ran.told()
    assert (
        "lacks the column(s) 'x0'"
        in run("predict", "plain.mve", "houses.csv", "-o", "o.csv").told()
    )
    assert run("info", "plain.mve").code == 0


def test_places_that_cannot_be_written_are_told_before_the_work(run, here):
    (here / "houses.csv").write_bytes(PNG)  # no work is possible, and nobody looks
    fit = ("fit", "houses.csv", "--target", "price", "-o")
    assert "no such folder" in run(*fit, "no/m.mve").told()
    assert "it is a folder" in run(*fit, ".").told()
    assert "no such folder" in run(*fit, "m.mve", "--report", "no/r.html").told()
    assert "is named twice: name another" in run(*fit, "m.mve", "--report", "m.mve").told()
    assert "is named twice" in run(*fit, "./houses.csv").told()
    predict = ("predict", "houses.mve", "houses.csv", "-o")
    assert "no such folder" in run(*predict, "no/o.csv").told()
    assert "is named twice" in run(*predict, "houses.mve").told()
    assert "is named twice" in run(*predict, "houses.csv").told()
    assert "is named twice" in run("export", "houses.mve", "houses.mve").told()
    assert "no such folder" in run("demo", "--picture", "no/x.png").told()
    os.symlink("houses.csv", "link.csv")
    assert "is named twice" in run("predict", "houses.mve", "link.csv", "-o", "houses.csv").told()


def test_a_device_does_not_become_a_file(run, here):
    os.mkfifo("pipe")  # as a stand-in for /dev/null, which root could replace
    assert (
        "it is a device or a pipe"
        in run("predict", "houses.mve", "houses.csv", "-o", "pipe").told()
    )
    assert Path("pipe").is_fifo()


def test_a_link_stays_a_link(run, here):
    (here / "real.csv").write_bytes(b"old")
    os.symlink("real.csv", "link.csv")
    assert run("predict", "houses.mve", "houses.csv", "-o", "link.csv", "-q").code == 0
    assert Path("link.csv").is_symlink() and "mean,std" in Path("real.csv").read_text()


@pytest.mark.parametrize("package", ["jinja2", "matplotlib", "skops"])
def test_missing_packages_are_told_before_the_work(run, here, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    (here / "houses.csv").write_bytes(PNG)  # no work is possible, and nobody looks
    ran = run("fit", "houses.csv", "--target", "price", "-o", "m.mve", "--report", "r.html")
    extra = "persist" if package == "skops" else "report"
    assert f"This needs {package}: pip install 'mvenet[{extra}]'" in ran.told()


# --- a full disk, Ctrl-C, a terminal -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("old.csv", "predict houses.mve long.csv -o old.csv -q"),
        ("old.parquet", "predict houses.mve long.csv -o old.parquet -q"),
        ("old.arrow", "predict houses.mve long.csv -o old.arrow -q"),
        ("old.mve", "fit houses.csv --target price -o old.mve -q --no-search --members 2"),
        ("old.html", "evaluate houses.mve houses.csv --report old.html -q"),
        ("old.onnx", "export houses.mve old.onnx -q"),
    ],
)
def test_a_full_disk_leaves_the_old_file(run, here, name, command):
    if name == "old.onnx":
        pytest.importorskip("onnx")
    houses(1000).to_csv("long.csv", index=False)
    (here / name).write_bytes(b"precious")
    before = sorted(os.listdir())
    with full_disk(20_000):
        ran = run(*command.split())
    assert ran.code == 1
    assert re.search(rf"{name}' cannot be written \(File too large\): .*space", ran.told())
    assert (here / name).read_bytes() == b"precious" and sorted(os.listdir()) == before


INTERRUPTED = """
import os, signal, sys, threading
from mvenet import cli
from mvenet._training import fleet
train, fleets = fleet.train, int(sys.argv.pop(1))
def interrupted(*args, **kwargs):
    global fleets
    fleets -= 1
    if not fleets:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    return train(*args, **kwargs)
fleet.train = interrupted
sys.argv = ["mvenet", *sys.argv[1:]]
cli.main()
"""


def test_ctrl_c_in_fit(here):
    houses(3000).to_csv("long.csv", index=False)
    for name in ("old.mve", "old.html"):
        (here / name).write_bytes(b"precious")
    before = sorted(os.listdir())
    command = ["fit", "long.csv", "--target", "price", "-o", "old.mve", "--report", "old.html"]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, "1", *command, "-q"],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 128 + signal.SIGINT
    assert done.stdout == "" and done.stderr == "Stopped: no file was left half-written.\n"
    assert (here / "old.mve").read_bytes() == (here / "old.html").read_bytes() == b"precious"
    assert sorted(os.listdir()) == before


INTERRUPTED_AT_ONCE = """
import os, signal, sys
from mvenet import cli
class Hook:
    def find_spec(self, name, *_):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Hook())
cli.main()
"""


def test_ctrl_c_while_python_imports_is_told_as_well():
    command = [sys.executable, "-c", INTERRUPTED_AT_ONCE]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert (done.returncode, done.stdout) == (128 + signal.SIGINT, "")
    assert done.stderr == "Stopped: no file was left half-written.\n"


def on_a_terminal(*arguments):
    """Standard output, which is a pipe, and what a terminal got as standard error."""
    master, slave = pty.openpty()
    seen = b""
    with subprocess.Popen(
        [Path(sys.executable).with_name("mvenet"), *arguments],
        stdout=subprocess.PIPE, stderr=slave, env={**os.environ, "TERM": "xterm"},
    ) as process:  # fmt: skip
        os.close(slave)
        while process.poll() is None or select.select([master], [], [], 0)[0]:
            try:
                seen += os.read(master, 10_000)
            except OSError:  # the other end is gone
                break
        out = process.stdout.read()
    os.close(master)
    return out.decode(), seen.decode()


def test_progress_is_for_terminals_and_leaves_the_output_alone(here):
    command = ("fit", "houses.csv", "--target", "price", "-o", "n.mve", *SMALL)
    out, seen = on_a_terminal(*command)
    assert "━" in seen and "steps" in seen and "reading houses.csv" in seen
    assert out.startswith("Columns of houses.csv")
    assert re.search(r" target .*\nAbout [^\n]*: \d+ networks? to train\.\nFitted to 48", out, re.S)
    assert "steps" not in out and "\x1b" not in out
    out, seen = on_a_terminal("predict", "houses.mve", "houses.csv", "-o", "o.csv")
    assert "predicting" in seen and "60 rows in" in out and "predicting" not in out


def test_python_m_mvenet_is_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mvenet", "--version"])
    often = gc.get_threshold()
    with pytest.raises(SystemExit) as left:
        runpy.run_module("mvenet", run_name="__main__")
    gc.unfreeze()
    gc.set_threshold(*often)
    assert left.value.code == 0 and capsys.readouterr().out.startswith("mvenet ")


# --- the other commands --------------------------------------------------------------------------


def test_evaluate(run, here):
    frame = houses(40, seed=9)
    frame["town"] = "007"  # digits only, yet the level that it was
    frame.to_csv("test.csv", index=False)
    expected = workflow.evaluate(persistence.load("houses.mve"), frame)
    told = json.loads(run("evaluate", "houses.mve", "test.csv", "--json").out)
    for name, value in expected.scores.items():
        assert told[name] == value
    assert told["coverage"]["0.95"] == expected.coverage[0.95]
    ran = run("evaluate", "houses.mve", "test.csv")
    assert "On 40 rows of test.csv" in ran.out
    assert wording.readable(expected.scores["rmse"]) in ran.out
    assert run("evaluate", "houses.mve", "test.csv", "-q").out == ""
    assert "rows that it was trained on" not in ran.out
    mean = workflow.predictions(persistence.load("houses.mve"), frame)["mean"]
    frame.assign(price=mean).to_csv("known.csv", index=False)  # better than any new rows are
    assert "rows that it was trained on" in run("evaluate", "houses.mve", "known.csv").out
    frame.drop(columns="price").to_csv("test.csv", index=False)
    assert "There is no column 'price'" in run("evaluate", "houses.mve", "test.csv").told()


def test_check_is_content_with_rows_like_those_of_the_fit(run, here):
    houses(60, seed=4).drop(columns="price").to_csv("new.csv", index=False)
    ran = run("check", "houses.mve", "new.csv")
    assert ran.code == 0 and "0 of 5 columns changed." in ran.out and "As at the fit." in ran.out
    assert run("check", "houses.mve", "new.csv", "-q").out == ""


def test_check_tells_what_has_changed_by_its_exit_code(run, here):
    frame = houses(60, seed=4).assign(price=1e7)
    frame["size"] += 150
    frame.loc[::3, "town"] = "Aachen"
    frame["sold"] = "2031-05-06"
    frame.to_csv("new.csv", index=False)
    ran = run("check", "houses.mve", "new.csv")
    assert "later: the middle is 2031-05-06, was 2020-01-1" in " ".join(ran.out.split())
    assert ran.code == 3 and "Changed: look before you trust." in ran.out
    assert "new level 'Aachen'" in ran.out and "higher: the middle is" in ran.out
    assert "covers 0.0 %" in ran.out
    told = json.loads(run("check", "houses.mve", "new.csv", "--json").out)
    assert told["rows"] == 60 and told["rows_outside"] >= 20
    changed = {c["column"] for c in told["columns"] if c["changed"]}
    assert changed == {"size", "sold", "town"}
    assert any("90 % interval is too narrow" in finding for finding in told["findings"])


def test_check_tells_if_it_is_the_target_alone_that_has_changed(run, here):
    houses(60, seed=4).assign(price=1e7).to_csv("new.csv", index=False)
    ran = run("check", "houses.mve", "new.csv")
    assert ran.code == 3 and "The intervals do not hold: look before you trust." in ran.out


def test_calibrated_intervals_are_those_of_the_model(run, here):
    houses(80).to_csv("more.csv", index=False)
    command = ("fit", "more.csv", "--target", "price", "-o", "c.mve", *SMALL, "--calibrate")
    assert "Intervals calibrated by 64 rows" in " ".join(run(*command).out.split())
    assert run("predict", "c.mve", "more.csv", "-o", "o.csv", "--interval", 0.8).code == 0
    model, frame = persistence.load("c.mve"), pd.read_csv("o.csv")
    ends = model.predict_interval(houses(80), 0.8)
    np.testing.assert_allclose(frame[["low_80", "high_80"]], ends)
    told = json.loads(run("evaluate", "c.mve", "more.csv", "--json").out)
    inside = (ends[:, 0] <= frame["price"]) & (frame["price"] <= ends[:, 1])
    assert told["coverage"]["0.8"] == pytest.approx(inside.mean())


def test_columns_can_be_left_out(run, here):
    command = ("fit", "houses.csv", "--target", "price", "-o", "n.mve", *SMALL, "--json")
    told = json.loads(run(*command, "--drop", "town", "--drop", "sold").out)
    assert set(told["columns"]) == {"size", "rooms", "garden"}
    assert (
        "no column 'twon' to leave out: did you mean 'town'"
        in run(*command, "--drop", "twon").told()
    )
    assert "'price' is the target" in run(*command, "--drop", "price").told()


@pytest.fixture
def quick_arms(monkeypatch):
    settings = {"epochs": 2, "warmup_epochs": 2, "reg_mean": [1e-3, 1e-2], "reg_var": [1e-3, 1e-2]}
    quick = functools.partial(comparison.strategy_arms, **settings)
    monkeypatch.setattr(comparison, "strategy_arms", quick)


def test_compare(run, here, monkeypatch):
    scores = {
        "crps": [[2.0, 3.0], [1.0, 1.5]],
        "rmse": [[4.0, 4.0], [5.0, 5.0]],
        "coverage": [[0.9, 0.8], [0.5, 0.7]],
        "seconds": [[9.0, 9.0], [1.0, 1.0]],
    }
    found = workflow.ModelComparison(
        ["AutoRegressor", "another"], {k: np.array(v) for k, v in scores.items()}, ["lightgbm"]
    )
    asked = {}
    monkeypatch.setattr(workflow, "compare_models", lambda *_, **more: asked.update(more) or found)
    command = ("compare", "houses.csv", "--target", "price", "--folds", 2, "--group", "town")
    ran = run(*command)
    assert ran.code == 0 and asked["folds"] == 2 and asked["group"] == "town"
    assert ran.out.index("another") < ran.out.index("AutoRegressor")  # the better one first
    assert "-50 % ± 10" in ran.out and "2.50 ± 0.50" in ran.out and "60 % ± 10" in ran.out
    assert "50 % below AutoRegressor's: more than two" in ran.out  # -1.25 ± 0.25 of 2.5
    assert "2 folds, each of new values of town" in ran.out
    assert "lightgbm (pip install lightgbm)" in ran.out
    assert json.loads(run(*command, "--json").out)["scores"] == scores
    assert run(*command, "-q").out == ""
    assert "no column 'prize'" in run("compare", "houses.csv", "--target", "prize").told()


def test_strategies(run, here, quick_arms):
    command = ("strategies", "houses.csv", "--target", "price", "--outer", 2, "--inner", 2)
    dry = run(*command, "--store", "runs", "--dry-run")
    assert "2 outer folds. To do:" in dry.out and "town" in dry.out  # what the columns are
    told = json.loads(run(*command, "--store", "runs", "--dry-run", "--json").out)
    assert told["folds"] == 2 and told["folds_done"] == 0 and told["steps"] > 0
    assert not Path("runs").exists()
    ran = run(*command, "--store", "runs")
    assert ran.code == 0 and "warmup-fixed-mean" in ran.out and ran.err == ""
    assert (
        json.loads(run(*command, "--store", "runs", "--dry-run", "--json").out)["folds_done"] == 2
    )
    first = run(*command, "--store", "runs", "--json")
    again = run(*command, "--json")
    assert json.loads(first.out)["folds"] == json.loads(again.out)["folds"]
    assert len(json.loads(first.out)["folds"]) == 12
    assert run(*command, "-q").out == ""
    assert "must be a number of folds" in run(*command[:4], "--outer", 500, "-q").told()


def test_strategies_encodes_a_fold_by_the_rows_it_trains_on(run, here, quick_arms):
    frame = houses()
    frame.loc[::4, "size"] = np.nan  # filled with the median, which differs from fold to fold
    frame.to_csv("gaps.csv", index=False)
    ran = run("strategies", "gaps.csv", "--target", "price", "--outer", 2, "--inner", 2, "--json")
    X, y, _ = split_target(read("gaps.csv"), "price")
    arms, encoder = comparison.strategy_arms(), TableEncoder(target="price")
    settings = {"outer_cv": 2, "inner_cv": 2, "random_state": 0}
    each = comparison.compare_strategies(X, y, arms, **settings, encoder=encoder)
    once = comparison.compare_strategies(encoder.fit_transform(X, y), y, arms, **settings)
    found = [fold["loglik"] for fold in json.loads(ran.out)["folds"]]
    assert found == each.to_frame()["loglik"].tolist() != once.to_frame()["loglik"].tolist()


def test_strategies_on_a_cluster(run, here, quick_arms):
    distributed = pytest.importorskip("distributed")
    command = (
        "strategies",
        "houses.csv",
        "--target",
        "price",
        "--outer",
        2,
        "--inner",
        2,
        "--json",
    )
    alone = json.loads(run(*command).out)
    settings = {"processes": False, "n_workers": 2, "threads_per_worker": 1}
    with distributed.LocalCluster(**settings, dashboard_address=":0") as cluster:
        ran = run(*command, "--dask", cluster.scheduler_address)
        assert any("train_unit" in prefix for prefix in cluster.scheduler.task_prefixes)
    assert json.loads(ran.out)["folds"] == alone["folds"]


def test_strategies_on_a_cluster_without_workers(run, here):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        address = cluster.scheduler_address
        ran = run("strategies", "houses.csv", "--target", "price", "-q", "--dask", address)
    assert f"has no workers: start some with `dask worker {address}`" in ran.told()


def test_strategies_without_a_scheduler(run, here, monkeypatch):
    distributed = pytest.importorskip("distributed")
    command = ("strategies", "houses.csv", "--target", "price", "-q", "--dask")
    for address in ("nonsense", "zzz://127.0.0.1:1"):
        assert f"No Dask scheduler answers at {address}" in run(*command, address).told()
        with pytest.raises(ValueError, match="No clients found"):
            distributed.default_client()  # what Dask computes here later would wait for it
    monkeypatch.setitem(sys.modules, "distributed", None)
    told = run(*command, "tcp://127.0.0.1:1").told()
    assert 'needs Dask: pip install "mvenet[distributed]"' in told


def test_export(run, here):
    pytest.importorskip("onnx")
    ran = run("export", "houses.mve", "houses.onnx")
    assert (
        ran.code == 0
        and "size, rooms, garden, sold, sold_week_sin, sold_week_cos, town_007" in ran.out
    )
    told = json.loads(run("export", "houses.mve", "houses.onnx", "--json").out)
    assert told["columns"][:2] == ["size", "rooms"] and Path("houses.onnx").stat().st_size > 1000
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession("houses.onnx")
    model = persistence.load("houses.mve")
    X = model.encoder_.transform(houses()).astype(np.float32)
    mean, std = session.run(None, {"X": X})
    expected = predictive.predictive_distribution(model, houses())
    np.testing.assert_allclose(mean, expected.mean, rtol=1e-4)
    np.testing.assert_allclose(std, expected.std, rtol=1e-4)


def test_info(run, here):
    ran = run("info", "houses.mve")
    assert "MVERegressor" in ran.out and "price" in ran.out
    assert re.search(r"size .* number .* \d+(\.\d+)? to \d+", ran.out)
    told = json.loads(run("info", "houses.mve", "--json").out)
    assert told["estimator"] == "MVERegressor" and told["feature_names"][0] == "size"
    assert run("info", "houses.mve", "--quiet").out == ""


def test_doctor(run, monkeypatch):
    seconds = []
    monkeypatch.setattr(_doctor, "_microseconds", lambda n, s: seconds.append(s) or 10.0 / n)
    ran = run("doctor")
    assert ran.code == 0 and sum(seconds) == 5.0
    for word in ("mvenet", "numpy", "instruction set used", "threads", "gradient step"):
        assert word in ran.out
    assert json.loads(run("doctor", "--json").out)["mvenet"] == mvenet.__version__


def test_doctor_measures():
    assert 0.1 < _doctor._microseconds(1, 0.02) < 1e5


@pytest.fixture
def quick_demo(monkeypatch):
    """Scores are tested elsewhere: a few epochs do, and one kind of network for the cars."""
    monkeypatch.setattr(_demo, "SINE_EPOCHS", 20)
    monkeypatch.setattr(_demo, "STARTS", 2)
    settings = {"search": False, "holdout": 0.0, "seed": 0}
    quick = functools.cache(lambda: workflow.fit_table(_demo.cars()[0], "mpg", **settings))
    monkeypatch.setattr(_demo, "fit_cars", lambda seed, verbose: quick())


def test_demo_does_the_main_job_and_the_sine(run, quick_demo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run("demo")
    assert ran.code == 0
    for word in ("the surest third", "90 % between", "of 2", "mvenet fit table.csv --target"):
        assert word in ran.out
    assert "Report: mvenet-demo.html" in ran.out and "Picture: mvenet-demo.png" in ran.out
    assert Path("mvenet-demo.png").read_bytes().startswith(b"\x89PNG")
    assert "How well can mpg be predicted?" in Path("mvenet-demo.html").read_text(encoding="utf-8")
    told = json.loads(run("demo", "--json").out)
    assert told["cars"][0]["cars"] == "the surest third" and len(told["sine"]) == 2
    light, _, heavy = told["predicted"]
    assert light["low"] < light["mean"] < light["high"] and light["mean"] > heavy["mean"]
    assert run("demo", "-q").out == ""
    assert "must end in .png, .svg or .pdf" in run("demo", "--picture", tmp_path / "x.doc").told()


def test_starts_that_find_the_sine_are_counted(monkeypatch):
    """One network of the truth, one of nothing."""
    x = np.linspace(0, 10, 1000)
    means = np.array([0.4 * np.sin(2 * np.pi * x), np.zeros(1000)])
    monkeypatch.setattr(_demo, "_means", lambda model, at: means)
    assert _demo.sine_starts({"a": None}) == [_demo.Starts("a", 1, 2)]


def test_demo_without_matplotlib_says_what_to_install(run, quick_demo, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    ran = run("demo")
    assert ran.code == 0 and "pip install 'mvenet[plot]'" in ran.out
    assert "pip install 'mvenet[report]'" in ran.out
