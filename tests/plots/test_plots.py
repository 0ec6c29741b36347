"""The pictures: what they show is what was computed otherwise, and all of it can be read."""

from __future__ import annotations

import inspect
import io
import itertools
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from mvenet import (  # noqa: E402
    CalibratedRegressor,
    MVERegressor,
    MVERegressorCV,
    Normal,
    NormalMixture,
    metrics,
    plots,
)
from mvenet.datasets import quadratic  # noqa: E402
from mvenet.distributions import LogNormalMixture, WithAtoms  # noqa: E402
from mvenet.plots import (  # noqa: E402
    BandDisplay,
    CoverageByDisplay,
    CoverageDisplay,
    DensityDisplay,
    HistoryDisplay,
    PITDisplay,
    PredictionDisplay,
    SearchDisplay,
    SpreadDisplay,
    UncertaintyDisplay,
)
from mvenet.plots._sweep import sweep  # noqa: E402

pytestmark = pytest.mark.usefixtures("short")

TINY = {
    "strategy": "warmup",
    "hidden_mean": (5,),
    "hidden_var": (5,),
    "warmup_epochs": 3,
    "epochs": 4,
    "random_state": 0,
}
DATA = quadratic(120, random_state=0)
FRESH = quadratic(150, random_state=1)
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(90, 3))
TARGET = TABLE @ [1.0, 0.5, 0.0] + 0.3 * RNG.normal(size=90)
OKABE_ITO = {"#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#000000"}


SMOOTH = NormalMixture([[0.2, 2.0, 1.0], [3.0, 2.5, 1.0]], [[0.5, 1.0, 0.3], [0.2, 1.0, 0.3]])
MIXED = WithAtoms(SMOOTH, [0.0, 3.0], [[-np.inf, 0.1], [2.9, 3.1]], 0.1)
RATINGS = WithAtoms(
    SMOOTH, [0.0, 1.0, 2.0, 3.0], [[-np.inf, 0.5], [0.5, 1.5], [1.5, 2.5], [2.5, np.inf]], 1.0
)


@pytest.fixture(autouse=True)
def clean():
    """Close all figures, and see that no global setting of matplotlib was changed."""
    plt.close("all")
    before = dict(matplotlib.rcParams)
    yield
    plt.close("all")
    assert dict(matplotlib.rcParams) == before


@pytest.fixture(scope="module")
def ensemble():
    return MVERegressor(n_members=3, **TINY).fit(DATA.X, DATA.y)


@pytest.fixture(scope="module")
def wide():
    """An ensemble on three columns."""
    return MVERegressor(n_members=3, **TINY).fit(TABLE, TARGET)


def searched(**settings):
    search = MVERegressorCV(**({"strategy": "warmup", "cv": 3, "n_members": 1, **TINY} | settings))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the best is at the end of a tiny grid
        return search.fit(DATA.X, DATA.y)


@pytest.fixture(scope="module")
def search():
    return searched(reg_mean=[1e-3, 1e-2, 1e-1], reg_var=[1e-3, 1e-2])


@pytest.fixture(scope="module")
def everything(ensemble, wide, search):
    """A function for each picture that takes ``ax``."""
    X, y = FRESH.X, FRESH.y
    stopped = MVERegressor(n_members=2, early_stopping=True, **TINY).fit(DATA.X, DATA.y)
    return {
        "band": lambda ax: BandDisplay.from_estimator(ensemble, X, y, ax=ax),
        "band of several": lambda ax: BandDisplay.from_estimator(wide, TABLE, TARGET, ax=ax),
        "parts": lambda ax: UncertaintyDisplay.from_estimator(ensemble, X, ax=ax),
        "parts of rows": lambda ax: UncertaintyDisplay.from_estimator(wide, TABLE, ax=ax),
        "density": lambda ax: DensityDisplay.from_estimator(ensemble, X, ax=ax),
        "density with an atom": lambda ax: DensityDisplay.from_predictions(MIXED, ax=ax),
        "density of atoms": lambda ax: DensityDisplay.from_predictions(RATINGS, ax=ax),
        "prediction": lambda ax: PredictionDisplay.from_estimator(ensemble, X, y, ax=ax),
        "some": lambda ax: PredictionDisplay.from_estimator(ensemble, X, y, max_points=50, ax=ax),
        "coverage": lambda ax: CoverageDisplay.from_estimator(ensemble, X, y, ax=ax),
        "coverage by": lambda ax: CoverageByDisplay.from_estimator(
            ensemble, X, y, np.arange(len(y)) % 3, ax=ax
        ),
        "pit": lambda ax: PITDisplay.from_estimator(ensemble, X, y, ax=ax),
        "spread": lambda ax: SpreadDisplay.from_estimator(ensemble, X, y, ax=ax),
        "search": lambda ax: SearchDisplay.from_estimator(search, ax=ax),
        "history": lambda ax: HistoryDisplay.from_estimator(ensemble, ax=ax),
        "history of two": lambda ax: HistoryDisplay.from_estimator(stopped, ax=ax),
    }


PICTURES = (
    "band", "band of several", "parts", "parts of rows", "density", "density with an atom",
    "density of atoms", "prediction", "some", "coverage", "pit",
    "spread", "search", "history", "history of two",
)  # fmt: skip


def vertices(collection):
    """Lower and upper end of a filled band at each place, in the order of the places."""
    path = collection.get_paths()[0].vertices
    places = np.unique(path[:, 0])
    ends = [path[path[:, 0] == x, 1] for x in places]
    return places, np.array([[e.min(), e.max()] for e in ends])


def labels_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# --- all pictures --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PICTURES)
def test_own_figure_can_be_read(everything, name):
    """Nothing is cut off and nothing overlaps, at the size that is made by default."""
    display = everything[name](None)
    ax, figure = display.ax_, display.figure_
    assert plt.get_fignums() == [figure.number]
    figure.draw_without_rendering()
    labels = [ax.xaxis.label, ax.yaxis.label]
    assert all(label.get_text().strip() for label in labels)
    legend = ax.get_legend()
    assert legend is not None and all(labels_of(ax))
    page, axes = figure.bbox, ax.get_window_extent()
    boxes = {text.get_text(): text.get_window_extent() for text in labels}
    boxes["legend"] = legend.get_window_extent()
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
        inside = [t.label1.get_window_extent() for t in ticks]
        assert len(inside) > 1
        for a, b in itertools.combinations(inside, 2):
            assert not a.overlaps(b)
        boxes |= {f"tick {i} {axis.axis_name}": box for i, box in enumerate(inside)}
    for what, box in boxes.items():
        assert not axes.padded(-1).overlaps(box), what
        assert box.x0 >= -1 and box.y0 >= -1, what
        assert box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1, what
    for (a, first), (b, second) in itertools.combinations(boxes.items(), 2):
        assert not first.padded(-0.5).overlaps(second.padded(-0.5)), (a, b)


