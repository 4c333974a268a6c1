// The Vega-Lite specification of each kind of chart (declared in tasks/figures/charts.py), from its chosen rows and its
// options. An option is a column of the rows, unless it is a title, a list, or a switch.
"use strict";

const encode = {
  number: (field, more) => ({ field, type: "quantitative", ...more }),
  word: (field, more) => ({ field, type: "nominal", title: null, ...more }),
  unique: (rows, column) => [...new Set(rows.map((row) => row[column]))],
  models: () => choice.boxes().filter((box) => box.checked).map((box) => charts.harmless(box.value)),

  // Returns the names in a column in their order; that of models is their rank among all chosen ones.
  names(rows, column) {
    const names = encode.unique(rows, column);
    return column === "model" ? encode.models().filter((name) => names.includes(name)) : names;
  },

  layer: (mark, encoding, ...transform) => ({ mark, encoding, transform }),

  // Returns names by colour or shape; both share a legend above the chart, which needs a list of names in both. A model
  // has the same colour and shape on a whole page.
  legend: (field, values) => encode.word(field, {
    scale: { domain: field === "model" ? encode.models() : values },
    legend: { orient: "top", symbolOpacity: 1, values },
  }),

  // Returns the format of the values of a column of money.
  format: (column) => (column.endsWith("usd") ? "$,.3~r" : undefined),

  // Returns the tooltips of columns with their titles.
  tips: (rows, titles, format = ",.3~f") => Object.entries(titles).map(([field, title]) =>
    (rows.some((row) => typeof row[field] === "string") ? encode.word(field, { title })
      : encode.number(field, { title, format: encode.format(field) ?? format }))),

  // Returns the columns of an interval's ends: with the prefix `ends`, else the value's own, else the row's.
  ends([row], value, ends) {
    const stem = ends ?? (`${value}_ci_low` in row ? `${value}_ci` : "ci");
    return [`${stem}_low`, `${stem}_high`];
  },

  // Returns the lowest and the highest value of some columns and of the given values.
  range(rows, columns, extraValues = []) {
    const values = rows.flatMap((row) => columns.map((column) => row[column])).concat(extraValues);
    const numbers = values.filter((value) => typeof value === "number");
    return [Math.min(...numbers), Math.max(...numbers)];
  },

  // Returns an axis of names that may be long: they wrap over several lines, centred on their marks.
  wrapped() {
    const lines = "split(replace(datum.label, regexp('(.{18,}?) ', 'g'), '$1\\n'), '\\n')";
    // The first line would be centred on the mark, so each further line raises the label by half a line.
    const lifted = [2, 3, 4].map((n) => ({ test: `length(${lines}) === ${n}`, value: (-11 * (n - 1)) / 2 }));
    return {
      labelExpr: lines, labelLimit: 180, labelLineHeight: 11, labelOffset: { condition: lifted, value: 0 },
      ticks: false, labelPadding: 5, // So that a mark at the end of the axis does not cover the label.
    };
  },

  // Returns the height of each name on such an axis.
  step: (names) => 12 * Math.max(2, ...names.map((name) => `${name}`.replace(/(.{18,}?) /g, "$1\n").split("\n").length)),
};

