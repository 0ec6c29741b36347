"""A mean-variance network and its training in plain float64 NumPy: the judge of the engine.

Written to be checked by eye, not to be fast. It shares no code with ``mvenet``; it follows the same
specification, random streams included, so that a network trained here and one trained by the
engine have the same start and see the same batches.

Everywhere: ``X`` is (n, d); ``y``, ``w`` (sample weights), ``mu``, ``s`` (log-variance before the
floor) and row losses are (n,). ``theta`` is (n_params,): the mean network first, then the variance
network, per layer W (out, in) row-major and then b (out,). ``objective`` is "nll", "beta-nll",
"faithful", "crps", "student-t" (of ``df`` degrees of freedom) or "natural", where ``mu`` stands for
mean / variance; ``mode`` is "warmup" (mean network only, variance exactly e), "joint" or "variance"
(variance network only).
"""

from dataclasses import dataclass
from math import ceil, cos, e, log, pi, sqrt

import numpy as np
from scipy.special import ndtr

VARIANCE_FLOOR = 1e-6
STREAM_MEAN, STREAM_VAR, STREAM_WARMUP, STREAM_MAIN = range(4)
MASK = 2**64 - 1


# --- random streams ------------------------------------------------------------------------------


def splitmix64(state):
    """Successive outputs of splitmix64 from the given initial state."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def rotl(x, k):
    return ((x << k) | (x >> (64 - k))) & MASK


class Rng:
    """xoshiro256++; ``state`` is its list of four words."""

    def __init__(self, seed, stream):
        words = splitmix64((seed ^ (stream * 0xD1342543DE82EF95)) & MASK)
        self.state = [next(words) for _ in range(4)]

    def next(self):
        s = self.state
        result = (rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return result

    def uniform(self):
        """A number in [0, 1)."""
        return (self.next() >> 11) * 2.0**-53

    def below(self, n):
        """An integer in [0, n)."""
        return (self.next() * n) >> 64


def shuffle(perm, rng):
    """Fisher-Yates, in place."""
    for i in range(len(perm) - 1, 0, -1):
        j = rng.below(i + 1)
        perm[i], perm[j] = perm[j], perm[i]


# --- architecture and parameters -----------------------------------------------------------------


@dataclass(frozen=True)
class Net:
    """Two perceptrons over the same inputs.

    ``hidden_var=()`` is a linear log-variance, ``None`` a constant one (no inputs, only a bias);
    the same for the mean.
    """

    n_inputs: int
    hidden_mean: tuple[int, ...] | None
    hidden_var: tuple[int, ...] | None
    activation: str = "elu"

    @property
    def mean_shapes(self):
        """Shape (out, in) of each weight matrix of the mean network."""
        return self._shapes(self.hidden_mean)

    @property
    def var_shapes(self):
        return self._shapes(self.hidden_var)

    def _shapes(self, hidden):
        if hidden is None:
            return [(1, 0)]
        return list(zip((*hidden, 1), (self.n_inputs, *hidden), strict=True))

    @property
    def n_mean(self):
        """Number of parameters of the mean network."""
        return sum(n_out * (n_in + 1) for n_out, n_in in self.mean_shapes)

    @property
    def n_params(self):
        return self.n_mean + sum(n_out * (n_in + 1) for n_out, n_in in self.var_shapes)

    def trained(self, mode):
        """Where in theta the parameters are that a stage of this mode moves."""
        start, stop = {
            "warmup": (0, self.n_mean),
            "joint": (0, self.n_params),
            "variance": (self.n_mean, self.n_params),
        }[mode]
        return slice(start, stop)

    def split(self, theta):
        """Views [(W, b), ...] of the layers of the mean network and of the variance network."""
        layers, at = [], 0
        for n_out, n_in in self.mean_shapes + self.var_shapes:
            end = at + n_out * n_in
            layers.append((theta[at:end].reshape(n_out, n_in), theta[end : end + n_out]))
            at = end + n_out
        return layers[: len(self.mean_shapes)], layers[len(self.mean_shapes) :]


def initial(net, seed):
    """Glorot uniform weights; biases 0, but 1 for the output of the variance network."""
    theta = np.zeros(net.n_params)
    mean_layers, var_layers = net.split(theta)
    for layers, stream in ((mean_layers, STREAM_MEAN), (var_layers, STREAM_VAR)):
        rng = Rng(seed, stream)
        for W, _ in layers:
            limit = sqrt(6 / sum(W.shape))
            for index in np.ndindex(W.shape):
                W[index] = limit * (2 * rng.uniform() - 1)
    var_layers[-1][1][:] = 1
    return theta


# --- forward and backward ------------------------------------------------------------------------


def activate(name, z):
    """The activation and its derivative (ReLU's at 0 is 0)."""
    if name == "elu":
        negative = np.minimum(z, 0)
        return np.where(z > 0, z, np.expm1(negative)), np.where(z > 0, 1, np.exp(negative))
    if name == "relu":
        return np.maximum(z, 0), np.where(z > 0, 1.0, 0.0)
    if name == "tanh":
        return np.tanh(z), 1 - np.tanh(z) ** 2
    if name == "silu":
        p = 0.5 * (1 + np.tanh(z / 2))  # the logistic function, safe from overflow
        return z * p, p + z * p * (1 - p)
    raise ValueError(f"activation={name!r} is unknown")


def mlp(layers, X, activation):
    """The output (n,) of one perceptron, each layer's input, each hidden layer's derivative."""
    h = X[:, : layers[0][0].shape[1]]  # no column for a constant, else all
    inputs, slopes = [h], []
    for W, b in layers[:-1]:
        h, slope = activate(activation, h @ W.T + b)
        inputs.append(h)
        slopes.append(slope)
    W, b = layers[-1]
    return (h @ W.T + b)[:, 0], inputs, slopes


def mlp_gradient(layers, X, activation, d_output):
    """Gradient of sum_r d_output[r] * output[r] with respect to each layer: [(dW, db), ...]."""
    _, inputs, slopes = mlp(layers, X, activation)
    delta, grads = d_output[:, None], []
    for k in reversed(range(len(layers))):
        grads.insert(0, (delta.T @ inputs[k], delta.sum(axis=0)))
        if k > 0:
            delta = (delta @ layers[k][0]) * slopes[k - 1]
    return grads


def forward(net, theta, X):
    """mu and s of every row."""
    mean_layers, var_layers = net.split(theta)
    return mlp(mean_layers, X, net.activation)[0], mlp(var_layers, X, net.activation)[0]


# --- loss and gradient ---------------------------------------------------------------------------


def variance(s, mode="joint"):
    """exp(s) + floor; in a warm-up exactly e, whatever s is."""
    return np.full_like(s, e) if mode == "warmup" else np.exp(s) + VARIANCE_FLOOR


def row_loss(mu, s, y, mode="joint", objective="nll", df=5.0):
    """log v + (y - mu)^2 / v: the plain negative log-likelihood without its 1/2 and 2 pi.

    That of Student's t where it is the objective.
    """
    v = variance(s, mode)
    if objective == "student-t":
        return np.log(v) + (df + 1) * np.log1p((y - mu) ** 2 / (df * v))
    if objective == "natural":
        return np.log(v) + y**2 / v - 2 * mu * y + mu**2 * v
    return np.log(v) + (y - mu) ** 2 / v


def row_crps(mu, s, y, mode="joint"):
    """Continuous ranked probability score of a normal (Gneiting et al. 2005)."""
    std = np.sqrt(variance(s, mode))
    z = (y - mu) / std
    density = np.exp(-(z**2) / 2) / sqrt(2 * pi)
    return std * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / sqrt(pi))