@pytest.mark.parametrize("name", PICTURES)
def test_axes_of_ones_own(everything, name):
    figure = Figure()
    axes = figure.subplots(1, 2)
    display = everything[name](axes[1])
    assert display.ax_ is axes[1] and display.figure_ is figure
    assert plt.get_fignums() == []  # pyplot knows nothing of it
    assert not axes[0].lines and not axes[0].collections
    figure.draw_without_rendering()
    again = figure.add_subplot()
    assert display.plot(again) is display and display.ax_ is again


@pytest.mark.parametrize("name", PICTURES)
def test_colours(everything, name):
    """Lines are of the palette, or grey."""
    for line in everything[name](None).ax_.lines:
        color = to_hex(line.get_color())
        assert color in OKABE_ITO or len({color[1:3], color[3:5], color[5:7]}) == 1


def test_axes_must_be_axes(ensemble):
    with pytest.raises(TypeError, match="ax must be matplotlib Axes or None, got ndarray"):
        PITDisplay.from_estimator(ensemble, FRESH.X, FRESH.y, ax=np.array([1]))


def test_a_title_stands_free(ensemble):
    display = BandDisplay.from_estimator(ensemble, FRESH.X, FRESH.y)
    title = display.ax_.set_title("Title")
    display.figure_.draw_without_rendering()
    boxes = display.ax_.get_window_extent(), display.ax_.get_legend().get_window_extent()
    assert not any(title.get_window_extent().overlaps(box) for box in boxes)


def test_without_matplotlib(monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'^plots need matplotlib: pip install "mvenet\[plot\]"$'):
        PITDisplay.from_predictions([0.0], [0.0], [1.0])


def test_names_do_not_clash_with_scikit_learn():
    import sklearn.calibration
    import sklearn.inspection
    import sklearn.metrics
    import sklearn.model_selection

    known = {
        name
        for module in (sklearn.metrics, sklearn.inspection, sklearn.model_selection)
        for name in dir(module)
    }
    assert not known & set(plots.__all__)
    assert all(name.endswith("Display") for name in plots.__all__)


def test_interface_is_scikit_learns():
    for name in plots.__all__:
        display = getattr(plots, name)
        assert next(iter(inspect.signature(display.plot).parameters)) == "self"
        assert inspect.signature(display.from_estimator).parameters["ax"].default is None


# --- densities -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dist", [SMOOTH, MIXED, RATINGS, LogNormalMixture([[0.0, 1.0]], [[0.5, 0.02]])], ids=repr
)
def test_areas_of_a_density_are_probabilities(dist):
    display = DensityDisplay.from_predictions(dist)
    area = display.density @ np.diff(display.edges) + display.masses.sum(axis=1)
    assert_allclose(area, 1, atol=5e-3)
    for row, density in enumerate(display.density):
        one = dist[row]
        values = [one.pmf(value)[0] for value in display.atoms]
        assert_allclose(display.masses[row], values, atol=1e-12)
        outside = np.abs(display.edges[:, None] - 1.7).argmin()
        smooth = dist.smooth[row] if isinstance(dist, WithAtoms) else one
        if dist is not RATINGS:
            middle = display.edges[outside : outside + 2].mean()
            assert density[outside] == pytest.approx(smooth.pdf(middle)[0], rel=0.02, abs=1e-9)
    drawn = [bar.get_height() * bar.get_width() for bars in display.bars_ for bar in bars]
    if dist is MIXED:
        assert_allclose(drawn, display.masses.ravel(), atol=1e-12)
    if dist is RATINGS:
        heights = [bar.get_height() for bars in display.bars_ for bar in bars]
        assert_allclose(heights, display.masses.ravel(), atol=1e-12)
        assert display.lines_ == [] and display.ax_.get_ylabel() == "Probability"


def test_a_narrow_peak_is_seen_and_rows_are_chosen():
    ones = np.ones(90)
    many = NormalMixture([0 * ones, 100 * ones], [1e-6 * ones, 10 * ones])
    display = DensityDisplay.from_predictions(many, max_rows=3, y_label="power (kW)", alpha=0.5)
    assert display.names == ["row 0", "row 44", "row 89"] == labels_of(display.ax_)
    assert_allclose(display.density @ np.diff(display.edges), 1, atol=5e-3)
    assert display.density[:, :150].max() > 0.5 and display.lines_[0].get_alpha() == 0.5
    assert "power (kW)" in display.ax_.get_xlabel()
    with pytest.raises(ValueError, match="max_rows must be a positive integer, got 0"):
        DensityDisplay.from_predictions(many, max_rows=0)
    with pytest.raises(ValueError, match=r"dist must be a distribution .* got 3: use predict_dist"):
        DensityDisplay.from_predictions(3)


def test_pictures_of_calibration_are_fair_to_atoms():
    rng = np.random.default_rng(0)
    means = rng.normal(1.5, 1.0, 4000)
    smooth = NormalMixture([means, means + 1], np.full((2, 4000), 0.4))
    dist = WithAtoms(smooth, RATINGS.atoms, RATINGS.cells, 1.0)
    y = dist.sample(random_state=1)[0]
    coverage = CoverageDisplay.from_predictions(y, dist)
    assert_allclose(coverage.observed, coverage.nominal, atol=0.03)
    pit = PITDisplay.from_predictions(y, dist).pit
    assert stats.kstest(pit, "uniform").pvalue > 0.01
    assert_array_equal(PITDisplay.from_predictions(y, dist).pit, pit)  # the same picture
    for display in (PredictionDisplay, SpreadDisplay):
        display.from_predictions(y, dist)


def test_coverage_by_group_is_shown_with_its_limits():
    rng = np.random.default_rng(0)
    y, groups = rng.normal(size=200), np.repeat(["calm", "$wild"], 100)
    y[100:] *= 3
    dist = Normal(np.zeros(200), np.ones(200))
    display = CoverageByDisplay.from_predictions(y, dist, groups)
    assert list(display.group) == ["$wild", "calm"] and display.n_groups == 2
    assert len(display.outside_.get_xdata()) == len(display.inside_.get_xdata()) == 1
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == [r"\$wild (100)", "calm (100)"]
    told = metrics.coverage_by(y, dist, groups)
    assert_array_equal(display.coverage, told["coverage"])
    model = CalibratedRegressor(BayesianRidge(), cv=3).fit(TABLE, TARGET)
    low, high = model.predict_interval(TABLE).T
    first = CoverageByDisplay.from_estimator(
        model, TABLE, TARGET, np.arange(len(TARGET)) // 10, order="group", max_groups=2
    )
    inside = (low <= TARGET) & (high >= TARGET)
    assert_allclose(first.coverage, [inside[:10].mean(), inside[10:20].mean()])
    assert first.n_groups == 9
    with pytest.raises(ValueError, match="order must be"):
        CoverageByDisplay.from_predictions(y, dist, groups, order="time")