const kinds = {
  // A dot with its interval for each label, one below the other, or with `name` for each name under each label; `zero`
  // draws the line of no difference. The charts of a figure share an axis: with `least` it covers this range and all
  // values (`all` are the rows of all charts), else the chosen ones (`peers`), and with `from_zero` it starts at 0.
  intervals({ rows, peers, all, value, ends, title, label = "model", is_sorted, name, least, zero, from_zero, percent,
    hollow }) {
    const { number, word, legend, layer, unique } = encode;
    const [low, high] = encode.ends(rows, value, ends);
    const labels = unique(rows, label);
    const names = name ? encode.names(name === "model" ? rows : all, name) : [];
    const domain = encode.range(least ? all : peers, [value, low, high], least ?? (zero || from_zero ? 0 : []));
    const padding = (zero || from_zero) && domain[0] === 0 ? 0 : 8;
    const scale = { domain, zero: false, ...(least ? {} : { nice: false, padding }) };
    const along = { title, scale, axis: percent ? { format: ".0%" } : undefined };
    const base = { y: word(label, { sort: is_sorted ? [...labels].sort() : labels, axis: encode.wrapped() }) };
    if (name) Object.assign(base, { yOffset: word(name, { sort: names }), color: legend(name, names) });
    const tips = { [label]: label, ...(name && { [name]: name }), [value]: title, [low]: "from", [high]: "to" };
    const tooltip = encode.tips(rows, tips, percent ? ".1%" : undefined);
    const colours = name ? legend(name, names) : { value: "var(--series-1)" };
    const fillOpacity = { condition: { test: `datum['${hollow}']`, value: 0 }, value: 1 };
    const marks = { ...base, x: number(value, along), tooltip, fill: colours, fillOpacity };
    if (name) marks.shape = colours;
    const rule = { ...base, x: number(low, { scale }), x2: { field: high } };
    const zeroLine = layer({ type: "rule", strokeDash: [4, 3], color: "gray" }, { x: { datum: 0, scale } });
    return {
      height: labels.length * Math.max(encode.step(labels), name ? unique(rows, name).length * 13 : 0),
      layer: [...(zero ? [zeroLine] : []), layer({ type: "rule", strokeWidth: name ? 1.5 : 2 }, rule),
        layer({ type: "point", filled: false, size: name ? 45 : 70, strokeWidth: 1.5, opacity: 1 }, marks)],
    };
  },

  // A bar for each name: horizontal, or upright for names with an order of their own, such as numbers. `whole` is for
  // values that are counts. The charts of a figure share an axis, except those with parts by `colour`.
  bars({ rows, name, value, title, name_title, colour, is_upright, percent, whole, peers }) {
    const names = encode.unique(rows, name);
    const axis = is_upright ? { labelAngle: 0, labelOverlap: "greedy" } : encode.wrapped();
    const format = percent ? ".0%" : whole ? ",d" : encode.format(value);
    const scale = colour ? undefined : { domain: encode.range(peers, [value], 0), nice: true };
    const nameAxis = {
      field: name,
      type: is_upright ? "ordinal" : "nominal",
      title: is_upright ? name_title ?? null : null,
      sort: names,
      axis,
    };
    const valueAxis = encode.number(value, { title, scale, axis: { format, tickMinStep: whole ? 1 : undefined } });
    const tips = { ...(colour && { [colour]: colour }), [name]: name_title ?? name, [value]: title };
    const tooltip = encode.tips(rows, tips, percent ? ".1%" : undefined);
    const color = colour ? encode.legend(colour) : undefined;
    return {
      height: is_upright ? 180 : names.length * encode.step(names), mark: { type: "bar" },
      encoding: {
        tooltip,
        color,
        ...(is_upright ? { x: nameAxis, y: valueAxis } : { y: nameAxis, x: valueAxis }),
      },
    };
  },

  // A named point for each row, with a vertical interval; with `usd`, x is US dollars on a logarithmic scale.
  scatter({ rows, peers, x, y, x_title, y_title, name = "model", usd }) {
    const { number, layer } = encode;
    const [low, high] = encode.ends(rows, y);
    const scale = { padding: 30, nice: false, ...(usd ? { type: "log" } : { zero: false }) };
    const axis = { tickCount: 5, ...(usd ? { format: "$,.2~r", grid: false } : {}) };
    const heights = { scale: { domain: encode.range(peers, [y, low, high]), nice: true, zero: false } };
    const base = { x: number(x, { title: x_title, scale, axis }), y: number(y, { title: y_title, ...heights }) };
    const tooltip = encode.tips(rows, { [name]: name, [x]: x_title, [y]: y_title });
    return {
      height: 300, names: name, layer: [
        layer({ type: "rule" }, { ...base, y: number(low, heights), y2: { field: high } }),
        layer({ type: "point", filled: true, size: 70 }, { ...base, tooltip }),
      ],
    };
  },

  // A coloured cell with its number for each pair of names, with an asterisk if `marked` is true. `across` and `down`
  // give the order of the names (true: alphabetical), by default that of the page and that of the rows. Without a
  // `domain`, colours cover the values of all charts of the figure, on both sides of 0 if they are `diverging`.
  heat({ rows, all, x, y, value, title, domain, least, diverging, across, down, marked, tips = {}, percent }) {
    const { number, word, layer, unique } = encode;
    const range = domain ?? encode.range(all, [value], least);
    const limit = Math.max(...range.map(Math.abs)) || 1;
    const ends = diverging ? [-limit, 0, limit] : range;
    const strengths = diverging ? [1, 0.12, 1] : [0.12, 1];
    const order = (names, column) => (names === true ? unique(all, column).sort() : names);
    const datum = `datum['${value}']`;
    const star = marked ? ` + (datum['${marked}'] ? '*' : '')` : "";
    const form = `${diverging ? "+" : ""}${percent ? ".0%" : ".2f"}`;
    const numberText = `replace(format(${datum}, '${form}'), regexp('^[+−](?=[0.%]+$)'), '')`; // 0 has no sign.
    const slanted = { labelAngle: 40, labelAlign: "right", labelBaseline: "bottom" };
    const top = { orient: "top", labelLimit: 110, ticks: false, domain: false, ...slanted };
    const names = unique(rows, y);
    const base = {
      x: word(x, { sort: order(across, x) ?? encode.names(rows, x), axis: top }),
      y: word(y, { sort: order(down, y) ?? names, axis: encode.wrapped() }),
    };
    const cells = {
      ...base, tooltip: encode.tips(rows, { [y]: y, [x]: x, [value]: title, ...tips }),
      opacity: number(value, { legend: null, scale: { domain: ends, range: strengths, clamp: true } }),
    };
    const color = { expr: `${Boolean(diverging)} && ${datum} < 0 ? 'var(--heat-minus)' : 'var(--heat-high)'` };
    // A cell that is too narrow for its number shows only its colour.
    const fontSize = { expr: "clamp(bandwidth('x') / 3.4, 7, 11)" };
    const opacity = { expr: `bandwidth('x') < ${diverging ? 26 : 22} ? 0 : 1` };
    const shown = { calculate: `isValid(${datum}) ? ${numberText}${star} : ''`, as: "shown" };
    return {
      height: names.length * 30, layer: [
        layer({ type: "rect", color }, cells),
        layer({ type: "text", fontSize, opacity }, { ...base, text: { field: "shown", type: "nominal" } }, shown),
      ],
    };
  },

  // Values over time with their intervals; each `colour` has a colour, and each `line` one stroke. If the setup changes,
  // a stroke ends and the next one begins; a dashed line between them says what `changed`. `marked` rows are alarms.
  // `hollow` rows have rings instead of dots.
  over_time({ rows, x, value, title, colour, line, changed, marked, hollow, tips }) {
    const { number, layer } = encode;
    for (const row of rows) row[x] = `${row[x].replace(" ", "T").slice(0, 19)}Z`;
    const [first, last] = encode.range([], [], rows.map((row) => Date.parse(row[x])));
    const format = last - first < 3 * 86_400_000 ? "%-d %b %H:%M" : "%-d %b";
    const axis = { format, tickCount: 6, labelOverlap: "greedy" };
    const [low, high] = encode.ends(rows, value);
    const scale = { domain: encode.range(rows, [value, low, high]), nice: true, zero: false };
    const base = { x: { field: x, type: "temporal", title: null, scale: { type: "utc", padding: 12 }, axis } };
    const y = number(value, { title, scale });
    const tooltip = encode.tips(rows, tips);
    const ofModel = { ...base, color: encode.legend(colour) };
    const hole = { type: "point", filled: true, opacity: 1, color: "var(--ground)", aria: false };
    const alarm = { type: "point", filled: true, opacity: 1, shape: "triangle-down", color: "var(--bad)", aria: false };
    const sizeWhere = (column, value) => ({ condition: { test: `datum['${column}']`, value }, value: 0 });
    // All models that changed on one day share a line.
    const changes = new Map(rows.filter((row) => row[changed])
      .map((row) => [`${row[x].slice(0, 10)} ${row[changed]}`, { [x]: row[x], new: `new ${row[changed]}` }]));
    const label = { type: "text", angle: 270, align: "right", baseline: "bottom", dx: -4, dy: -3, fontSize: 11 };
    const data = { values: [...changes.values()] };
    const dated = [
      { data, ...layer({ type: "rule", strokeDash: [3, 3], color: "gray" }, base) },
      { data, ...layer(label, { ...base, y: { value: 0 }, text: { field: "new", type: "nominal" } }) },
    ];
    return {
      height: 240, layer: [
        ...(changes.size ? dated : []),
        layer({ type: "rule", strokeWidth: 3, opacity: 0.35 }, { ...ofModel, y: number(low, { title }), y2: { field: high } }),
        layer({ type: "line" }, { ...ofModel, y, detail: { field: line, type: "nominal" } }),
        layer({ type: "point", filled: true, size: 55, opacity: 1 }, { ...ofModel, y, tooltip }),
        layer(hole, { ...base, y, tooltip, size: sizeWhere(hollow, 20) }),
        layer(alarm, { ...base, y, tooltip, size: sizeWhere(marked, 150) }),
      ],
    };
  },

  // A share in each night, with the limits of the night (`lines`: columns): solid, dashed, dotted. Alarms are red.
  control({ rows, x, value, title, lines, marked, tips }) {
    const { number, layer } = encode;
    const scale = { domain: [encode.range(rows, [value, ...lines])[0], 1], nice: true, zero: false };
    const base = { x: { field: x, type: "ordinal", title: null, axis: { labelAngle: -40, labelOverlap: "greedy" } } };
    const along = (column) => ({ ...base, y: number(column, { title, scale, axis: { format: ".0%" } }) });
    const ofNight = { x: { ...base.x, bandPosition: 0 }, x2: { field: x, bandPosition: 1 } };
    const either = (alarm, usual) => ({ condition: { test: `datum['${marked}']`, value: alarm }, value: usual });
    const shape = either("triangle-down", "circle");
    const color = either("var(--bad)", "var(--series-1)");
    const rule = [[1, 0], [6, 3], [2, 2], [9, 3, 2, 3]].map((strokeDash) => ({ type: "rule", color: "gray", size: 2, strokeDash }));
    const dots = { ...along(value), shape, color, tooltip: encode.tips(rows, tips, ".1%") };
    return {
      height: 240, layer: [
        ...lines.map((column, i) => layer(rule[i], { ...along(column), ...ofNight })),
        layer({ type: "line" }, along(value)), layer({ type: "point", filled: true, size: 90, opacity: 1 }, dots),
      ],
    };
  },

  // A dot for each row, by colour and shape; y is a share. There are dashed lines at some heights (`bounds`), or, if x is
  // a share too, on the diagonal of equal shares; then lines join the dots, whose sizes are numbers (`n`).
  dots({ rows, x, y, x_title, y_title, colour, names, bounds = [], n, tips }) {
    const { number, layer, legend } = encode;
    const scale = n ? { domain: [0, 1] } : undefined;
    const base = {
      x: number(x, { title: x_title, scale: scale ?? { zero: false, padding: 10 } }),
      y: number(y, { title: y_title, scale, axis: { format: ".0%" } }), color: legend(colour, names),
    };
    const tooltip = encode.tips(rows, tips).map((tip) => (tip.field === y ? { ...tip, format: ".1%" } : tip));
    const size = n ? number(n, { legend: null }) : { value: 45 };
    const equal = { x: { datum: 0 }, y: { datum: 0 }, x2: { datum: 1 }, y2: { datum: 1 } };
    const dashed = [...bounds.map((datum) => ({ y: { datum } })), ...(n ? [equal] : [])];
    return {
      height: n ? 300 : 240, layer: [
        ...dashed.map((ends) => layer({ type: "rule", strokeDash: [4, 3], color: "gray" }, ends)),
        ...(n ? [layer({ type: "line" }, base)] : []),
        layer({ type: "point", filled: true, opacity: 0.75 }, { ...base, shape: legend(colour, names), tooltip, size }),
      ],
    };
  },
};