def row_derivatives(mu, s, y, objective, beta, mode, df=5.0):
    """dl/dmu and dl/ds of every row."""
    v, r = variance(s, mode), y - mu
    d_mu = -2 * r / v
    dv = np.zeros_like(s) if mode == "warmup" else np.exp(s)  # the variance's derivative
    d_s = dv / v * (1 - r**2 / v)
    if objective == "nll":
        return d_mu, d_s
    if objective == "crps":
        std = np.sqrt(v)
        density = np.exp(-(r**2) / (2 * v)) / sqrt(2 * pi)
        by_std = 2 * density - 1 / sqrt(pi)
        return 2 * sqrt(pi) * (1 - 2 * ndtr(r / std)), sqrt(pi) * by_std * dv / std
    if objective == "student-t":
        share = (df + 1) * r / (df * v + r**2)
        return -2 * share, dv / v * (1 - share * r)
    if objective == "natural":
        return 2 * (mu * v - y), dv * (1 / v - (y / v) ** 2 + mu**2)
    if objective == "beta-nll":
        return v**beta * d_mu, v**beta * d_s
    if objective == "faithful":
        return -2 * r, d_s
    raise ValueError(f"objective={objective!r} is unknown")


def gradient(
    net, theta, X, y, w, objective="nll", beta=0.5, mode="joint", reg_mean=0.0, reg_var=0.0, df=5.0
):
    """Gradient of a batch with its penalties; 0 for the parameters that the mode does not train.

    The weights are used as they are: the sum over the rows is divided by their number.
    """
    d_mu, d_s = row_derivatives(*forward(net, theta, X), y, objective, beta, mode, df)
    parts, regs = [], (reg_mean, reg_var)
    for layers, d_output, reg in zip(net.split(theta), (d_mu, d_s), regs, strict=True):
        grads = mlp_gradient(layers, X, net.activation, w * d_output / len(y))
        for (W, _), (dW, db) in zip(layers, grads, strict=True):
            parts += [(dW + 2 * reg * W).ravel(), db]
    g, trained = np.zeros(net.n_params), net.trained(mode)
    g[trained] = np.concatenate(parts)[trained]
    return g