# --- bands ---------------------------------------------------------------------------------------


def test_band_is_the_mixture(ensemble):
    display = BandDisplay.from_estimator(
        ensemble, FRESH.X, FRESH.y, coverage=[0.9, 0.5], grid=31, x_label="a", y_label="b (m)"
    )
    x = np.linspace(FRESH.X.min(), FRESH.X.max(), 31)
    dist = ensemble.predict_dist(x[:, None])
    assert isinstance(dist, NormalMixture)
    assert_array_equal(display.line_.get_xdata(), x)
    assert_array_equal(display.line_.get_ydata(), dist.mean)
    for band, level in zip(display.bands_, (0.5, 0.9), strict=True):
        places, ends = vertices(band)
        assert_allclose(places, x)
        assert_allclose(ends, dist.interval(level))
    assert_array_equal(np.c_[display.dots_.get_data()], np.c_[FRESH.X, FRESH.y])
    shown = ["observed", "predicted mean", "50 % prediction interval", "90 % prediction interval"]
    assert labels_of(display.ax_) == shown
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("a", "b (m)")
    assert display.bands_[0].get_zorder() > display.bands_[1].get_zorder()


GAUSSIAN = GaussianProcessRegressor(RBF() + WhiteKernel(), random_state=0)


@pytest.mark.parametrize("estimator", [BayesianRidge(), GAUSSIAN], ids=lambda e: type(e).__name__)
def test_any_estimator_with_std(estimator):
    estimator.fit(DATA.X, DATA.y)
    mean, std = estimator.predict(FRESH.X, return_std=True)
    band = BandDisplay.from_estimator(estimator, DATA.X, grid=[-1.0, 0.0, 2.0], coverage=0.68)
    middle, spread = estimator.predict([[-1.0], [0.0], [2.0]], return_std=True)
    ends = middle[:, None] + spread[:, None] * stats.norm.ppf([0.16, 0.84])
    assert_allclose(vertices(band.bands_[0])[1], ends)
    assert band.dots_ is None
    display = PredictionDisplay.from_estimator(estimator, FRESH.X, FRESH.y)
    assert_allclose(display.interval[:, 1], mean + stats.norm.ppf(0.95) * std)
    display = CoverageDisplay.from_estimator(estimator, FRESH.X, FRESH.y, nominal=[0.5, 0.8])
    inside = [np.mean(abs(FRESH.y - mean) <= stats.norm.ppf(q) * std) for q in (0.75, 0.9)]
    assert_allclose(display.line_.get_ydata(), inside)
    display = PITDisplay.from_estimator(estimator, FRESH.X, FRESH.y)
    assert_allclose(display.pit, stats.norm.cdf(FRESH.y, mean, std))
    display = SpreadDisplay.from_estimator(estimator, FRESH.X, FRESH.y)
    assert_allclose(display.residual, FRESH.y - mean)


def test_pipeline_and_search_show_what_they_contain():
    model = make_pipeline(StandardScaler(), MVERegressor(n_members=2, **TINY)).fit(TABLE, TARGET)
    inner = model[:-1].transform(TABLE)
    display = CoverageDisplay.from_estimator(model, TABLE, TARGET, nominal=[0.5])
    expected = metrics.coverage(TARGET, model[-1].predict_dist(inner), nominal=0.5)
    assert display.observed == [expected]
    parts = UncertaintyDisplay.from_estimator(model, TABLE)
    assert parts.epistemic.any()
    best = GridSearchCV(BayesianRidge(), {"tol": [1e-3]}, cv=2).fit(TABLE, TARGET)
    mean, std = best.best_estimator_.predict(TABLE, return_std=True)
    assert_allclose(
        PITDisplay.from_estimator(best, TABLE, TARGET).pit, stats.norm.cdf(TARGET, mean, std)
    )


class Conformal(BayesianRidge):
    """Intervals of its own, which are not those of its distribution."""

    def predict_interval(self, X, coverage):
        mean = self.predict(X)[:, None]
        return np.stack([mean - coverage, mean + 2 * np.asarray(coverage)], axis=-1)


def test_intervals_of_its_own():
    model = Conformal().fit(TABLE, TARGET)
    mean = model.predict(TABLE)
    display = CoverageDisplay.from_estimator(model, TABLE, TARGET, nominal=[0.1, 0.3])
    share = [np.mean((mean - q <= TARGET) & (mean + 2 * q >= TARGET)) for q in (0.1, 0.3)]
    assert_allclose(display.observed, share)
    display = PredictionDisplay.from_estimator(model, TABLE, TARGET, coverage=0.5)
    assert_allclose(display.interval, np.c_[mean - 0.5, mean + 1.0])
    display = BandDisplay.from_estimator(model, TABLE, coverage=0.5)
    assert_allclose(display.intervals[:, 0], np.c_[display.mean - 0.5, display.mean + 1.0])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_band_of_a_frame(library):
    frames = pytest.importorskip(library)
    names = ["wind (m/s)", "$a", "price $b$"]
    frame = frames.DataFrame(dict(zip(names, TABLE.T, strict=True)))
    power = (
        frames.Series("power (kW)", TARGET)
        if library == "polars"
        else frames.Series(TARGET, name="power (kW)")
    )
    model = MVERegressor(n_members=2, **TINY).fit(frame, TARGET)
    for feature, place in (("price $b$", 2), (0, 0), (-2, 1)):
        display = BandDisplay.from_estimator(model, frame, power, feature=feature, grid=7)
        along = np.tile(np.median(TABLE, axis=0), (7, 1))
        along[:, place] = np.linspace(TABLE[:, place].min(), TABLE[:, place].max(), 7)
        line = frames.DataFrame(dict(zip(names, along.T, strict=True)))
        assert_allclose(display.mean, model.predict(line), rtol=1e-12)
        name = names[place].replace("$", r"\$")
        assert display.ax_.get_xlabel() == f"{name}\n(other columns at their median)"
        assert display.ax_.get_ylabel() == "power (kW)"
        display.figure_.draw_without_rendering()  # a dollar sign starts no formula
    array = TABLE.copy()
    with pytest.warns(UserWarning, match="valid feature names"):
        display = BandDisplay.from_estimator(model, array, TARGET, feature="wind (m/s)")
    assert display.ax_.get_xlabel().startswith("wind (m/s)")
    with pytest.raises(ValueError, match=r"feature='speed' is no column of X: use one of \['wind"):
        BandDisplay.from_estimator(model, frame, feature="speed")


