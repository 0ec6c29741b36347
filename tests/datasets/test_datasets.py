"""The data sets: what is read is what was published, and every other file gets one sentence."""

from __future__ import annotations

import ast
import doctest
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import mvenet.datasets as module
from mvenet.datasets import Dataset, Sample, load, quadratic, sine, two_gaussians

SHAPES = {
    "yacht": (308, 6),
    "boston": (506, 13),
    "energy": (768, 8),
    "concrete": (1030, 8),
    "wine_red": (1599, 11),
    "kin8nm": (8192, 8),
    "protein": (45730, 9),
}
REAL = os.environ.get("MVENET_DATA", "")
needs_data = pytest.mark.skipif(not REAL, reason="MVENET_DATA names no folder")

# A set of three rows takes the place of yacht; the same numbers as CSV and as published.
TABLE = np.array([[-2.3, 0.568, 0.11], [0.0, 1e-7, 2.0], [5.0, 0.25, 47.5]])
CSV = "position,number,resistance\n-2.3,0.568,0.11\n0.0,1e-7,2.0\n5.0,0.25,47.5\n"
TEXT = " -2.3  0.568 \t0.11 \n-0.0 1e-7 2\n5 .25 47.5\n\n"


class Server:
    """A web server on this machine that says what the test tells it to."""

    def __init__(self) -> None:
        self.status, self.body, self.missing, self.asked = 200, TEXT.encode(), 0, 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked += 1
                self.send_response(server.status)
                self.send_header("Content-Length", str(len(server.body) + server.missing))
                self.end_headers()
                self.wfile.write(server.body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/UCI_Datasets/yacht/data/data.txt"
        self.thread = Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    source = module._Source(
        "http://127.0.0.1:1/nobody", 3, ("a", "b", "target"), module._digest(TABLE)
    )
    monkeypatch.setitem(module._SOURCES, "yacht", source)
    monkeypatch.delenv("MVENET_DATA", raising=False)


@pytest.fixture
def server(tiny: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    source = replace(module._SOURCES["yacht"], url=server.url)
    monkeypatch.setitem(module._SOURCES, "yacht", source)
    yield server
    server.close()


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "yacht.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def assert_tiny(data: Dataset) -> None:
    assert_array_equal(data.X, TABLE[:, :2])
    assert_array_equal(data.y, TABLE[:, 2])
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.flags.c_contiguous and data.y.flags.c_contiguous
    assert data.name == "yacht"


# The published sets


@needs_data
@pytest.mark.parametrize("name", SHAPES)
def test_real_sets_are_the_published_ones(name: str) -> None:
    data = load(name)  # a difference would be a warning, and a warning is an error here
    source = module._SOURCES[name]
    assert data.X.shape == SHAPES[name] and data.y.shape == SHAPES[name][:1]
    assert module._digest(np.column_stack([data.X, data.y])) == source.sha256
    assert (*data.feature_names, data.target_name) == source.columns
    assert np.isfinite(data.X).all() and np.isfinite(data.y).all()


@needs_data
@pytest.mark.parametrize(("name", "duplicates"), [("wine_red", 240), ("concrete", 25)])
def test_duplicate_rows_are_kept(name: str, duplicates: int) -> None:
    data = load(name)
    table = np.column_stack([data.X, data.y])
    assert len(table) - len(np.unique(table, axis=0)) == duplicates


@needs_data
@pytest.mark.parametrize("name", ["boston", "energy"])
def test_download_equals_folder(name: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (Path(REAL) / f"{name}.csv").read_text(encoding="utf-8").splitlines()[1:]
    server.body = "\n".join(" " + line.replace(",", "  ") for line in lines).encode()
    source = replace(module._SOURCES[name], url=server.url)
    monkeypatch.setitem(module._SOURCES, name, source)
    downloaded, read = load(name), load(name, REAL)
    assert server.asked == 1
    assert_array_equal(downloaded.X, read.X)
    assert_array_equal(downloaded.y, read.y)
    assert downloaded.feature_names == read.feature_names


def test_registry() -> None:
    assert {name: (s.n_rows, len(s.columns) - 1) for name, s in module._SOURCES.items()} == SHAPES
    for source in module._SOURCES.values():
        assert re.fullmatch(r"[0-9a-f]{64}", source.sha256)
        assert re.fullmatch(r"https://\S+/[0-9a-f]{40}/\S+/data\.txt", source.url)
        assert len(set(source.columns)) == len(source.columns)


# From a folder


@pytest.mark.parametrize(
    "text",
    [
        CSV,
        CSV.replace("\n", "\r\n"),
        CSV.rstrip("\n"),
        CSV.replace("\n", "\n\n") + "  \n",
        "\ufeff" + CSV,
        CSV.replace(",", " , "),
        CSV.replace("number", '"number"').replace("0.0,", "-0,"),
    ],
)
def test_folder(tiny: None, tmp_path: Path, text: str) -> None:
    write(tmp_path, text)
    data = load("yacht", tmp_path)
    assert_tiny(data)
    assert data.feature_names == ("position", "number")
    assert data.target_name == "resistance"
    with pytest.raises(FrozenInstanceError):
        data.name = "other"  # type: ignore[misc]


def test_folder_is_the_argument_then_the_environment(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, CSV)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert_tiny(load("yacht", "~"))
    monkeypatch.setenv("MVENET_DATA", str(tmp_path / "absent"))
    assert_tiny(load("yacht", data_home=str(tmp_path)))
    with pytest.raises(FileNotFoundError, match="absent"):
        load("yacht")
    monkeypatch.setenv("MVENET_DATA", str(tmp_path))
    assert_tiny(load("yacht"))
    (tmp_path / "boston.csv").mkdir()  # a folder is not a file
    with pytest.raises(FileNotFoundError, match=r"boston\.csv.*data_home or MVENET_DATA"):
        load("boston")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("\n\n", "no rows"),
        ("position,number,resistance\n", "no rows"),
        (CSV.replace("1e-7", "much"), "line 3: 'much' is not a finite number"),
        (CSV.replace("1e-7", ""), "line 3: '' is not a finite number"),
        (CSV.replace("1e-7", "nan"), "line 3: 'nan' is not"),
        (CSV.replace("1e-7", "-inf"), "line 3: '-inf' is not"),
        (CSV.replace("1e-7", "1e999"), "line 3: '1e999' is not"),
        (CSV.replace("1e-7,", ""), "line 3: expected 3 columns, found 2"),
        (CSV.replace("1e-7,", "1e-7,1,"), "line 3: expected 3 columns, found 4"),
        (CSV.replace("1e-7", "0,5"), "line 3: expected 3 columns, found 4"),
        (CSV[:-6], "line 4: expected 3 columns, found 2"),
        (CSV.replace(",", ";"), "line 1: expected a header row with a comma"),
        (CSV.partition("\n")[2], "line 1: expected a header row of column names, found numbers"),
        (CSV.encode() + b"\xff\x00\xfe,1,2\n", "line 5: .* is not a finite number"),
        (b"\x1f\x8b\x08\x00\xff\xfe" * 20, "line 1: expected a header row"),
        (CSV.replace("1e-7", "x" * 10_000), "line 3: 'x{40}' is not"),
    ],
)
def test_damaged_file_names_file_and_line(
    tiny: None, tmp_path: Path, text: str | bytes, message: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        load("yacht", tmp_path)
    assert str(path) in str(caught.value) and len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CSV + "1,2,3\n", "it has 4 rows and 3 columns instead of 3 and 3"),
        ("a,b\n1,2\n1,2\n1,2\n", "it has 3 rows and 2 columns instead of 3 and 3"),
    ],
)
def test_other_shape_is_refused(tiny: None, tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, text)
    with pytest.raises(ValueError, match=message):
        load("yacht", tmp_path)