def objective_value(
    net, theta, X, y, w, objective="nll", beta=0.5, mode="joint", reg_mean=0.0, reg_var=0.0,
    df=5.0, frozen=None,
):  # fmt: skip
    """The scalar whose derivative at ``theta == frozen`` is `gradient`, for what ``mode`` trains.

    What an objective holds constant (v**beta; the residual that the faithful variance sees) is
    computed from the parameters ``frozen``, by default ``theta`` itself.
    """
    mu, s = forward(net, theta, X)
    mu_0, s_0 = forward(net, theta if frozen is None else frozen, X)
    rows = {
        "nll": row_loss(mu, s, y, mode),
        "beta-nll": variance(s_0, mode) ** beta * row_loss(mu, s, y, mode),
        "faithful": (y - mu) ** 2 + row_loss(mu_0, s, y, mode),
        "crps": 2 * sqrt(pi) * row_crps(mu, s, y, mode),
        "student-t": row_loss(mu, s, y, mode, "student-t", df),
        "natural": row_loss(mu, s, y, mode, "natural"),
    }[objective]
    mean_layers, var_layers = net.split(theta)
    penalty = reg_mean * sum(np.sum(W**2) for W, _ in mean_layers)
    penalty += reg_var * sum(np.sum(W**2) for W, _ in var_layers)
    return np.mean(w * rows) + penalty


# --- standardisation -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaling:
    """Location and scale of the columns of X, (d,) each, and of y."""

    x_mean: np.ndarray
    x_scale: np.ndarray
    y_mean: float
    y_scale: float
    input_bound: float = np.inf

    def apply(self, X, y):
        z = (X - self.x_mean) / self.x_scale
        return z / np.sqrt(1 + (z / self.input_bound) ** 2), (y - self.y_mean) / self.y_scale


def standardise(X, y, w=None, input_bound=np.inf):
    """Standardised training rows X, y, and the `Scaling` for all other rows of this network."""
    w, A = unit_mean(w, len(y)), np.column_stack([X, y])
    mean = np.average(A, axis=0, weights=w)
    scale = np.sqrt(np.average((A - mean) ** 2, axis=0, weights=w))
    scale[A.max(axis=0) == A.min(axis=0)] = 1
    scaling = Scaling(mean[:-1], scale[:-1], mean[-1], scale[-1], input_bound)
    return *scaling.apply(X, y), scaling