def test_sweep_holds_what_is_no_number_at_its_most_frequent_value():
    pandas = pytest.importorskip("pandas")
    table = {"a": [1.0, 2.0, np.nan, 3.0], "b": list("xyyz"), "c": [True, False, True, True]}
    line = sweep(None, pandas.DataFrame(table), "a", 2)
    assert line.table["a"].tolist() == [1.0, 3.0]
    assert line.table["b"].tolist() == ["y", "y"] and line.table["c"].tolist() == [True, True]
    mixed = np.array([[1, "p"], [4, "q"], [3, "q"]], dtype=object)
    assert sweep(None, mixed, 0, 2).table.tolist() == [[1.0, "q"], [4.0, "q"]]
    for feature in ("b", 1):
        with pytest.raises(ValueError, match="holds no numbers"):
            sweep(None, pandas.DataFrame(table), feature, 2)


def test_missing_values_of_a_feature_are_no_dots():
    model = BayesianRidge().fit(TABLE, TARGET)
    holes = TABLE.copy()
    holes[:5, 0] = np.nan
    display = BandDisplay.from_estimator(model, holes, TARGET)
    assert display.x[0] == np.nanmin(holes[:, 0])
    display.figure_.draw_without_rendering()
    holes[:, 0] = np.nan
    with pytest.raises(ValueError, match="feature=0 holds no finite number"):
        BandDisplay.from_estimator(model, holes, TARGET)


def test_band_from_predictions_is_sorted():
    x = np.array([3.0, 1.0, 2.0, 1.0])
    dist = Normal([30.0, 10.0, 20.0, 99.0], [1.0, 2.0, 3.0, 4.0])
    display = BandDisplay.from_predictions(None, dist, x=x, coverage=0.9)
    assert display.line_.get_xdata().tolist() == [1, 2, 3]
    assert display.line_.get_ydata().tolist() == [10, 20, 30]
    assert_allclose(vertices(display.bands_[0])[1], dist[[1, 2, 0]].interval(0.9))
    other = BandDisplay.from_predictions([1.0] * 4, dist.mean, dist.std, x=x[:, None])
    assert_array_equal(other.x_observed, x)
    assert other.dots_.get_ydata().tolist() == [1.0] * 4
    color = BandDisplay.from_predictions(None, dist, x=x, color="#009E73", label="mine")
    assert color.line_.get_color() == "#009E73" and labels_of(color.ax_)[0] == "mine"
    assert (
        to_hex(color.bands_[0].get_facecolor()[0])[1:3]
        < to_hex(color.bands_[0].get_facecolor()[0])[3:5]
    )


# --- aleatoric and epistemic ---------------------------------------------------------------------


def test_parts_add_up(ensemble):
    grid = np.linspace(-2, 2, 9)
    display = UncertaintyDisplay.from_estimator(ensemble, FRESH.X, grid=grid, y_label="power (kW)")
    dist = ensemble.predict_dist(grid[:, None])
    variances = np.mean(dist.stds**2, axis=0), np.var(dist.means, axis=0)
    assert_allclose(display.aleatoric, variances[0])
    assert_allclose(display.epistemic, variances[1], rtol=1e-6)
    lower, upper = (vertices(area)[1] for area in display.areas_)
    assert_allclose(lower, np.c_[np.zeros(9), variances[0]])
    assert_allclose(upper, np.c_[variances[0], dist.std**2])
    assert_allclose(display.line_.get_ydata(), dist.var)
    (right,) = display.ax_.child_axes
    assert right.get_ylabel() == "Standard deviation of power (kW)"
    assert display.ax_.get_ylabel() == "Variance of power (kW)²"
    top = display.ax_.get_ylim()[1]
    display.figure_.draw_without_rendering()
    assert_allclose(right.get_ylim()[1] ** 2, top)
    share = 100 * variances[1].sum() / dist.var.sum()
    assert f"({share:.2g} %)" in labels_of(display.ax_)[1]
    ticks = [t.label2.get_window_extent() for t in right.yaxis.get_major_ticks()]
    assert len(ticks) > 2
    assert not any(a.overlaps(b) for a, b in itertools.combinations(ticks, 2))


def test_parts_of_rows_keep_the_mean(wide):
    display = UncertaintyDisplay.from_estimator(wide, TABLE)
    dist = wide.predict_dist(TABLE)
    assert len(display.aleatoric) == 25 and len(display.x) == 26
    total = display.aleatoric + display.epistemic
    groups = np.array_split(np.sort(dist.var), 25)
    assert_allclose(total, [group.mean() for group in groups])
    one = UncertaintyDisplay.from_estimator(wide, TABLE, feature=1)
    assert one.ax_.get_xlabel().startswith("x1\n") and len(one.x) == 200


def test_parts_need_a_distribution_that_knows_them():
    model = BayesianRidge().fit(TABLE, TARGET)
    with pytest.raises(TypeError, match=r"must have predict_dist, .* got BayesianRidge"):
        UncertaintyDisplay.from_estimator(model, TABLE)
    with pytest.raises(TypeError, match="dist must be a Normal or a NormalMixture, got list"):
        UncertaintyDisplay.from_predictions([1.0, 2.0])
    single = UncertaintyDisplay.from_predictions(Normal([1.0], [2.0]))
    assert single.aleatoric.tolist() == [4] and single.epistemic.tolist() == [0]
    assert "(0 %)" in labels_of(single.ax_)[1]


# --- observed against predicted ------------------------------------------------------------------


def bars(collection):
    """Horizontal bars: rows of left end, right end, height."""
    return np.array([[s[0, 0], s[1, 0], s[0, 1]] for s in collection.get_segments()])


def test_prediction(ensemble):
    display = PredictionDisplay.from_estimator(ensemble, FRESH.X, FRESH.y, coverage=0.8)
    dist = ensemble.predict_dist(FRESH.X)
    low, high = dist.interval(0.8).T
    hit = (low <= FRESH.y) & (high >= FRESH.y)
    points = display.hits_, display.misses_
    for line, collection, rows in zip(points, display.bars_, (hit, ~hit), strict=True):
        assert_array_equal(np.c_[line.get_data()], np.c_[dist.mean, FRESH.y][rows])
        assert_allclose(bars(collection), np.c_[low, high, FRESH.y][rows])
    assert display.hits_.get_color() != display.misses_.get_color()
    assert display.hits_.get_marker() != display.misses_.get_marker()
    crossing = bars(display.bars_[0])
    assert ((crossing[:, 0] <= crossing[:, 2]) & (crossing[:, 1] >= crossing[:, 2])).all()
    labels = labels_of(display.ax_)
    assert f"80 % interval holds it: {hit.sum()} of 150 rows" in labels
    assert f"80 % interval misses it: {(~hit).sum()} of 150 rows" in labels
    same = PredictionDisplay.from_predictions(FRESH.y, dist.mean, dist.std, coverage=0.8)
    assert_allclose(same.mean, dist.mean)
    assert display.ax_.get_aspect() == 1


