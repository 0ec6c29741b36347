"""CSV files and stores changed at random: read as a table, read as they were, or refused in words.

    python tests/fuzz/fuzz_input.py --count 10000 [--seed 7] [--jobs 8]

A CSV file may become any other table, but reading it never raises anything but ValueError, in one
line. A store either gives the results that were put into it, fewer of them never being told as all,
or is refused.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

import numpy as np

from mvenet.comparison._store import Store
from mvenet.table import TableEncoder, read
from mvenet.table._files import chunks

Rng = np.random.Generator
PIECES = (
    *(b"", b",", b";", b"\t", b"|", b"\n", b"\r\n", b"\r", b'"', b'""', b"'", b"\0", b"\xff\xfe"),
    *(b"\xef\xbb\xbf", b"1e999", b"-1e-999", b"NaN", b"inf", b"1,5", b"0x10", b"\xe9", b"=1+1"),
    *(b"9" * 400, b"a" * 200_000, b"\xf0\x9f\x98\x80", b"2024-01-31", b"true", b" ", b"#", b"//"),
)
TABLES = (
    b"size,town,new,price\n1.5,Aa,yes,10\n2,Bb,no,20\n,Aa,yes,15\n4,Cc,no,1e3\n" * 3,
    b"a;b\n1,5;2\n3,25;x\n" * 20,
    "größe\tname\n1\tÄ\n2\tÖ\n".encode("utf-16"),
    b'x,y\n"1","a ""quoted"" one"\n2,"two\nlines"\n',
    b"only\n" + b"".join(b"%d\n" % i for i in range(50)),
)
SETTINGS = {"data": "12 rows", "arms": {"a": {"epochs": "3"}}, "random_state": 1}
RESULTS = {fold: {"arms": {"a": {"loglik": -1.5 - fold}}, "steps": 10 * fold} for fold in range(6)}
PART = 500  # cases of a process, after which another may be done


class CaseError(AssertionError):
    """A case that did what none may do."""


def replaced(data: bytes, rng: Rng) -> bytes:
    """Put a piece in the place of a few bytes."""
    at = int(rng.integers(len(data) + 1))
    return data[:at] + PIECES[int(rng.integers(len(PIECES)))] + data[at + int(rng.integers(4)) :]


def flipped(data: bytes, rng: Rng) -> bytes:
    """Flip a few bits."""
    changed = bytearray(data)
    for at in rng.integers(len(data), size=int(rng.integers(1, 9))):
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(data: bytes, rng: Rng) -> bytes:
    """Keep the beginning."""
    return data[: int(rng.integers(len(data)))]


def doubled(data: bytes, rng: Rng) -> bytes:
    """Write a block twice, or over another."""
    a, b, size = (int(v) for v in rng.integers(len(data), size=3))
    overwrite = size if rng.random() < 0.5 else 0
    return data[:a] + data[b : b + size] + data[a + overwrite :]


CHANGES: tuple[Callable[[bytes, Rng], bytes], ...] = (replaced, flipped, cut, doubled)


def changed(data: bytes, rng: Rng) -> bytes:
    """A few changes, one after the other."""
    for _ in range(int(rng.integers(1, 4))):
        if data:
            data = CHANGES[int(rng.integers(len(CHANGES)))](data, rng)
    return data


def in_words(error: Exception) -> str:
    """Outcome of a refusal, which must be a sentence."""
    said = str(error)
    if not isinstance(error, ValueError | OSError) or len(said) < 15:
        raise CaseError(f"raised {type(error).__name__}: {said[:300]}") from error
    return "refused"


def csv_case(path: Path, rng: Rng) -> str:
    """Read a changed table, whole and in parts, and encode it."""
    path.write_bytes(changed(TABLES[int(rng.integers(len(TABLES)))], rng))
    try:
        frame = read(path)
        parts = sum(len(part.shown) for part in chunks(path))
    except Exception as error:
        return in_words(error)
    if parts != len(frame):
        raise CaseError(f"has {len(frame)} rows whole and {parts} in parts")
    try:
        numbers = TableEncoder().fit(frame).transform(frame)
    except Exception as error:
        return in_words(error)
    if numbers.shape[0] != len(frame) or not np.isfinite(numbers).all():
        raise CaseError("is encoded as something that is no number")
    return "read"


def store_case(path: Path, rng: Rng, good: bytes) -> str:
    """Open a changed store and read all of it."""
    path.write_bytes(changed(good, rng))
    try:
        with Store(path.parent) as store:
            found, settings = store.results(), store.settings()
    except Exception as error:
        return in_words(error)
    if settings not in (SETTINGS, None) or any(RESULTS.get(k) != v for k, v in found.items()):
        raise CaseError("gives results that were never put into it")
    return "as it was" if found == RESULTS else "fewer"


def good_store(folder: Path) -> bytes:
    """The file of a store with a few results."""
    with Store(folder) as store:
        store.begin(SETTINGS)
        for fold, result in RESULTS.items():
            store.add(fold, result)
    return (folder / "results.sqlite").read_bytes()


def run(folder: Path, count: int, seed: int = 0, first: int = 0) -> Counter[tuple[str, str]]:
    """Try that many cases of each kind; count what became of them."""
    results = Counter[tuple[str, str]]()
    good = good_store(folder / "store")
    table = folder / "case.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas may have an opinion on what it reads
        for number in range(first, first + count):
            rng = np.random.default_rng([seed, number])
            for kind in ("table", "store"):
                try:
                    if kind == "table":
                        outcome = csv_case(table, rng)
                    else:
                        outcome = store_case(folder / "store" / "results.sqlite", rng, good)
                except CaseError as failure:
                    failure.add_note(f"{kind}, seed {seed}, case {number}: in {folder}")
                    raise
                results[kind, outcome] += 1
    return results


def part(first: int, count: int, seed: int) -> Counter[tuple[str, str]]:
    """Cases from the first on, in a folder of their own, which stays if one fails."""
    memory = Path("/dev/shm")  # a disk would be most of the time
    folder = Path(tempfile.mkdtemp(prefix="fuzz-", dir=memory if memory.is_dir() else None))
    results = run(folder, count, seed, first)
    shutil.rmtree(folder)
    return results


def main() -> None:
    """Fuzz, and say what became of the cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=4 * (os.cpu_count() or 1))
    options = parser.parse_args()
    start = time.monotonic()
    # More processes than cores: most of what polars does here is to wait for its own thread.
    os.environ["POLARS_MAX_THREADS"] = "1"
    firsts = range(0, options.count, PART)
    sizes = [min(PART, options.count - first) for first in firsts]
    spawned = multiprocessing.get_context("spawn")  # polars does not survive a fork
    with ProcessPoolExecutor(options.jobs, mp_context=spawned) as pool:
        results = Counter[tuple[str, str]]()
        for counted in pool.map(part, firsts, sizes, repeat(options.seed)):
            results += counted
    for (kind, outcome), n in sorted(results.items()):
        print(f"{kind:8s} {outcome:10s} {n:7d}")  # noqa: T201
    print(f"{sum(results.values())} files in {time.monotonic() - start:.0f} s")  # noqa: T201


if __name__ == "__main__":
    main()
