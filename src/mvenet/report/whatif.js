"use strict";
// The model in the page: a row is encoded, every network runs, and the result is drawn. Nothing is
// fetched and nothing is sent. The same numbers as Python's, which a test in a browser checks.
function whatIf(prefix) { // of several targets each has one, and its own beginning of all names
  const named = (name) => document.getElementById(prefix + name);
  const place = named("what-if");
  const data = JSON.parse(named("what-if-data").textContent);
  const unpack = (text, Kind) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Kind(bytes.buffer);
  };
  const model = data.model, BLOCK = 32;
  const numbers = (text, factors) => { // 32 bits each, or 16 times the factor of their block
    if (factors === null) return unpack(text, Float32Array);
    const by = unpack(factors, Float32Array);
    return Float32Array.from(unpack(text, Int16Array), (v, i) => v * by[Math.floor(i / BLOCK)]);
  };
  for (const nets of model.groups) {
    nets.parameters = numbers(nets.parameters, nets.factors);
    nets.scaling = unpack(nets.scaling, nets.factors === null ? Float64Array : Float32Array);
  }
  for (const forest of model.forests || []) {
    const feature = unpack(forest.feature, forest.wide ? Int16Array : Int8Array);
    const thresholds = unpack(forest.thresholds, Float32Array), leaves = numbers(forest.leaves, forest.factors);
    const threshold = new Float32Array(feature.length), right = new Int32Array(feature.length), waiting = [];
    let inner = 0, leaf = 0;
    feature.forEach((column, node) => { // depth first: what follows a leaf is the latest right child
      threshold[node] = column < 0 ? leaves[leaf++] : thresholds[inner++];
      if (column >= 0) waiting.push(node);
      else if (waiting.length) right[waiting.pop()] = node + 1;
    });
    Object.assign(forest, { feature, threshold, right });
  }

  for (const mean of (model.means || []).filter((m) => m.points !== undefined)) {
    mean.points = unpack(mean.points, Float64Array);
    mean.weights = unpack(mean.weights, Float64Array);
  }

  const atoms = model.atoms; // values with a probability of their own, and the cells around them
  if (atoms) {
    atoms.low = atoms.low.map((v) => (v === null ? -Infinity : v));
    atoms.high = atoms.high.map((v) => (v === null ? Infinity : v));
  }

  // Ends that no row is at: what is beyond is squeezed into the last bit before, Bounded in Python.
  const ends = (model.ends ? model.ends.values : []).map((end, i) => {
    const sign = i ? -1 : 1, reach = model.ends.reach[i];
    return { end, reach, sign, inner: end + sign * reach };
  }).filter((e) => e.end !== null);

  const ACTIVATIONS = {
    elu: (v) => (v > 0 ? v : Math.expm1(v)),
    silu: (v) => v / (1 + Math.exp(-v)),
    relu: (v) => Math.max(v, 0),
    tanh: Math.tanh,
  };

  function tail(z, exponent) { // erfc(z) exp(z² + exponent): Numerical Recipes' Chebyshev fit, to 1.2e-7
    const t = 1 / (1 + 0.5 * z);
    const sum = [0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806,
      0.09678418, 0.37409196, 1.00002368, -1.26551223].reduce((s, c) => s * t + c, 0);
    return t * Math.exp(exponent + sum);
  }
  const erfc = (x) => (x >= 0 ? tail(x, -x * x) : 2 - tail(-x, -x * x));

  function encode(row) {
    const e = data.encoder, given = e.numbers.map((name) => row[name]);
    const absent = (v) => v === null || v === undefined;
    const x = given.map((v, i) => (absent(v) ? e.medians[i] : v));
    for (const i of e.gaps) x.push(absent(given[i]) ? 1 : 0);
    for (const date of e.dates) {
      const v = row[date.name];
      for (const period of date.periods) {
        const angle = absent(v) ? 0 : (2 * Math.PI * (v + date.origin)) / period;
        x.push(absent(v) ? 0 : Math.sin(angle), absent(v) ? 0 : Math.cos(angle));
      }
    }
    for (const level of e.levels) {
      const at = level.names.indexOf(absent(row[level.name]) ? "" : row[level.name]);
      if (level.values.length) x.push(...(at < 0 ? level.other : level.values[at]));
      else level.names.forEach((_, i) => x.push(i === at ? 1 : 0));
    }
    return x;
  }

  const average = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;
  const clip = (v, low, high) => Math.min(Math.max(v, low), high);

  function layers(nets, sizes, input, start) { // output of a network, and where its parameters end
    const parameters = nets.parameters, activation = ACTIVATIONS[nets.activation];
    let x = input, p = start;
    if (sizes[0] === 0) return [parameters[p], p + 1];
    for (let l = 1; l < sizes.length; l++) {
      const n = sizes[l], d = sizes[l - 1], out = new Array(n), biases = p + n * d;
      for (let i = 0; i < n; i++) {
        let sum = parameters[biases + i];
        for (let j = 0; j < d; j++) sum += parameters[p + i * d + j] * x[j];
        out[i] = l < sizes.length - 1 ? activation(sum) : sum;
      }
      x = out;
      p = biases + n;
    }
    return [x[0], p];
  }

  function networks(nets, x) { // mean and std by each of them
    const d = x.length, width = 2 * d + 2, scaling = nets.scaling;
    return Array.from({ length: nets.count }, (_, k) => {
      const s = k * width, centre = scaling[s + 2 * d], scale = scaling[s + 2 * d + 1];
      const z = x.map((v, j) => {
        const t = (v - scaling[s + j]) / scaling[s + d + j];
        return nets.bound === null ? t : t / Math.hypot(1, t / nets.bound);
      });
      const [mean, next] = layers(nets, nets.mean, z, k * nets.size);
      const [log] = layers(nets, nets.variance, z, next);
      return { mean: centre + scale * mean, std: scale * Math.sqrt(Math.exp(log) + nets.floor) };
    });
  }

  function treeValues(trees, x, count) { // what each of so many of the trees says, evenly chosen
    const all = trees.starts.length - 1;
    return Array.from({ length: count }, (_, i) => {
      let at = trees.starts[Math.floor((i * all) / count)];
      while (trees.feature[at] >= 0) {
        const left = Math.fround(x[trees.feature[at]]) <= trees.threshold[at];
        at = left ? at + 1 : trees.right[at];
      }
      return trees.center + trees.scale * trees.threshold[at];
    });
  }

  function process(p, x) { // a line, and what falls with the distance from each point
    const logs = p.logs.map(([j, origin, length, rate]) => Math.log1p(rate * clip((x[j] - origin) / length, 0, 1)));
    const z = x.concat(logs).map((v, j) => (v - p.center[j]) / p.scale[j]), [a, b, c] = p.polynomial;
    let total = z.reduce((sum, v, j) => sum + p.slope[j] * v, p.intercept);
    p.weights.forEach((weight, i) => {
      const r = Math.sqrt(z.reduce((sum, v, j) => sum + (v - p.points[i * z.length + j]) ** 2, 0));
      total += weight * (a + r * (b + r * c)) * Math.exp(-r);
    });
    return total;
  }

  function piecewise(x) { // bounded columns, then how much of each piece lies below the value
    const s = model.piecewise;
    const bounded = x.map((v, j) => { const z = (v - s.center[j]) / s.scale[j]; return z / Math.hypot(1, z / 3); });
    return bounded.concat(s.column.map((j, i) => clip((x[j] - s.low[i]) / s.width[i], 0, 1)));
  }

  function composite(x) { // normals whose mixture is the prediction, of y or of its logarithm
    const encoded = piecewise(x), within = x.map((v, j) => clip(v, model.x_low[j], model.x_high[j]));
    const ask = (part, ...more) => networks(model.groups[part.group], (part.encoded ? encoded : x).concat(more));
    const said = model.noises.map((noise) => (noise.joint ? ask(noise) : null));
    const centre = (members) => average(members.map((m) => m.mean));
    const MEANS = { // by the class in Python
      MeanOfNoise: (m) => centre(said[m.noise]),
      NetworkMean: (m) => centre(ask(m)),
      Forest: (m) => average(treeValues(model.forests[m.forest], within, model.forests[m.forest].starts.length - 1)),
      Process: (m) => process(m, within),
      Linear: (m) => m.coefficients.reduce((sum, c, j) => sum + c * within[j], m.intercept),
    };
    const values = model.means.map((m) => MEANS[m.kind](m));
    const blended = clip(values.reduce((sum, v, i) => sum + model.means[i].share * v, 0), ...model.limits);
    const far = x.reduce((sum, v, j) => {
      const length = model.x_high[j] - model.x_low[j] || 1;
      return sum + Math.min(((v - within[j]) / length) ** 2, 1e100);
    }, 0);
    const near = Math.min(far / model.soon ** 2, 1);
    const later = model.pace.reduce((sum, pace, j) => sum + Math.min(((x[j] - within[j]) * pace) ** 2, 1e100), 0);
    const drift = (later / (1 + later)) * model.drift ** 2;
    const added = Math.sqrt((far / (1 + far)) * model.unknown ** 2 + near * model.typical ** 2 + drift);
    const widest = model.widest === null ? Infinity : model.widest;
    const wide = (std) => clip(Math.hypot(std, added), model.narrowest || 0, widest);
    const members = model.noises.flatMap((noise, i) => {
      const members = said[i] || ask(noise, blended);
      const mean = noise.joint ? clip(centre(members), ...model.limits) : blended;
      const [offset, exponent, low, high] = noise.shape;
      const std = Math.exp(clip(offset + exponent * average(members.map((m) => Math.log(m.std))), low, high));
      return noise.weights.map((weight, k) => ({ weight, mean, std: wide(std * model.multiples[k]) }));
    }).filter((member) => member.weight > 0);
    return model.free ? freed(members, within, wide) : members;
  }

  function freed(members, within, wide) { // with normals around values, and weights of this row
    const free = model.free;
    const SAMPLERS = { // by the class in Python
      TreeValues: (s) => treeValues(model.forests[s.forest], within, s.count),
      Constant: (s) => s.values,
    };
    const values = free.samplers.map((s) => SAMPLERS[s.kind](s));
    const apart = values[0].map((v) => v - values[0][0]);
    const spread = Math.sqrt(Math.max(average(apart.map((v) => v * v)) - average(apart) ** 2, 0));
    const shares = free.weights[free.ends.filter((end) => end <= spread).length];
    const all = members.map((member, i) => ({ ...member, weight: shares[i] }));
    let at = members.length;
    values.forEach((some, s) => free.widths[s].forEach((width) => {
      const weight = shares[at++] / some.length;
      some.forEach((v, i) => all.push({ weight, mean: clip(v, ...model.limits), std: wide(width.length > 1 ? width[i] : width[0]) }));
    }));
    if (free.residuals) { // in standard deviations of the noises' own mixture
      const sum = (of) => members.reduce((total, m) => total + m.weight * of(m), 0);
      const centre = sum((m) => m.mean), scale = Math.sqrt(sum((m) => m.std ** 2 + (m.mean - centre) ** 2));
      const { quantiles, widths, hurdle } = free.residuals;
      const rest = hurdle ? beyond(hurdle, values[0], centre, scale) : { chances: [], left: 1, centre, scale };
      widths.forEach((share) => {
        const weight = shares[at++], each = (weight * rest.left) / quantiles.length;
        rest.chances.forEach((chance, i) => all.push({
          weight: weight * chance, mean: clip(hurdle.values[i], ...model.limits), std: wide(hurdle.widths[i]) }));
        quantiles.forEach((r) => all.push({
          weight: each, mean: clip(rest.centre + r * rest.scale, ...model.limits), std: wide(share * rest.scale) }));
      });
    }
    return all.filter((member) => member.weight > 0);
  }

  function beyond(hurdle, draws, centre, scale) { // chances of atoms, and where the rest lies: Hurdle in Python
    const within = ([low, high]) => draws.filter((v) => (low === null || low <= v) && (high === null || v <= high)).length;
    const chances = hurdle.cells.map((cell, i) => (within(cell) + hurdle.trees * hurdle.usual[i]) / (draws.length + hurdle.trees));
    const total = (of) => chances.reduce((sum, chance, i) => sum + chance * of(hurdle.values[i] - centre), 0);
    const left = 1 - total(() => 1), shift = -total((apart) => apart) / left;
    const square = (1 - total((apart) => (apart / scale) ** 2)) / left - (shift / scale) ** 2;
    return { chances, left, centre: centre + shift, scale: scale * Math.sqrt(Math.max(square, hurdle.narrowest ** 2)) };
  }

  // Probability below a value, of a normal in its standard deviations or of all of them.
  const normal = (z) => 0.5 * erfc(-z / Math.SQRT2);
  const bell = (z) => Math.exp(-0.5 * z * z) / Math.sqrt(2 * Math.PI);
  const below = (members, v) => members.reduce((sum, m) => sum + m.weight * normal((v - m.mean) / m.std), 0);
  const scaled = (y) => (model.log ? Math.log(Math.max(y, 0)) : y);

  function cell(y) { // the atom at which a value is collected, or -1
    return atoms ? atoms.low.findIndex((low, i) => low <= y && y < atoms.high[i]) : -1;
  }
  const collected = (y) => { const i = cell(y); return i < 0 ? y : atoms.values[i]; };
  const squeezed = (z) => ends.reduce((y, e) => {
    const near = (e.sign * (z - e.inner)) / e.reach;
    return near < 0 ? e.end + e.sign * e.reach * Math.exp(near) : y;
  }, z);
  const spread = (y) => ends.reduce((z, e) => { // the inverse
    const share = Math.max((e.sign * (y - e.end)) / e.reach, 0);
    return share < 1 ? e.inner + e.sign * e.reach * Math.log(share) : z;
  }, y);
  function upTo(members, y) { // probability of at most y
    const i = cell(y);
    return below(members, scaled(i < 0 ? spread(y) : y >= atoms.values[i] ? atoms.high[i] : atoms.low[i]));
  }

  function mean(members) {
    const own = (m) => (model.log ? Math.exp(m.mean + 0.5 * m.std ** 2) : m.mean);
    const origin = members.reduce((sum, m) => sum + m.weight * own(m), 0), inside = moved(members, origin);
    if (!atoms) return inside;
    return atoms.values.reduce((total, value, i) => { // what is in the cell goes to the atom
      const low = scaled(atoms.low[i]), high = scaled(atoms.high[i]);
      return total + members.reduce((sum, m) => {
        const a = (low - m.mean) / m.std, b = (high - m.mean) / m.std, share = normal(b) - normal(a);
        const inside = model.log ? own(m) * (normal(b - m.std) - normal(a - m.std)) - origin * share
          : (m.mean - origin) * share - m.std * (bell(b) - bell(a));
        return sum + m.weight * ((value - origin) * share - inside);
      }, 0);
    }, inside);
  }

  function moved(members, origin) { // the mean, once what is beyond an end is before it
    return ends.reduce((total, e) => total + members.reduce((sum, m) => {
      const z = (e.sign * (e.inner - m.mean)) / m.std, ratio = m.std / e.reach, t = z - ratio;
      const far = t < 0 ? 0.5 * tail(-t / Math.SQRT2, -0.5 * z * z) : Math.exp(ratio * (0.5 * ratio - z)) * normal(t);
      const taken = (m.mean - e.end) * normal(z) - e.sign * m.std * bell(z);
      return sum + m.weight * (e.sign * e.reach * far - taken);
    }, 0), origin);
  }

  function quantile(members, level) {
    let low = Math.min(...members.map((m) => m.mean - 9 * m.std));
    let high = Math.max(...members.map((m) => m.mean + 9 * m.std));
    for (let i = 0; i < 70; i++) {
      const middle = 0.5 * (low + high);
      if (below(members, middle) < level) low = middle; else high = middle;
    }
    return 0.5 * (low + high);
  }

  function intervals(members) { // ends of 90 and 50 %, from the lowest to the highest
    if (!model.conformal) return [0.05, 0.25, 0.75, 0.95].map((level) => quantile(members, level));
    const sum = (of) => members.reduce((total, m) => total + m.weight * of(m), 0);
    const centre = sum((m) => m.mean), std = Math.sqrt(sum((m) => m.std ** 2 + (m.mean - centre) ** 2));
    const nine = model.conformal["0.9"] * std, half = model.conformal["0.5"] * std;
    return [centre - nine, centre - half, centre + half, centre + nine];
  }

  function standIn(x) {
    const [mean, median, ...logs] = networks(model.groups[0], x).map((m) => m.mean);
    const [a, b, c, d] = logs.map(Math.exp);
    const made = [mean, median - a - c, median - a, median + b, median + b + d];
    return model.floor === null ? made : made.map((v) => Math.max(v, model.floor));
  }

  function normals(x) {
    if (model.kind === "composite") return composite(x);
    const group = model.groups[0], said = networks(group, model.piecewise ? piecewise(x) : x);
    return said.map((m) => ({ weight: 1 / group.count, mean: m.mean, std: model.factor * m.std }));
  }

  function own(members) {
    const ends = intervals(members).map((v) => collected(model.log ? Math.exp(v) : squeezed(v)));
    return [mean(members), ...ends].map((v) => v * (model.unit || 1));
  }

  function said(row) { // figures, and the normals that they are of
    const x = encode(row), members = model.kind === "stand-in" ? null : normals(x);
    const [mean, low90, low50, high50, high90] = members ? own(members) : standIn(x);
    return [{ mean, low90, low50, high50, high90 }, members];
  }
  const predict = (row) => said(row)[0];

  const SLICES = 200;
  function shape(members, low, high) { // probability of slices of an axis, and of atoms on their own
    const by = model.unit || 1, width = (high - low) / SLICES;
    const ends = Array.from({ length: SLICES + 1 }, (_, i) => upTo(members, (low + i * width) / by));
    const masses = ends.slice(1).map((v, i) => Math.max(v - ends[i], 0)), smooth = masses.slice();
    const bars = (atoms ? atoms.values : []).map((value, i) => {
      const mass = below(members, scaled(atoms.high[i])) - below(members, scaled(atoms.low[i]));
      const at = Math.ceil((value * by - low) / width) - 1; // a slice has its upper end
      if (at >= 0 && at < SLICES) smooth[at] = Math.max(smooth[at] - mass, 0);
      return { value: value * by, mass, at };
    });
    return { masses, smooth, bars, low, width };
  }

  function blurred(values, by) { // by a normal of so many slices
    const reach = Math.ceil(3 * by), kernel = Array.from({ length: 2 * reach + 1 }, (_, i) => bell((i - reach) / by) / by);
    return values.map((_, i) => kernel.reduce((sum, k, j) => sum + k * (values[i + j - reach] || 0), 0));
  }

  const sum = (values) => values.reduce((a, b) => a + b, 0);
  function heaps(found) { // clear modes: where each is, and what is there
    const { masses, bars, low, width } = found, total = sum(masses);
    const steps = bars.slice(1).filter((_, i) => atoms.high[i] === atoms.low[i + 1]).map((b) => b.value - bars[bars.indexOf(b) - 1].value);
    const step = steps.length ? Math.min(...steps) / width : 0; // neighbours on a grid are one heap
    const split = (from, to) => { // at the deepest valley between two that matter, and again
      const part = masses.slice(from, to), all = sum(part), centre = sum(part.map((m, i) => m * i)) / all;
      const spread = Math.sqrt(sum(part.map((m, i) => m * (i - centre) ** 2)) / all);
      const curve = blurred(part, Math.max(0.35 * spread, 0.7 * step, 1));
      let best = 0, depth = 0.4, before = part[0];
      for (let i = 1; i < part.length - 1; before += part[i++]) {
        const here = curve[i] / Math.min(Math.max(...curve.slice(0, i)), Math.max(...curve.slice(i + 1)));
        if (here < depth && before > 0.15 * total && all - before > 0.15 * total) [best, depth] = [i, here];
      }
      return best ? [...split(from, from + best), ...split(from + best, to)] : [[from, to]];
    };
    return split(0, SLICES).map(([from, to]) => {
      const mass = sum(masses.slice(from, to)), alone = bars.find((b) => b.at >= from && b.at < to && b.mass > 0.5 * mass);
      let i = from;
      for (let half = masses[i]; half < 0.5 * mass; half += masses[i]) i++;
      const digit = 10 ** Math.ceil(Math.log10(width)), middle = Math.round((low + (i + 0.5) * width) / digit) * digit;
      return { share: mass / total, value: alone ? alone.value : middle, exactly: Boolean(alone) };
    });
  }

  // --- what a reader sees -------------------------------------------------------------------------
  const unit = data.unit || "", before = ["$", "£", "¥", "₹", "US$", "A$", "C$"].includes(unit);
  function readable(v) {
    const size = Math.abs(v);
    if (size && (size >= 1e15 || size < 1e-6)) return v.toExponential(2);
    if (Number.isInteger(v)) return v.toLocaleString("en-US");
    return v.toLocaleString("en-US", { maximumSignificantDigits: 3 });
  }
  const money = (v) => !unit ? readable(v) : before ? (v < 0 ? "-" : "") + unit + readable(Math.abs(v)) : readable(v) + "\u00a0" + unit;
  function shown(control, v) {
    if (v === null) return "unknown";
    if (control.kind !== "date") return Math.abs(v) < 1e4 ? readable(v).replace(",", "") : readable(v); // 2006 is a year
    const moment = new Date(Math.round((v + control.origin) * 864e5)).toISOString();
    if (control.origin === 0 && control.high <= 1) return moment.slice(11, 16);
    return control.clock ? moment.slice(0, 16).replace("T", " ") : moment.slice(0, 10);
  }

  let row = { ...data.starts.typical };
  const fields = [];

  function made(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function field(control, i) {
    const id = prefix + "what-if-" + i;
    const told = made("output", { for: id });
    const label = made("label", { for: id }, control.name, " ", told);
    let input;
    if (control.kind === "category" || control.kind === "truth") {
      const choices = control.kind === "truth" ? [["1", "yes"], ["0", "no"]] : control.levels.map((l) => [l, l]);
      if (control.gaps || control.kind === "category") choices.push(["\u0000", control.gaps ? "unknown" : "another one"]);
      input = made("select", { id: id });
      for (const [value, text] of choices) input.append(made("option", { value: value }, text));
      input.addEventListener("change", () => {
        const v = input.value;
        row[control.name] = v === "\u0000" ? (control.gaps ? null : "\u0000") : control.kind === "truth" ? Number(v) : v;
        draw();
      });
    } else {
      input = made("input", { id: id, type: "range", min: control.low, max: control.high, step: control.step });
      input.addEventListener("input", () => { row[control.name] = Number(input.value); draw(); });
    }
    const box = made("div", { class: "knob" }, label, input);
    if (control.gaps && input.type === "range") {
      const unknown = made("input", { type: "checkbox" });
      unknown.addEventListener("change", () => { row[control.name] = unknown.checked ? null : Number(input.value); draw(); });
      box.append(made("label", { class: "soft unknown" }, unknown, " unknown"));
      fields.push({ control, input, told, unknown });
    } else fields.push({ control, input, told });
    return box;
  }

  function outside() {
    return data.controls.filter((c) => {
      const v = row[c.name];
      if (v === null || v === undefined) return false;
      if (c.kind === "category") return !c.levels.includes(v);
      if (!c.seen) return false;
      const slack = 0.5 * c.step;
      return v < c.seen[0] - slack || v > c.seen[1] + slack;
    }).map((c) => c.name);
  }

  function draw() {
    for (const { control, input, told, unknown } of fields) {
      const v = row[control.name];
      if (input.type === "range") {
        if (v !== null) input.value = v;
        input.disabled = v === null;
        if (unknown) unknown.checked = v === null;
        told.textContent = shown(control, v);
        input.setAttribute("aria-valuetext", told.textContent);
      } else {
        input.value = v === null || !(control.kind === "truth" || control.levels.includes(v)) ? "\u0000" : String(v);
      }
    }
    const [p, members] = said(row);
    named("what-if-mean").textContent = money(p.mean);
    named("what-if-50").textContent = money(p.low50) + " to " + money(p.high50);
    named("what-if-90").textContent = money(p.low90) + " to " + money(p.high90);
    const strange = outside();
    const warning = named("what-if-outside");
    warning.textContent = strange.length ? "Outside what the model has seen: " + strange.join(", ") + ". Trust this less." : "";
    bar(p, members);
  }

  function bar(p, members) {
    const low = Math.min(data.axis[0], p.low90), high = Math.max(data.axis[1], p.high90);
    const at = (v) => 12 + (576 * (v - low)) / (high - low || 1);
    const set = (id, values) => {
      for (const [name, value] of Object.entries(values)) named(id).setAttribute(name, value);
    };
    set("what-if-wide", { x: at(p.low90), width: Math.max(1, at(p.high90) - at(p.low90)) });
    set("what-if-narrow", { x: at(p.low50), width: Math.max(1, at(p.high50) - at(p.low50)) });
    set("what-if-dot", { cx: at(p.mean) });
    named("what-if-low").textContent = readable(low);
    named("what-if-high").textContent = readable(high);
    const margin = (12 / 576) * (high - low || 1);
    if (members) drawShape(shape(members, low - margin, high + margin));
  }

  function drawShape(found) {
    const { smooth, bars, low, width } = found, slice = 600 / SLICES, at = (v) => ((v - low) / width) * slice;
    const gaps = bars.slice(1).map((b, i) => at(b.value) - at(bars[i].value));
    const thick = clip(0.75 * Math.min(...gaps, 32), 1.5, 14), curve = blurred(smooth, 1.5);
    const heights = bars.map((b) => (b.mass * slice) / thick), tallest = Math.max(...curve, ...heights);
    const up = (v) => (88 - (84 * v) / tallest).toFixed(1);
    const points = curve.map((v, i) => ((i + 0.5) * slice).toFixed(1) + "," + up(v));
    named("what-if-curve").setAttribute("d", "M0,88L" + points.join("L") + "L600,88Z");
    const sticks = bars.map((b, i) => "M" + at(b.value).toFixed(1) + ",88V" + up(heights[i])).filter((_, i) => bars[i].mass > 1e-4);
    const drawn = named("what-if-atoms");
    drawn.setAttribute("d", sticks.join(""));
    drawn.setAttribute("stroke-width", thick);
    named("what-if-density").removeAttribute("hidden");
    named("what-if-modes").textContent = sentence(heaps(found));
  }

  function sentence(found) { // of a row that has several clear modes, but not of one that has many
    const count = ["", "", "Two", "Three", "Four"][found.length];
    const told = found.map((h) => (h.exactly ? "exactly " : "about ") + money(h.value) + " (" + Math.round(100 * h.share) + "\u00a0%)");
    return count ? count + " outcomes are likely here: " + told.slice(0, -1).join(", ") + " or " + told[told.length - 1] + "." : "";
  }

  const knobs = named("what-if-knobs");
  data.controls.forEach((control, i) => knobs.append(field(control, i)));
  const start = named("what-if-start");
  for (const word of Object.keys(data.starts)) start.append(made("option", { value: word }, word));
  const reset = () => { row = { ...data.starts[start.value] }; draw(); };
  start.addEventListener("change", reset);
  named("what-if-reset").addEventListener("click", reset);
  place.hidden = false;
  draw();
  return { predict: predict, encode: encode, normals: (row) => normals(encode(row)), shape: shape, heaps: heaps };
}
for (const found of document.querySelectorAll("script[id$=what-if-data]")) {
  window.mvenetWhatIf = whatIf(found.id.slice(0, -"what-if-data".length));
}