def test_other_content_is_a_warning(tiny: None, tmp_path: Path) -> None:
    write(tmp_path, CSV.replace("47.5", "47.50001"))
    with pytest.warns(UserWarning, match=r"yacht\.csv.*some values.*differ") as caught:
        assert load("yacht", tmp_path).y[2] == 47.50001
    assert caught[0].filename == __file__
    header, first, *rest = CSV.splitlines()
    write(tmp_path, "\n".join([header, *rest, first]))
    with pytest.warns(UserWarning, match="order of its rows"):
        assert_array_equal(load("yacht", tmp_path).y, np.roll(TABLE[:, 2], -1))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("yatch", "did you mean 'yacht'"),
        ("Boston", "did you mean 'boston'"),
        ("wine-red", "did you mean 'wine_red'"),
        ("wine", "did you mean 'wine_red'"),
        ("iris", "choose from"),
        ("", "choose from"),
        ("../yacht", "choose from"),
        (3, "choose from"),
        (None, "choose from"),
        (["yacht"], "choose from"),
    ],
)
def test_unknown_name(name: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(hint)) as caught:
        load(name, tmp_path)
    assert repr(name) in str(caught.value)
    assert all(repr(known) in str(caught.value) for known in SHAPES)


# From the network


def test_download_once(server: Server, tmp_path: Path) -> None:
    first = load("yacht")
    assert_tiny(first)
    assert (first.feature_names, first.target_name) == (("a", "b"), "target")
    assert files(tmp_path) == ["mvenet/yacht.txt"] and server.asked == 1
    assert_tiny(load("yacht"))
    assert server.asked == 1
    server.status = 500
    assert_tiny(load("yacht"))