def unit_mean(w, n):
    """Sample weights divided by their mean; 1 where there are none."""
    return np.ones(n) if w is None else w / np.mean(w)


# --- training ------------------------------------------------------------------------------------


def rate(learning_rate, schedule, t, n_steps):
    """Learning rate of step t = 1, ..., n_steps."""
    if schedule == "constant":
        return learning_rate
    if schedule == "cosine":
        return learning_rate * 0.5 * (1 + cos(pi * (t - 1) / n_steps))
    if schedule == "ramp-cosine":
        ramp = n_steps // 20
        if t <= ramp:
            return learning_rate * t / (ramp + 1)
        return rate(learning_rate, "cosine", t - ramp, n_steps - ramp)
    raise ValueError(f"schedule={schedule!r} is unknown")


def converged(losses, window):
    """Whether the last epochs of a warm-up gained less than one per cent on those before them."""
    if len(losses) < 2 * window or len(losses) % window:
        return False
    before, now = (np.sum(np.array(part) - 1) for part in
                   (losses[-2 * window : -window], losses[-window:]))  # fmt: skip
    return now > 0.99 * before


def train_stage(
    net, theta, X, y, w=None, X_val=None, y_val=None, w_val=None, *, mode, epochs,
    objective="nll", beta=0.5, batch_size=32, learning_rate=1e-3, schedule="constant",
    clip_value=5.0, reg_mean=0.0, reg_var=0.0, seed=0, init_var_bias=False, patience=0, df=5.0,
    window=0,
):  # fmt: skip
    """Train for one stage on standardised rows.

    Returns new parameters (the best ones under early stopping) and the history, ``loss`` and
    ``validation``, with one value for every epoch that was run.
    """
    theta, n, w = theta.copy(), len(y), unit_mean(w, len(y))
    validated = y_val is not None and len(y_val) > 0
    if validated:
        w_val = unit_mean(w_val, len(y_val))
    if init_var_bias:
        X_0, y_0, w_0 = (X_val, y_val, w_val) if validated else (X, y, w)
        mse = np.mean(w_0 * (y_0 - forward(net, theta, X_0)[0]) ** 2)
        theta[-1] = log(max(mse, 1e-6))  # the last parameter is the variance output bias

    m, v, trained = np.zeros(net.n_params), np.zeros(net.n_params), net.trained(mode)
    t, n_steps = 0, epochs * ceil(n / batch_size)
    perm, rng = np.arange(n), Rng(seed, STREAM_WARMUP if mode == "warmup" else STREAM_MAIN)
    history = {"loss": [], "validation": []}
    best, best_theta, waited = np.inf, None, 0

    for _ in range(epochs):
        shuffle(perm, rng)
        loss = 0.0
        for start in range(0, n, batch_size):
            rows = perm[start : start + batch_size]
            Xb, yb, wb = X[rows], y[rows], w[rows]
            rows_loss = row_loss(*forward(net, theta, Xb), yb, mode, objective, df)
            loss += np.sum(wb * rows_loss) / n
            g = gradient(net, theta, Xb, yb, wb, objective, beta, mode, reg_mean, reg_var, df)
            g = np.clip(g, -clip_value, clip_value)
            t += 1
            a = rate(learning_rate, schedule, t, n_steps) * sqrt(1 - 0.999**t) / (1 - 0.9**t)
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + (1 - 0.999) * g**2
            theta[trained] -= (a * m / (np.sqrt(v) + 1e-7))[trained]
        history["loss"].append(loss)

        value = np.nan
        if validated:
            outputs = forward(net, theta, X_val)
            value = np.mean(w_val * row_loss(*outputs, y_val, mode, objective, df))
        history["validation"].append(value)
        if window and converged(history["loss"], window):
            break
        if validated and patience > 0:
            if value < best:
                best, best_theta, waited = value, theta.copy(), 0
            else:
                waited += 1
            if waited == patience:
                break

    history = {name: np.array(values) for name, values in history.items()}
    return theta if best_theta is None else best_theta, history
