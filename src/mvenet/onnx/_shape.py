"""The mixture of a composite as nodes: its moments, free shapes and atoms.

Its components are taken by blocks: those of the noises, and normals of one width around all values
that a sampler names. Values are of shape (n, k) for a block of k, (n, 1) once they are summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from statistics import NormalDist
from typing import Any, Protocol

import numpy as np

from mvenet._models.composite import Array, Composite
from mvenet._models.free_shape import NARROWEST_REST, Atoms, Ends, FreeShape, Hurdle
from mvenet.distributions._atoms import nothing_between
from mvenet.onnx._graph import Graph

# Of log(erfc(z) exp(z²) / t) in powers of 2t - 1, where t = 2 / (2 + z) and z is not negative: a
# relative error of 1e-11. onnxruntime has no Erf for doubles.
_ERFC = (
    *(-0.6717940840570031, 0.6726432239971842, 0.047343306903916, -0.04689561143891158),
    *(-0.009872691404892706, 0.008824960629814561, 0.0017589594988202276, -0.0023459977397270963),
    *(-0.000146413931474688, 0.0006745333514652728, -9.312082322921779e-05),
    *(-0.00017667124898325393, 7.004310035433982e-05, 3.5859218310201077e-05),
    *(-2.8381196755870824e-05, -4.391913271194539e-06, 7.222770544596281e-06),
    *(1.5688565326854592e-07, -9.02602914720774e-07),
)
HALVINGS = 60  # of the range between the components' quantiles
_OUTSIDE = 1e3  # standard deviations beyond which a normal has nothing
_ENDLESS = 1e300  # in the place of an infinite end of a cell


class Reads(Protocol):
    """The columns of a table as nodes."""

    @property
    def graph(self) -> Graph:
        """That nodes are added to."""


@dataclass(frozen=True)
class Block:
    """Components: their means (n, k); variances, (n, k) or (n, 1) if they are all the same.

    And the weight of each, (n, k), with one in the place of a size that makes no difference.
    """

    mean: str
    variance: str
    weight: str | Array


@singledispatch
def sampler_nodes(sampler: object, columns: Reads) -> str:
    """Nodes of values which a row may have, of shape (n, k)."""
    raise TypeError(
        f"The model holds values by a {type(sampler).__name__}, which has no place in the file: "
        "leave what brings them out of candidates to export the model."
    )


def shaped_blocks(columns: Reads, model: Composite, noises: Block, added: str) -> list[Block]:
    """The blocks of a free shape: that of the noises with weights by row, then its own."""
    graph, free = columns.graph, model.free
    assert free is not None
    values = [sampler_nodes(sampler, columns) for sampler in free.samplers]
    shares, at = _shares(graph, free, values[0]), len(model.weights)
    blocks = [replace(noises, weight=_columns_of(graph, shares, slice(0, at)))]
    for sampler, named, widths in zip(free.samplers, values, free.widths, strict=True):
        mean = graph("Clip", named, *model.limits)
        for width in widths:
            variance = bounded(graph, model, graph("Add", added, np.square(width)[None]))
            weight = _columns_of(graph, shares, slice(at, at + 1), float(len(sampler)))
            blocks.append(Block(mean, variance, weight))
            at += 1
    for made in _residual_blocks(graph, model, free, noises, values[0], added):
        for block in made:  # of one width: they share a weight
            share = _columns_of(graph, shares, slice(at, at + 1))
            blocks.append(replace(block, weight=graph("Mul", share, block.weight)))
        at += 1
    return blocks


def _residual_blocks(
    graph: Graph, model: Composite, free: FreeShape, noises: Block, draws: str, added: str
) -> list[list[Block]]:
    """The blocks of residuals: those of each width, with their shares of its weight."""
    residuals = free.residuals
    if residuals is None:
        return []
    location, scale = moments(graph, [noises])
    equal: str | Array = np.full((1, 1), 1.0 / len(residuals.quantiles))
    atoms = list[Block]()
    if residuals.hurdle is not None:
        hurdle = residuals.hurdle
        chances = _chances(graph, hurdle, draws, len(free.samplers[0]))
        none = graph("Mul", location, 0.0)
        spots = bounded(graph, model, graph("Add", added, np.square(hurdle.widths)[None]))
        values = graph("Clip", graph("Add", none, hurdle.values[None]), *model.limits)
        atoms.append(Block(values, spots, chances))
        left = graph("Sub", 1.0, _total(graph, chances))
        location, scale = _rest(graph, hurdle, chances, left, (location, scale))
        equal = graph("Mul", left, equal)
    around = graph("Add", location, graph("Mul", scale, residuals.quantiles[None]))
    around = graph("Clip", around, *model.limits)
    made = []
    for share in residuals.widths:
        own = graph("Mul", graph("Mul", scale, scale), float(share**2))
        variance = bounded(graph, model, graph("Add", added, own))
        made.append([*atoms, Block(around, variance, equal)])
    return made


def _chances(graph: Graph, hurdle: Hurdle, draws: str, count: int) -> str:
    """Probability of each atom, (n, atoms); as :meth:`Hurdle.probabilities`, of so many draws."""
    import onnx

    each = []
    for low, high in hurdle.cells:
        inside = graph(
            "And", graph("GreaterOrEqual", draws, float(low)),
            graph("LessOrEqual", draws, float(high)),
        )  # fmt: skip
        each.append(graph("Cast", inside, to=onnx.TensorProto.DOUBLE))
    named = graph("Concat", *(_total(graph, one) for one in each), axis=1)
    total = graph("Add", named, hurdle.trees * hurdle.usual[None])
    return graph("Div", total, count + hurdle.trees)


def _rest(
    graph: Graph, hurdle: Hurdle, chances: str, left: str, of_all: tuple[str, str]
) -> tuple[str, str]:
    """Mean and std of what is no atom, (n, 1); as in :meth:`Hurdle.rest`."""
    location, scale = of_all
    apart = graph("Sub", hurdle.values[None], location)
    weighted = _total(graph, graph("Mul", chances, apart))
    shift = graph("Neg", graph("Div", weighted, left))
    far = graph("Div", apart, scale)
    between = _total(graph, graph("Mul", chances, graph("Mul", far, far)))
    moved = graph("Div", shift, scale)
    inside = graph("Div", graph("Sub", 1.0, between), left)
    square = graph("Sub", inside, graph("Mul", moved, moved))
    narrow = graph("Sqrt", graph("Max", square, NARROWEST_REST**2))
    return graph("Add", location, shift), graph("Mul", scale, narrow)


def bounded(graph: Graph, model: Composite, variance: str) -> str:
    """Variance of components that are neither too narrow nor too wide."""
    if model.narrowest > 0:
        variance = graph("Max", variance, float(model.narrowest**2))
    return variance if np.isinf(model.widest) else graph("Min", variance, float(model.widest**2))


def _shares(graph: Graph, free: FreeShape, values: str) -> str | Array:
    """Weights of the blocks, (n, blocks), by how far the first values lie apart."""
    import onnx

    if not len(free.ends):
        return free.weights
    first = graph("Gather", values, np.array([0]), axis=1)
    apart = graph("Sub", values, first)
    squares = _mean(graph, graph("Mul", apart, apart))
    centre = _mean(graph, apart)
    variance = graph("Sub", squares, graph("Mul", centre, centre))
    spread = graph("Sqrt", graph("Max", variance, 0.0))
    above = graph("GreaterOrEqual", spread, free.ends[None])
    counted = graph("Cast", above, to=onnx.TensorProto.INT64)
    number = graph("ReduceSum", counted, np.array([1]), keepdims=0)
    return graph("Gather", free.weights, number, axis=0)


def _columns_of(
    graph: Graph, shares: str | Array, some: slice, shared_by: float = 1.0
) -> str | Array:
    """Weights of some blocks, each divided among so many components."""
    if not isinstance(shares, str):
        return shares[:, some] / shared_by
    columns = np.arange(some.start, some.stop)
    return graph("Div", graph("Gather", shares, columns, axis=1), shared_by)


def _mean(graph: Graph, values: str) -> str:
    """From (n, k) to (n, 1)."""
    return graph("ReduceMean", values, axes=[1], keepdims=1)


def _expected(graph: Graph, blocks: Sequence[Block], values: Sequence[str]) -> str:
    """Weighted sum of what is known of each component: from (n, k) to (n, 1)."""
    parts = zip(blocks, values, strict=True)
    return graph("Sum", *(_total(graph, graph("Mul", v, b.weight)) for b, v in parts))


def _expected_of_ends(graph: Graph, blocks: Sequence[Block], values: Sequence[str]) -> str:
    """The same of several ends or cells: from (n, k, ends) to (n, ends)."""
    sums = []
    for block, value in zip(blocks, values, strict=True):
        own = graph("Mul", value, _third(graph, block.weight))
        sums.append(graph("ReduceSum", own, np.array([1]), keepdims=0))
    return graph("Sum", *sums)


def moments(graph: Graph, blocks: Sequence[Block]) -> tuple[str, str]:
    """Mean and std of the mixture, (n, 1), from those of its components."""
    centre = _expected(graph, blocks, [block.mean for block in blocks])
    squares = []
    for block in blocks:
        distance = graph("Sub", block.mean, centre)
        squares.append(graph("Add", block.variance, graph("Mul", distance, distance)))
    return centre, graph("Sqrt", _expected(graph, blocks, squares))


def log_moments(graph: Graph, blocks: Sequence[Block]) -> tuple[str, str]:
    """The same where mean and variance are of log y: moments of y, of a mixture of log-normals.

    As in :func:`mvenet._models.mixture.moments`, counted from a common median.
    """
    centre = _expected(graph, blocks, [block.mean for block in blocks])
    members = [
        graph("Exp", graph("Add", graph("Sub", b.mean, centre), graph("Mul", b.variance, 0.5)))
        for b in blocks
    ]
    average = _expected(graph, blocks, members)
    squares = []
    for own, block in zip(members, blocks, strict=True):
        within = graph("Mul", graph("Mul", own, own), _expm1(graph, block.variance))
        distance = graph("Sub", own, average)
        squares.append(graph("Add", within, graph("Mul", distance, distance)))
    scale = graph("Exp", centre)
    std = graph("Mul", scale, graph("Sqrt", _expected(graph, blocks, squares)))
    return graph("Mul", scale, average), std


def quantiles(graph: Graph, blocks: Sequence[Block], levels: Array) -> str:
    """Quantiles of the mixture, (n, levels), by bisection between those of its components."""
    probits = np.array([NormalDist().inv_cdf(float(level)) for level in levels])
    stds = [graph("Sqrt", block.variance) for block in blocks]
    own = [
        graph("Add", _third(graph, b.mean), graph("Mul", _third(graph, std), probits[None, None]))
        for b, std in zip(blocks, stds, strict=True)
    ]
    every = own[0] if len(own) == 1 else graph("Concat", *own, axis=1)
    ends = (graph(f"Reduce{end}", every, axes=[1], keepdims=0) for end in ("Min", "Max"))

    def halved(inside: Graph, low: str, high: str) -> tuple[str, str]:
        middle = inside("Mul", inside("Add", low, high), 0.5)
        place = inside("Unsqueeze", middle, np.array([1]))
        each = [_below(inside, _from_means(inside, b, place)) for b in blocks]
        less = inside("Less", _expected_of_ends(inside, blocks, each), levels[None])
        return inside("Where", less, middle, low), inside("Where", less, high, middle)

    low, high = graph.repeated(HALVINGS, halved, *ends)
    return graph("Mul", graph("Add", low, high), 0.5)


def collected(graph: Graph, atoms: Atoms, values: str) -> str:
    """Each value, (n, q), or the atom in whose cell it lies."""
    third = _third(graph, values)
    after = graph("GreaterOrEqual", third, atoms.cells[None, None, :, 0])
    inside = graph.double(graph("And", after, graph("Less", third, atoms.cells[None, None, :, 1])))
    atom = graph("ReduceSum", graph("Mul", inside, atoms.values), np.array([2]), keepdims=0)
    any_cell = graph("ReduceSum", inside, np.array([2]), keepdims=0)
    return graph("Where", graph("Greater", any_cell, 0.5), atom, values)


def squeezed(graph: Graph, ends: Ends, values: str) -> str:
    """Each value, (n, q), or where it is before an end; see ``mvenet.distributions.Bounded``."""
    found = values
    for end, reach, inner, sign in _known(ends):
        near = graph("Min", graph("Mul", graph("Sub", values, inner), sign / reach), 0.0)
        before = graph("Add", graph("Mul", graph("Exp", near), sign * reach), end)
        found = graph("Where", graph("Less", near, 0.0), before, found)
    return found


def _known(ends: Ends) -> Iterator[tuple[float, float, float, float]]:
    """Of each end that is there: itself, its reach, how far that goes, and the direction."""
    for end, reach, sign in zip(ends.values, ends.reach, (1.0, -1.0), strict=True):
        if np.isfinite(end):
            yield float(end), float(reach), float(end + sign * reach), sign


def moments_with_ends(
    graph: Graph, ends: Ends, blocks: Sequence[Block], smooth: tuple[str, str]
) -> tuple[str, str]:
    """Mean and std, (n, 1), once what is beyond an end is squeezed before it.

    As in :meth:`mvenet.distributions.Bounded.moments_from`.
    """
    origin, std = smooth
    first, second = graph("Mul", origin, 0.0), graph("Mul", std, std)
    for end, reach, inner, sign in _known(ends):
        cell = (-_ENDLESS, inner) if sign > 0 else (inner, _ENDLESS)
        cells = [np.array([place]) for place in cell]
        taken = [_partial(graph, block, cells, origin) for block in blocks]
        put = [_exponentials(graph, block, reach, inner, sign) for block in blocks]
        _, one, two = (
            _expected_of_ends(graph, blocks, [some[power] for some in taken]) for power in range(3)
        )
        none, some, more = (
            _expected_of_ends(graph, blocks, [each[power] for each in put]) for power in range(3)
        )
        apart, far = graph("Sub", end, origin), sign * reach
        moved = graph("Add", graph("Mul", apart, none), graph("Mul", some, far))
        first = graph("Add", first, graph("Sub", moved, one))
        square = graph("Mul", graph("Mul", apart, apart), none)
        square = graph("Add", square, graph("Mul", graph("Mul", apart, some), 2.0 * far))
        square = graph("Add", square, graph("Mul", more, far**2))
        second = graph("Add", second, graph("Sub", square, two))
    variance = graph("Max", graph("Sub", second, graph("Mul", first, first)), 0.0)
    mean = graph("Clip", graph("Add", origin, first), *np.clip(ends.values, -_ENDLESS, _ENDLESS))
    return mean, graph("Sqrt", variance)


def _exponentials(graph: Graph, block: Block, reach: float, inner: float, sign: float) -> list[str]:
    """``E[exp(k (z - c) / h); z < c]`` for k of 0, 1 and 2, each (n, k, 1); as in Bounded."""
    z = graph("Mul", _ends(graph, block, np.array([inner])), sign)
    ratio = graph("Mul", graph("Sqrt", _third(graph, block.variance)), 1.0 / reach)
    half_bell = graph("Mul", graph("Exp", graph("Mul", graph("Mul", z, z), -0.5)), 0.5)
    found = []
    for power in range(3):
        t = graph("Sub", z, graph("Mul", ratio, float(power)))
        size = graph("Mul", graph("Max", graph("Neg", t), 0.0), float(np.sqrt(0.5)))
        factor, exponent = _erfcx(graph, size)
        far = graph("Mul", half_bell, graph("Mul", factor, graph("Exp", exponent)))
        growth = graph("Sub", graph("Mul", ratio, 0.5 * power), z)
        growth = graph("Min", graph("Mul", graph("Mul", ratio, growth), float(power)), 0.0)
        near = graph("Mul", graph("Exp", growth), _below(graph, t))
        found.append(graph("Where", graph("Less", t, 0.0), far, near))
    return found


def _expm1(graph: Graph, value: str) -> str:
    """``exp(v) - 1 = 2t / (1 - t)`` with ``t = tanh(v/2)``, exact for small v."""
    t = graph("Tanh", graph("Mul", value, 0.5))
    return graph("Div", graph("Mul", t, 2.0), graph("Sub", 1.0, t))


# --- atoms ---------------------------------------------------------------------------------------


def moments_with_atoms(
    graph: Graph, model: Composite, blocks: Sequence[Block], smooth: tuple[str, str]
) -> tuple[str, str]:
    """Mean and std, (n, 1), once what lies in the cell of an atom is at the atom.

    As in :class:`mvenet.distributions.WithAtoms`.
    """
    assert model.atoms is not None
    if nothing_between(model.atoms.cells):
        return _of_atoms_alone(graph, model, blocks)
    return _of_atoms_among_others(graph, model, blocks, smooth)


def _of_atoms_alone(graph: Graph, model: Composite, blocks: Sequence[Block]) -> tuple[str, str]:
    assert model.atoms is not None
    values, between = model.atoms.values, _places(model.atoms.cells[1:, 0], model.log)
    if len(values) == 1:
        none = graph("Mul", _expected(graph, blocks[:1], [blocks[0].mean]), 0.0)
        return graph("Add", none, values[None]), none
    each = [_below(graph, _ends(graph, block, between)) for block in blocks]
    below = _expected_of_ends(graph, blocks, each)  # (n, atoms - 1)
    none = graph("Mul", graph("Gather", below, np.array([0]), axis=1), 0.0)
    whole = graph("Add", none, 1.0)
    upper, lower = (graph("Concat", *ends, axis=1) for ends in ((below, whole), (none, below)))
    masses = graph("Max", graph("Sub", upper, lower), 0.0)
    mean = _total(graph, graph("Mul", masses, values[None]))
    distance = graph("Sub", values[None], mean)
    variance = _total(graph, graph("Mul", masses, graph("Mul", distance, distance)))
    return mean, graph("Sqrt", variance)


def _of_atoms_among_others(
    graph: Graph, model: Composite, blocks: Sequence[Block], smooth: tuple[str, str]
) -> tuple[str, str]:
    """What lies in the cells is taken out of the smooth moments, and the atoms are put in."""
    assert model.atoms is not None
    origin, std = smooth
    cells = [_places(ends, model.log) for ends in model.atoms.cells.T]
    inside = [
        _log_partial(graph, block, cells) if model.log else _partial(graph, block, cells, origin)
        for block in blocks
    ]
    mass, one, two = (
        _expected_of_ends(graph, blocks, [moments[power] for moments in inside])
        for power in range(3)
    )
    if model.log:  # counted from zero
        one, two = _about(graph, origin, mass, one, two)
    distance = graph("Sub", model.atoms.values[None], origin)
    first = graph("Sub", graph("Mul", distance, mass), one)
    second = graph("Sub", graph("Mul", graph("Mul", distance, distance), mass), two)
    moved = _total(graph, first)
    square = graph("Add", graph("Mul", std, std), _total(graph, second))
    variance = graph("Max", graph("Sub", square, graph("Mul", moved, moved)), 0.0)
    return graph("Add", origin, moved), graph("Sqrt", variance)


def _partial(
    graph: Graph, block: Block, cells: Sequence[Array], origin: str
) -> tuple[str, str, str]:
    """Mass of normals in each cell, and first and second moment about the origin, (n, k, atoms)."""
    ends = [_ends(graph, block, end) for end in cells]
    share = _difference(graph, [_below(graph, z) for z in ends])
    heights = [_bell(graph, z) for z in ends]
    bell = _difference(graph, heights)
    reach = _difference(graph, [graph("Mul", z, b) for z, b in zip(ends, heights, strict=True)])
    apart = _third(graph, graph("Sub", block.mean, origin))
    variance = _third(graph, block.variance)
    std = graph("Sqrt", variance)
    first = graph("Sub", graph("Mul", apart, share), graph("Mul", std, bell))
    square = graph("Add", graph("Mul", apart, apart), variance)
    second = graph("Mul", square, share)
    twice = graph("Mul", graph("Mul", graph("Mul", apart, 2.0), std), bell)
    return share, first, graph("Sub", graph("Sub", second, twice), graph("Mul", variance, reach))


def _log_partial(graph: Graph, block: Block, cells: Sequence[Array]) -> tuple[str, str, str]:
    """The same of log-normals about zero: ``E[y^p; a < log y < b]``."""
    mean, variance = _third(graph, block.mean), _third(graph, block.variance)
    std, ends, raw = graph("Sqrt", variance), [_ends(graph, block, end) for end in cells], []
    for power in range(3):
        shift = graph("Mul", std, float(power))
        shifted = [graph.within(graph("Sub", z, shift), _OUTSIDE) for z in ends]
        share = _difference(graph, [_below(graph, z) for z in shifted])
        within = graph("Mul", variance, 0.5 * power**2)
        size = graph("Exp", graph("Add", graph("Mul", mean, float(power)), within))
        raw.append(graph("Mul", size, share))
    zero, first, second = raw
    return zero, first, second


def _about(graph: Graph, origin: str, mass: str, first: str, second: str) -> tuple[str, str]:
    """First and second moment about an origin, from those about zero."""
    twice = graph("Mul", graph("Mul", origin, 2.0), first)
    square = graph("Mul", graph("Mul", origin, origin), mass)
    one = graph("Sub", first, graph("Mul", origin, mass))
    return one, graph("Add", graph("Sub", second, twice), square)


def _places(ends: Array, log: bool) -> Array:
    """Ends of cells on the scale of the components, finite."""
    if log:
        with np.errstate(divide="ignore"):
            ends = np.log(np.maximum(ends, 0.0))
    return np.clip(ends, -_ENDLESS, _ENDLESS)


def _ends(graph: Graph, block: Block, ends: Array) -> str:
    """How many standard deviations each end is from each mean, (n, k, ends)."""
    return _from_means(graph, block, ends[None, None])


def _from_means(graph: Graph, block: Block, places: str | Array) -> str:
    """The same of places of shape (n, 1, ends)."""
    distance = graph("Sub", places, _third(graph, block.mean))
    std = graph("Sqrt", _third(graph, block.variance))
    return graph.within(graph("Div", distance, std), _OUTSIDE)


def _third(graph: Graph, value: str | Array) -> str:
    """From (n, k) to (n, k, 1)."""
    return graph("Unsqueeze", value, np.array([2]))


def _difference(graph: Graph, both: Sequence[str]) -> str:
    low, high = both
    return graph("Sub", high, low)


def _total(graph: Graph, values: str) -> str:
    """Sum of each row: from (n, k) to (n, 1)."""
    return graph("ReduceSum", values, np.array([1]), keepdims=1)


def _bell(graph: Graph, z: str) -> str:
    """Density of the standard normal."""
    half = graph("Mul", graph("Mul", z, z), -0.5)
    return graph("Mul", graph("Exp", half), float(1 / np.sqrt(2 * np.pi)))


def _below(graph: Graph, z: str) -> str:
    """Distribution function of the standard normal: half of ``erfc(-z / √2)``."""
    size = graph("Mul", graph("Abs", z), float(np.sqrt(0.5)))
    t, total = _erfcx(graph, size)
    exponent = graph("Sub", total, graph("Mul", size, size))
    tail = graph("Mul", graph("Mul", t, graph("Exp", exponent)), 0.5)
    # 1/2 + s (1/2 - tail) for the sign s
    half = graph("Mul", graph("Sub", 0.5, tail), graph("Sign", z))
    return graph("Add", half, 0.5)


def _erfcx(graph: Graph, size: str) -> tuple[str, str]:
    """``exp(z²) erfc(z)`` of what is not negative, as a factor and an exponent."""
    t = graph("Div", 2.0, graph("Add", size, 2.0))
    power: Any = graph("Sub", graph("Mul", t, 2.0), 1.0)
    total: Any = float(_ERFC[-1])
    for coefficient in _ERFC[-2::-1]:
        total = graph("Add", graph("Mul", total, power), float(coefficient))
    return t, total