def test_empty_environment_variable_is_none(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MVENET_DATA", "")
    assert_tiny(load("yacht"))


def test_damaged_cache_is_downloaded_again(server: Server, tmp_path: Path) -> None:
    load("yacht")
    for damage in (b"", b"1 2\n", TEXT.replace("47.5", "47.6").encode()):
        (tmp_path / "mvenet" / "yacht.txt").write_bytes(damage)
        asked = server.asked
        assert_tiny(load("yacht"))
        assert server.asked == asked + 1
    assert (tmp_path / "mvenet" / "yacht.txt").read_bytes() == TEXT.encode()


SWAPPED = "".join(TEXT.splitlines(keepends=True)[k] for k in (1, 0, 2))


@pytest.mark.parametrize(
    ("status", "body", "missing", "reason"),
    [
        (200, TEXT.replace("47.5", "47.6"), 0, "not the published set: some values"),
        (200, SWAPPED, 0, "order of its rows"),
        (200, TEXT + "1 2 3\n", 0, "4 rows and 3 columns instead of 3 and 3"),
        (200, TEXT[:-12], 0, "2 rows and 3 columns"),  # cut, and the server does not know
        (200, TEXT[:-8], 0, "line 3: expected 3 columns"),
        (200, TEXT[:-8], 8, "retrieval incomplete"),
        (200, "", 0, "no rows"),
        (200, "<!DOCTYPE html>\n<p>Please log in", 0, "line 1: expected 3 columns"),
        (404, "gone", 0, "404"),
        (500, TEXT, 0, "500"),
    ],
)
def test_failed_download_is_one_sentence_and_leaves_nothing(
    server: Server, tmp_path: Path, status: int, body: str, missing: int, reason: str
) -> None:
    server.status, server.body, server.missing = status, body.encode(), missing
    with pytest.raises(OSError, match=reason) as caught:
        load("yacht")
    message = str(caught.value)
    assert message.startswith("The data set 'yacht' could not be downloaded from " + server.url)
    assert "yacht.csv" in message and "data_home" in message and "MVENET_DATA" in message
    assert files(tmp_path) == []
    assert getattr(caught.value.__cause__, "closed", True)  # an HTTPError is an open connection
    server.status, server.body, server.missing = 200, TEXT.encode(), 0
    assert_tiny(load("yacht"))  # and a second attempt is not hindered by the first


def test_no_network(tiny: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(OSError, match=r"Connection refused.*yacht\.csv.*MVENET_DATA"):
        load("yacht")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(write(tmp_path, CSV)))  # a file, not a folder
    with pytest.raises(OSError, match=r"yacht\.csv.*MVENET_DATA"):
        load("yacht")


def test_folder_never_asks_the_network(server: Server, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load("yacht", tmp_path)
    write(tmp_path, CSV.replace("47.5", "x"))
    with pytest.raises(ValueError, match="line 4"):
        load("yacht", tmp_path)
    assert server.asked == 0


# Samples with a known truth

SAMPLES = [sine, quadratic, two_gaussians]


@pytest.mark.parametrize("draw", SAMPLES)
@pytest.mark.parametrize("n", [2, 7, np.int64(50)])
def test_samples(draw: Callable[..., Sample], n: int) -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    sample, again = draw(n, random_state=3), draw(n, random_state=3)
    assert sample.X.shape == (n, 1)
    assert sample.y.shape == sample.mean.shape == sample.std.shape == (n,)
    assert (np.diff(sample.X[:, 0]) >= 0).all() and (sample.std > 0).all()
    assert_array_equal(sample.y, again.y)
    assert (draw(n, random_state=4).y != sample.y).all()
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("draw", SAMPLES)
def test_samples_have_the_truth_they_state(draw: Callable[..., Sample]) -> None:
    sample = draw(20_000, random_state=0)
    z = (sample.y - sample.mean) / sample.std
    assert_allclose([z.mean(), z.std()], [0, 1], atol=0.03)
    left = z[:10_000]
    assert_allclose([left.mean(), left.std()], [0, 1], atol=0.04)


@pytest.mark.parametrize("draw", SAMPLES)
@pytest.mark.parametrize("n", [0, -1, 2.0, 2.5, "10", None, True, np.nan])
def test_bad_n(draw: Callable[..., Sample], n: int) -> None:
    with pytest.raises(ValueError, match=r"^n=.*pass an integer of at least"):
        draw(n)


def test_two_gaussians_is_the_papers_example() -> None:
    sample = two_gaussians(random_state=0)
    for group, mean, std in ((0, 2, 0.5), (1, 5, 0.1)):
        rows = sample.X[:, 0] == group
        assert rows.sum() == 100
        assert (sample.mean[rows] == mean).all() and (sample.std[rows] == std).all()
    assert (two_gaussians(7).X[:, 0] == 0).sum() == 4
    with pytest.raises(ValueError, match="at least 2"):
        two_gaussians(1)
    # One mean, a variance for each group: two local minima, near 2 and near 5 (its figure 2).
    centre = np.linspace(0, 7, 1401)[:, None]
    halves = sample.y[:100], sample.y[100:]
    nll = sum(np.log(np.mean((half - centre) ** 2, axis=1)) for half in halves)
    lowest = np.flatnonzero((nll[1:-1] < nll[:-2]) & (nll[1:-1] < nll[2:])) + 1
    assert_allclose(centre[lowest, 0], [2, 5], atol=0.2)


# The module


def test_examples() -> None:
    failed, attempted = doctest.testmod(module)
    assert failed == 0 and attempted >= 9


def test_imports_are_light_and_point_nowhere() -> None:
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    top = {a.name for node in tree.body if isinstance(node, ast.Import) for a in node.names}
    top |= {node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert not any(name.split(".")[0] in {"sklearn", "pandas", "scipy"} for name in top)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0 and not (node.module or "").startswith("mvenet")