def test_bar_is_the_interval_even_if_the_mean_lies_beyond():
    dist = NormalMixture([[0.0], [100.0]], [[1.0], [1.0]], weights=[0.8, 0.2])
    display = PredictionDisplay.from_predictions([0.1], dist, coverage=0.3)
    assert display.mean[0] > display.interval[0, 1]
    assert_allclose(bars(display.bars_[0])[0, :2], dist.interval(0.3)[0])
    assert display.misses_ is None and len(display.bars_) == 1


def test_prediction_of_some_rows(ensemble):
    display = PredictionDisplay.from_estimator(ensemble, FRESH.X, FRESH.y, max_points=40)
    again = PredictionDisplay.from_estimator(ensemble, FRESH.X, FRESH.y, max_points=40)
    given = PredictionDisplay.from_predictions(
        FRESH.y, ensemble.predict_dist(FRESH.X), max_points=40
    )
    assert_array_equal(display.y_true, again.y_true)
    assert_array_equal(display.interval, given.interval)
    rows = [np.flatnonzero(FRESH.y == y)[0] for y in display.y_true]
    assert len(set(rows)) == 40
    assert_allclose(display.mean, ensemble.predict(FRESH.X[rows]), rtol=1e-12)
    title = display.ax_.get_legend().get_title().get_text()
    assert title == "40 of 150 rows, drawn at random"


# --- coverage ------------------------------------------------------------------------------------


def test_coverage(ensemble):
    display = CoverageDisplay.from_estimator(ensemble, FRESH.X, FRESH.y)
    dist = ensemble.predict_dist(FRESH.X)
    levels = np.linspace(0.05, 0.95, 19)
    counted = [
        np.mean([a <= y <= b for y, (a, b) in zip(FRESH.y, dist.interval(q), strict=True)])
        for q in levels
    ]
    assert_allclose(display.line_.get_xdata(), levels)
    assert_allclose(display.line_.get_ydata(), counted)
    places, ends = vertices(display.band_)
    for share, (low, high) in zip(places[10:-10:10], ends[10:-10:10], strict=True):
        inside = stats.binom.cdf(round(high * 150), 150, share)
        inside -= stats.binom.cdf(round(low * 150) - 1, 150, share)
        assert 0.9 <= inside < 0.975
    assert ends.min() == 0 and ends.max() == 1
    assert "90 % range of chance, 150 rows" in labels_of(display.ax_)


def test_two_models_on_the_same_axes(ensemble):
    dist = ensemble.predict_dist(FRESH.X)
    first = CoverageDisplay.from_predictions(FRESH.y, dist, name="one")
    second = CoverageDisplay.from_predictions(
        FRESH.y, dist.mean, 3 * dist.std, name="two", ax=first.ax_
    )
    third = CoverageDisplay.from_predictions(FRESH.y, dist, name="mine", ax=first.ax_, color="k")
    looks = {(d.line_.get_color(), d.line_.get_marker()) for d in (first, second, third)}
    assert len({c for c, _ in looks}) == 3 == len({m for _, m in looks})
    assert labels_of(first.ax_) == [
        "calibrated", "90 % range of chance, 150 rows", "one", "two", "mine",
    ]  # fmt: skip


# --- PIT -----------------------------------------------------------------------------------------


def test_pit(ensemble):
    display = PITDisplay.from_estimator(ensemble, FRESH.X, FRESH.y, n_bins=5)
    dist = ensemble.predict_dist(FRESH.X)
    pit = np.mean(stats.norm.cdf(FRESH.y, dist.means, dist.stds), axis=0)
    assert_allclose(display.pit, pit)
    heights = [bar.get_height() for bar in display.bars_]
    counts = [np.sum((pit >= k / 5) & (pit < (k + 1) / 5)) for k in range(5)]
    assert_allclose(heights, np.array(counts) / 150 * 5)
    assert_allclose([bar.get_x() for bar in display.bars_], np.arange(5) / 5, atol=1e-12)
    low, high = vertices(display.band_)[1][0] * 150 / 5
    inside = stats.binom.cdf(round(high), 150, 0.2) - stats.binom.cdf(round(low) - 1, 150, 0.2)
    assert 0.9 <= inside < 0.95
    assert display.ax_.get_ylim()[1] > max(*heights, high / 30)


def test_band_of_pit_is_what_chance_does():
    """Of calibrated forecasts nine in ten bars stay within, or a little more."""
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(20):
        display = PITDisplay.from_predictions(rng.normal(size=400), np.zeros(400), np.ones(400))
        low, high = vertices(display.band_)[1][0]
        inside += [low - 1e-9 <= bar.get_height() <= high + 1e-9 for bar in display.bars_]
        plt.close("all")
    assert 0.85 < np.mean(inside) < 0.97


# --- residuals against std -----------------------------------------------------------------------


def test_spread():
    rng = np.random.default_rng(0)
    std = rng.uniform(1, 3, 1000)
    y = std * rng.normal(size=1000)
    display = SpreadDisplay.from_predictions(y, np.zeros(1000), std)
    order = np.argsort(std)
    for k in range(10):
        rows = order[100 * k : 100 * (k + 1)]
        x, height = (line[k] for line in display.line_.get_data())
        assert_allclose(x, np.sqrt(np.mean(std[rows] ** 2)))
        assert_allclose(height, np.sqrt(np.mean(y[rows] ** 2)))
    assert_array_equal(np.c_[display.dots_.get_data()], np.c_[std, abs(y)])
    ratio = display.bin_residual_ / display.bin_std_
    assert_allclose(np.mean(abs(ratio - 1)), metrics.ence(y, np.zeros(1000), std))
    places, ends = vertices(display.band_)
    low, high = np.sqrt(stats.chi2.ppf([0.05, 0.95], 100) / 100)
    assert_allclose(ends, places[:, None] * [low, high])
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "linear"
    x_low, x_high = display.ax_.get_xlim()
    assert x_low < std.min() and std.max() < x_high
    assert display.ax_.get_ylim()[1] > abs(y).max()


