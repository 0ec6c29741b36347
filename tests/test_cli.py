"""The command line as a newcomer would type it, wrongly too."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mvenet
from mvenet import _commands, demo

runner = CliRunner()


@pytest.fixture
def quick(monkeypatch):
    """The sine for a few epochs only: what it learns is tested elsewhere."""
    monkeypatch.setattr(demo, "SINE_EPOCHS", 20)


def test_demo_prints_tables_and_draws(quick, tmp_path):
    picture = tmp_path / "sine.png"
    result = runner.invoke(_commands.app, ["demo", "--picture", str(picture)])
    assert result.exit_code == 0, result.output
    for word in (
        "RMSE",
        "log-likelihood",
        "interval covers",
        "constant variance",
        "plain MSE mean",
    ):
        assert word in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_says_what_to_install(quick, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(_commands.app, ["demo", "--picture", str(tmp_path / "x.png")])
    assert result.exit_code == 0
    assert "pip install 'mvenet[plot]'" in result.output


def test_demo_into_a_folder_that_does_not_exist(tmp_path):
    result = runner.invoke(_commands.app, ["demo", "--picture", str(tmp_path / "no" / "x.png")])
    assert result.exit_code == 1
    assert "there is no such folder" in str(result.exception)


def test_version_help_and_typing_errors():
    assert mvenet.__version__ in runner.invoke(_commands.app, ["--version"]).output
    assert "demo" in runner.invoke(_commands.app, ["--help"]).output
    assert "Did you mean" in runner.invoke(_commands.app, ["dmo"]).output
    assert "Example" in runner.invoke(_commands.app, ["demo", "--help"]).output
    wrong = runner.invoke(_commands.app, ["demo", "--seed", "-1"])
    assert wrong.exit_code == 2


def test_installed_command_and_missing_typer(tmp_path):
    command = Path(sys.executable).with_name("mvenet")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"mvenet {mvenet.__version__}"
    code = "import sys; sys.modules['typer'] = None; import mvenet.cli; mvenet.cli.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == "The mvenet command needs typer: pip install 'mvenet[cli]'"
