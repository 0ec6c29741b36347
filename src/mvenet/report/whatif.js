"use strict";
// The model in the page: a row is encoded, every network runs, and the result is drawn. Nothing is
// fetched and nothing is sent. The same numbers as Python's, which a test in a browser checks.
(function () {
  const place = document.getElementById("what-if");
  const data = JSON.parse(document.getElementById("what-if-data").textContent);
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

  const ACTIVATIONS = {
    elu: (v) => (v > 0 ? v : Math.expm1(v)),
    silu: (v) => v / (1 + Math.exp(-v)),
    relu: (v) => Math.max(v, 0),
    tanh: Math.tanh,
  };

  function erfc(x) { // Numerical Recipes' Chebyshev fit, relative error below 1.2e-7
    const z = Math.abs(x), t = 1 / (1 + 0.5 * z);
    const sum = [0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806,
      0.09678418, 0.37409196, 1.00002368, -1.26551223].reduce((s, c) => s * t + c, 0);
    const tail = t * Math.exp(-z * z + sum);
    return x >= 0 ? tail : 2 - tail;
  }

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

  function forest(trees, x) {
    let total = 0;
    for (let t = 0; t + 1 < trees.starts.length; t++) {
      let at = trees.starts[t];
      while (trees.feature[at] >= 0) {
        const left = Math.fround(x[trees.feature[at]]) <= trees.threshold[at];
        at = left ? at + 1 : trees.right[at];
      }
      total += trees.threshold[at];
    }
    return trees.center + (trees.scale * total) / (trees.starts.length - 1);
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
      Forest: (m) => forest(model.forests[m.forest], within),
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
    const added = Math.sqrt((far / (1 + far)) * model.unknown ** 2 + near * model.typical ** 2);
    const widest = model.widest === null ? Infinity : model.widest;
    return model.noises.flatMap((noise, i) => {
      const members = said[i] || ask(noise, blended);
      const mean = noise.joint ? clip(centre(members), ...model.limits) : blended;
      const [offset, exponent, low, high] = noise.shape;
      const std = Math.exp(clip(offset + exponent * average(members.map((m) => Math.log(m.std))), low, high));
      return noise.weights.map((weight, k) => ({ weight, mean, std: Math.min(Math.hypot(std * model.multiples[k], added), widest) }));
    }).filter((member) => member.weight > 0);
  }

  function quantile(members, level) {
    let low = Math.min(...members.map((m) => m.mean - 9 * m.std));
    let high = Math.max(...members.map((m) => m.mean + 9 * m.std));
    for (let i = 0; i < 70; i++) {
      const middle = 0.5 * (low + high);
      const mass = members.reduce((sum, m) => sum + m.weight * 0.5 * erfc((m.mean - middle) / (m.std * Math.SQRT2)), 0);
      if (mass < level) low = middle; else high = middle;
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

  function own(x) {
    const members = model.kind === "composite" ? composite(x) : networks(model.groups[0], model.piecewise ? piecewise(x) : x).map(
      (m) => ({ weight: 1 / model.groups[0].count, mean: m.mean, std: model.factor * m.std }));
    const mean = members.reduce((sum, m) => sum + m.weight * (model.log ? Math.exp(m.mean + 0.5 * m.std ** 2) : m.mean), 0);
    return [mean, ...intervals(members).map((v) => (model.log ? Math.exp(v) : v))].map((v) => v * (model.unit || 1));
  }

  function predict(row) {
    const x = encode(row);
    const [mean, low90, low50, high50, high90] = model.kind === "stand-in" ? standIn(x) : own(x);
    return { mean, low90, low50, high50, high90 };
  }

  // --- what a reader sees -------------------------------------------------------------------------
  const unit = data.unit ? "\u00a0" + data.unit : "";
  function readable(v) {
    const size = Math.abs(v);
    if (size && (size >= 1e9 || size < 1e-3)) return v.toExponential(2);
    const digits = size >= 1000 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size || 1)));
    return v.toLocaleString("en-US", { maximumFractionDigits: digits });
  }
  const money = (v) => readable(v) + unit;
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
    const id = "what-if-" + i;
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
    const p = predict(row);
    document.getElementById("what-if-mean").textContent = money(p.mean);
    document.getElementById("what-if-50").textContent = money(p.low50) + " to " + money(p.high50);
    document.getElementById("what-if-90").textContent = money(p.low90) + " to " + money(p.high90);
    const strange = outside();
    const warning = document.getElementById("what-if-outside");
    warning.textContent = strange.length ? "Outside what the model has seen: " + strange.join(", ") + ". Trust this less." : "";
    bar(p);
  }

  function bar(p) {
    const low = Math.min(data.axis[0], p.low90), high = Math.max(data.axis[1], p.high90);
    const at = (v) => 12 + (576 * (v - low)) / (high - low || 1);
    const set = (id, values) => {
      for (const [name, value] of Object.entries(values)) document.getElementById(id).setAttribute(name, value);
    };
    set("what-if-wide", { x: at(p.low90), width: Math.max(1, at(p.high90) - at(p.low90)) });
    set("what-if-narrow", { x: at(p.low50), width: Math.max(1, at(p.high50) - at(p.low50)) });
    set("what-if-dot", { cx: at(p.mean) });
    document.getElementById("what-if-low").textContent = readable(low);
    document.getElementById("what-if-high").textContent = readable(high);
  }

  const knobs = document.getElementById("what-if-knobs");
  data.controls.forEach((control, i) => knobs.append(field(control, i)));
  const start = document.getElementById("what-if-start");
  for (const word of Object.keys(data.starts)) start.append(made("option", { value: word }, word));
  const reset = () => { row = { ...data.starts[start.value] }; draw(); };
  start.addEventListener("change", reset);
  document.getElementById("what-if-reset").addEventListener("click", reset);
  place.hidden = false;
  draw();
  window.mvenetWhatIf = { predict: predict, encode: encode };
})();