def test_spread_over_a_wide_range_is_logarithmic():
    rng = np.random.default_rng(0)
    std = 10 ** rng.uniform(-3, 3, 500)
    y = std * rng.normal(size=500)
    y[:3] = 0.0
    display = SpreadDisplay.from_predictions(y, np.zeros(500), std)
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
    bottom = display.ax_.get_ylim()[0]
    assert display.dots_.get_ydata().min() == bottom > 0
    display.figure_.draw_without_rendering()


def test_spread_of_a_constant_std():
    y = np.random.default_rng(0).normal(size=200)
    display = SpreadDisplay.from_predictions(y, np.zeros(200), np.full(200, 2.0))
    assert_allclose(display.line_.get_data(), [[2.0], [np.sqrt(np.mean(y**2))]])
    low, high = display.ax_.get_xlim()
    assert low < 2 < high
    assert "root mean square" in labels_of(display.ax_)


# --- search --------------------------------------------------------------------------------------


def cells(display):
    return np.ma.filled(display.mesh_.get_array().reshape(display.scores.shape), np.nan)


def frames(display, color):
    """Lower left cells of the rectangles with an edge of this colour."""
    found = [p for p in display.ax_.patches if to_hex(p.get_edgecolor()) == to_hex(color)]
    return {(int(p.get_x()), int(p.get_y())) for p in found}


def test_search(search):
    display = SearchDisplay.from_estimator(search)
    results = search.cv_results_
    assert cells(display).shape == (2, 3)
    for pair, score in zip(results["params"], results["mean_test_score"], strict=True):
        i, j = [1e-3, 1e-2].index(pair["reg_var"]), [1e-3, 1e-2, 1e-1].index(pair["reg_mean"])
        assert cells(display)[i, j] == score
        text = next(t for t in display.texts_ if t.get_position() == (j + 0.5, i + 0.5))
        assert abs(float(text.get_text().replace("−", "-")) - score) < 0.01
    best = [1e-3, 1e-2, 1e-1].index(search.best_reg_mean_), [1e-3, 1e-2].index(search.best_reg_var_)
    assert frames(display, "#D55E00") == {best}
    assert frames(display, "0.2") == {(0, 0), (1, 1)}
    ticks = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert ticks == ["$10^{-3}$", "$10^{-2}$", "$10^{-1}$"]
    assert labels_of(display.ax_) == ["chosen", "equal penalties"]
    assert "log-likelihood" in display.colorbar_.ax.get_ylabel()


@pytest.mark.parametrize("selection", ["equal", "ratio"])
def test_search_of_some_pairs(selection):
    search = searched(reg_mean=[1e-3, 1e-2], reg_var=[1e-3, 1e-2], selection=selection)
    display = SearchDisplay.from_estimator(search)
    assert_array_equal(np.isnan(cells(display)), ~np.eye(2, dtype=bool))
    assert_array_equal(np.diag(cells(display)), search.cv_results_["mean_test_score"])
    shift = {"equal": {(0, 0), (1, 1)}, "ratio": {(1, 0)}}[selection]
    assert frames(display, "0.2") == shift
    assert "not tried" in labels_of(display.ax_)
    best = int(np.argmax(search.cv_results_["mean_test_score"]))
    assert frames(display, "#D55E00") == {(best, best)}
    display.figure_.draw_without_rendering()


GRID = {
    "param_reg_mean": [0.0, 0.0, 0.5, 0.5],
    "param_reg_var": [0.0, 2.0, 0.0, 2.0],
    "mean_test_score": [-np.inf, -1.25, -1e9, -1.0],
}


def test_search_with_pairs_that_diverged():
    display = SearchDisplay.from_results(GRID)
    assert_array_equal(cells(display), [[np.nan, -1e9], [-1.25, -1.0]])
    assert {t.get_text() for t in display.texts_} == {r"$-\infty$", "−1e+09", "−1.25", "−1.00"}
    hatched = [p for p in display.ax_.patches if p.get_hatch()]
    assert [(int(p.get_x()), int(p.get_y())) for p in hatched] == [(0, 0)]
    assert display.best == (0.5, 2.0)
    assert "diverged" in labels_of(display.ax_) and "not tried" not in labels_of(display.ax_)
    low, high = display.mesh_.get_clim()
    assert high == -1.0 and low > -10  # the hopeless pair does not take all colours
    assert display.colorbar_.extend == "min"
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["0", "0.5"]
    display.figure_.draw_without_rendering()


def test_numbers_can_be_read_on_their_colour():
    rng = np.random.default_rng(0)
    pairs = list(itertools.product(range(5), range(5)))
    mean, var = np.transpose(pairs).astype(float)
    results = {"param_reg_mean": mean, "param_reg_var": var, "mean_test_score": rng.normal(size=25)}
    display = SearchDisplay.from_results(results)
    display.figure_.draw_without_rendering()
    side = display.ax_.get_window_extent().width / 5
    for text in display.texts_:
        j, i = (int(v) for v in text.get_position())
        score = display.scores[i, j]
        background = np.dot(display.mesh_.to_rgba(score)[:3], [0.2126, 0.7152, 0.0722])
        ink = 1.0 if text.get_color() == "white" else 0.0
        assert abs(background - ink) > 0.4
        assert text.get_window_extent().width < side


def test_penalties_of_a_large_grid_have_room():
    many = list(itertools.product(np.logspace(-6, 0, 13), np.logspace(-6, 0, 13)))
    mean, var = np.transpose(many)
    results = {"param_reg_mean": mean, "param_reg_var": var, "mean_test_score": mean + var}
    display = SearchDisplay.from_results(results)
    display.figure_.draw_without_rendering()
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels()]
        assert len(boxes) > 3
        assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert display.ax_.get_xticklabels()[0].get_text() == "$10^{-6}$"
    many = list(itertools.product(range(40), range(40)))
    mean, var = np.transpose(many).astype(float)
    results = {"param_reg_mean": mean, "param_reg_var": var, "mean_test_score": mean + var}
    assert SearchDisplay.from_results(results).texts_ == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1e-5, "$10^{-5}$"),
        (1e-4 * 10, "$10^{-3}$"),
        (0.1, "$10^{-1}$"),
        (1.0, "1"),
        (10.0, "10"),
        (0.25, "0.25"),
        (3e-5, r"$3\times10^{-5}$"),
        (1e4, "$10^{4}$"),
        (9.999e-6, "$10^{-5}$"),
    ],
)
def test_penalty_as_text(value, text):
    results = {name: [value] for name in ("param_reg_mean", "param_reg_var", "mean_test_score")}
    (label,) = SearchDisplay.from_results(results).ax_.get_xticklabels()
    assert label.get_text() == text


def test_grid_search_of_a_pipeline():
    model = make_pipeline(StandardScaler(), MVERegressor(**TINY))
    grid = {f"mveregressor__{name}": [1e-2, 1e-1] for name in ("reg_mean", "reg_var")}
    found = GridSearchCV(model, grid, cv=2, scoring=metrics.neg_nll_scorer).fit(DATA.X, DATA.y)
    display = SearchDisplay.from_estimator(found)
    assert_array_equal(
        np.sort(cells(display).ravel()), np.sort(found.cv_results_["mean_test_score"])
    )
    single = SearchDisplay.from_results({**GRID, "mean_test_score": [3.0] * 4})
    assert (single.scores == 3.0).all()


def test_repeated_pairs_show_the_best():
    results = {name: [*column, column[1]] for name, column in GRID.items()}
    results["mean_test_score"][-1] = -0.5
    assert SearchDisplay.from_results(results).scores[1, 0] == -0.5


# --- history -------------------------------------------------------------------------------------


def test_history(ensemble):
    display = HistoryDisplay.from_estimator(ensemble)
    history = ensemble.history_
    assert len(display.lines_) == 3 and display.validation_lines_ == []
    for member, line in enumerate(display.lines_):
        assert line.get_xdata().tolist() == [1, 2, 3, 4, 5, 6, 7]
        assert_array_equal(line.get_ydata(), history["nll"][history["member"] == member])
    assert display.warmup_end_.tolist() == [3, 3, 3]
    (end,) = [line for line in display.ax_.lines if line.get_label() == "end of the warm-up"]
    assert end.get_xdata() == [3, 3]
    assert labels_of(display.ax_) == ["training rows (3 members)", "end of the warm-up"]


def test_history_of_a_search(search):
    display = HistoryDisplay.from_estimator(search)
    assert len(display.lines_) == search.n_splits_


def test_history_with_validation():
    model = MVERegressor(early_stopping=True, n_iter_no_change=2, n_members=3, random_state=0)
    model.set_params(hidden_mean=(5,), hidden_var=(5,), warmup_epochs=40, epochs=20)
    model.set_params(strategy="warmup").fit(DATA.X, DATA.y)
    display = HistoryDisplay.from_estimator(model)
    history = model.history_
    for member, line in enumerate(display.validation_lines_):
        assert_array_equal(line.get_ydata(), history["validation_nll"][history["member"] == member])
    warm = [np.sum((history["member"] == m) & (history["stage"] == "warmup")) for m in range(3)]
    assert display.warmup_end_.tolist() == warm and len(set(warm)) > 1
    (span,) = [p for p in display.ax_.patches if p.get_label() == "warm-ups end here"]
    box = span.get_window_extent().transformed(display.ax_.transData.inverted())
    assert_allclose([box.x0, box.x1], [min(warm), max(warm)])


def test_history_without_warmup_and_of_one_that_diverged():
    model = MVERegressor(**(TINY | {"strategy": "no-warmup"})).fit(DATA.X, DATA.y)
    display = HistoryDisplay.from_estimator(make_pipeline(model))
    assert display.warmup_end_.tolist() == [0]
    assert labels_of(display.ax_) == ["training rows"]
    history = {name: column.copy() for name, column in model.history_.items()}
    history["nll"][2:] = [np.inf, np.nan]
    lost = HistoryDisplay(history=history).plot()
    assert_array_equal(np.isnan(lost.lines_[0].get_ydata()), [False, False, True, True])
    lost.figure_.draw_without_rendering()


def test_long_history_is_thinned():
    n = 20_000
    history = {
        "member": np.zeros(n, dtype=int),
        "stage": np.full(n, "joint"),
        "epoch": np.arange(1, n + 1),
        "nll": np.linspace(1, 0, n),
        "validation_nll": np.full(n, np.nan),
    }
    line = HistoryDisplay(history=history).plot().lines_[0]
    x, y = line.get_data()
    assert len(x) == 1000 and (x[0], x[-1], y[-1]) == (1, n, 0)
    assert_allclose(y, history["nll"][x - 1])


# --- many rows, few rows, bad rows ---------------------------------------------------------------


def test_a_million_rows_make_a_small_file():
    n = 1_000_000
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n))
    dist = Normal(np.zeros(n), np.exp(0.2 * x))
    pictures = [
        BandDisplay.from_predictions(y, dist, x=x),
        SpreadDisplay.from_predictions(y, dist),
        PredictionDisplay.from_predictions(y, dist),
        PITDisplay.from_predictions(y, dist),
        CoverageDisplay.from_predictions(y, dist, nominal=[0.5, 0.9]),
        UncertaintyDisplay.from_predictions(dist),
    ]
    for display in pictures:
        file = io.BytesIO()
        display.figure_.savefig(file, format="svg")
        assert len(file.getvalue()) < 400_000
    assert labels_of(pictures[0].ax_)[0] == "observed (2,000 of 1,000,000 rows)"
    assert labels_of(pictures[1].ax_)[0] == "residuals (2,000 of 1,000,000 rows)"


ROWS = {
    "one row": ([1.0], [2.0], [0.5]),
    "all equal": ([1.0] * 30, [1.0] * 30, [0.5] * 30),
    "equal but for the outcome": (list(range(30)), [1.0] * 30, [0.5] * 30),
    "huge": ([1e150, 2e150], [1e150, 3e150], [1e149, 1e150]),
    "minute": ([1e-150, 2e-150], [1e-150, 3e-150], [1e-151, 1e-150]),
    "perfect": ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [0.1, 0.1, 10.0]),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_odd_rows_make_a_picture(rows):
    y, mean, std = rows
    x = np.zeros(len(y))
    figure = plt.figure(figsize=(12, 9))
    ax = iter(figure.subplots(3, 3).ravel())
    pictures = [
        BandDisplay.from_predictions(y, mean, std, x=x, ax=next(ax)),
        BandDisplay.from_predictions(y, mean, std, x=mean, ax=next(ax)),
        UncertaintyDisplay.from_predictions(Normal(mean, std), x=x, ax=next(ax)),
        UncertaintyDisplay.from_predictions(Normal(mean, std), ax=next(ax)),
        PredictionDisplay.from_predictions(y, mean, std, ax=next(ax)),
        CoverageDisplay.from_predictions(y, mean, std, ax=next(ax)),
        CoverageByDisplay.from_predictions(y, mean, np.arange(len(y)), std, ax=next(ax)),
        PITDisplay.from_predictions(y, mean, std, ax=next(ax)),
        SpreadDisplay.from_predictions(y, mean, std, ax=next(ax)),
    ]
    figure.canvas.draw()
    for display in pictures:
        for band in getattr(display, "bands_", []):
            places, ends = vertices(band)
            assert places[0] < places[-1] and (ends[:, 0] < ends[:, 1]).all()


def test_constant_feature_is_shown_with_its_surroundings():
    X = np.c_[np.full(90, 7.0), TABLE[:, 0]]
    model = BayesianRidge().fit(X, TARGET)
    display = BandDisplay.from_estimator(model, X, TARGET)
    assert (display.x[0], display.x[-1]) == (6.5, 7.5)
    single = BandDisplay.from_estimator(model, X[:1], TARGET[:1], feature=1)
    assert single.x[0] < X[0, 1] < single.x[-1]


FROM_ROWS = (BandDisplay, PredictionDisplay, CoverageDisplay, PITDisplay, SpreadDisplay)
WRONG = {
    "lengths": (([1.0, 2.0], [1.0], [1.0]), "y_true must have shape"),
    "std": (([1.0, 2.0], [1.0, 1.0], [1.0]), "std must have shape"),
    "NaN": (([1.0, np.nan], [1.0, 1.0], [1.0, 1.0]), "y_true must be finite, got nan"),
    "NaN mean": (([1.0, 1.0], [1.0, np.nan], [1.0, 1.0]), "mean must be finite, got nan"),
    "zero": (([1.0, 1.0], [1.0, 1.0], [1.0, 0.0]), "std must be positive, got 0.0"),
    "none": (([1.0, 1.0], [1.0, 1.0], None), "std must be given"),
    "empty": (([], [], []), "at least one row"),
    "text": ((["a"], [1.0], [1.0]), "y_true must hold real numbers"),
    "table": (([[1.0]], [1.0], [1.0]), "y_true must have shape"),
}


@pytest.mark.parametrize(("rows", "message"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("display", FROM_ROWS)
def test_wrong_predictions(display, rows, message):
    more = {"x": np.arange(len(rows[1]))} if display is BandDisplay else {}
    with pytest.raises(ValueError, match=message) as caught:
        display.from_predictions(*rows, **more)
    assert len(str(caught.value)) < 200
    assert plt.get_fignums() == []


@pytest.mark.parametrize("display", FROM_ROWS)
def test_wrong_table(display):
    model = BayesianRidge().fit(TABLE, TARGET)
    with pytest.raises(ValueError, match=r"y must have shape \(90,\), got \(89,\)"):
        display.from_estimator(model, TABLE, TARGET[:-1])
    with pytest.raises(ValueError, match=r"y must have shape \(90,\), got \(90, 1\)"):
        display.from_estimator(model, TABLE, TARGET[:, None])
    with pytest.raises(ValueError, match="y must be finite, got nan"):
        display.from_estimator(model, TABLE, np.where(TARGET > 1, np.nan, TARGET))
    with pytest.raises(TypeError, match=r"must have predict_dist.* got LinearRegression"):
        display.from_estimator(LinearRegression().fit(TABLE, TARGET), TABLE, TARGET)
    for unfitted in (MVERegressor(), BayesianRidge(), make_pipeline(MVERegressor())):
        with pytest.raises(NotFittedError):
            display.from_estimator(unfitted, TABLE, TARGET)
    assert plt.get_fignums() == []


def test_wrong_estimators_of_search_and_history(search, ensemble):
    with pytest.raises(TypeError, match="estimator must have cv_results_, got MVERegressor"):
        SearchDisplay.from_estimator(ensemble)
    with pytest.raises(TypeError, match="estimator must have history_, got BayesianRidge"):
        HistoryDisplay.from_estimator(BayesianRidge().fit(TABLE, TARGET))
    for display, model in ((SearchDisplay, MVERegressorCV()), (HistoryDisplay, MVERegressor())):
        with pytest.raises(NotFittedError):
            display.from_estimator(model)
    with pytest.raises(NotFittedError):
        UncertaintyDisplay.from_estimator(MVERegressor(), TABLE)


def test_wrong_results():
    with pytest.raises(ValueError, match="no finite mean_test_score"):
        SearchDisplay.from_results({**GRID, "mean_test_score": [-np.inf] * 4})
    with pytest.raises(ValueError, match="must have one column param_reg_var, has 0"):
        SearchDisplay.from_results({k: v for k, v in GRID.items() if k != "param_reg_var"})
    with pytest.raises(ValueError, match="param_reg_mean must hold numbers"):
        SearchDisplay.from_results({**GRID, "param_reg_mean": ["auto"] * 4})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature": 3}, "feature=3 is no column of X: use a name, or a number from 0 to 2"),
        ({"feature": -4}, "feature=-4 is no column"),
        ({"feature": True}, "feature=True is no column"),
        ({"feature": "a"}, "feature='a' is no column of X: use a number: X has no names"),
        ({"grid": 1}, "grid=1 must be"),
        ({"grid": [1.0]}, "grid=.* at least two"),
        ({"grid": [1.0, np.nan]}, "grid=.* must be"),
        ({"coverage": 1.5}, "coverage must lie strictly between 0 and 1, got 1.5"),
        ({"coverage": []}, "coverage must hold at least one level"),
        ({"max_points": 0}, "max_points must be a positive integer, got 0"),
    ],
)
def test_wrong_options_of_a_band(options, message):
    model = BayesianRidge().fit(TABLE, TARGET)
    with pytest.raises(ValueError, match=message):
        BandDisplay.from_estimator(model, TABLE, TARGET, **options)


def test_wrong_options():
    y, std = np.zeros(4), np.ones(4)
    for n_bins in (0, 2.5, True, "10"):
        for display in (PITDisplay, SpreadDisplay):
            with pytest.raises(ValueError, match="n_bins must be a positive integer"):
                display.from_predictions(y, y, std, n_bins=n_bins)
    with pytest.raises(ValueError, match="n_bins=5 is more than the 4 rows"):
        SpreadDisplay.from_predictions(y, y, std, n_bins=5)
    with pytest.raises(ValueError, match="coverage must be one level"):
        PredictionDisplay.from_predictions(y, y, std, coverage=[0.5, 0.9])
    with pytest.raises(ValueError, match="nominal must lie strictly between 0 and 1"):
        CoverageDisplay.from_predictions(y, y, std, nominal=[0.5, 1.0])
    with pytest.raises(ValueError, match=r"x must have shape \(4,\)"):
        BandDisplay.from_predictions(y, y, std, x=[1.0])
    with pytest.raises(ValueError, match=r"X must have shape \(n, n_features\), got \(4,\)"):
        sweep(None, y, 0, 5)


def test_inputs_stay_as_they_were(ensemble):
    X, y = FRESH.X.copy(), FRESH.y.copy()
    X.setflags(write=False)
    y.setflags(write=False)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    for display in FROM_ROWS:
        display.from_estimator(ensemble, X, y)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002
