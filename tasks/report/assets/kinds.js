// The Vega-Lite specification of each kind of chart (declared in tasks/figures/charts.py), from its chosen rows and its
// options. An option is a column of the rows, unless it is a title, a list, or a switch.
"use strict";

const encode = {
  number: (field, more) => ({ field, type: "quantitative", ...more }),
  word: (field, more) => ({ field, type: "nominal", title: null, ...more }),
  unique: (rows, column) => [...new Set(rows.map((row) => row[column]))],
  layer: (mark, encoding, ...transform) => ({ mark, encoding, transform }),

  // Returns names by colour or shape; both share a legend above the chart, which needs a list of names in both.
  legend: (field, domain) =>
    encode.word(field, { scale: { domain }, legend: { orient: "top", labelLimit: 220, symbolOpacity: 1 } }),

  // Returns the tooltips of columns with their titles: of names, and of names and numbers.
  words: (titles) => Object.entries(titles).map(([field, title]) => encode.word(field, { title })),
  tips: (rows, titles, format = ",.3~f") => Object.entries(titles).map(([field, title]) =>
    (rows.some((row) => typeof row[field] === "string") ? encode.word(field, { title })
      : encode.number(field, { title, format }))),

  // Returns the columns of an interval's ends: with the prefix `ends`, else the value's own, else the row's.
  ends([row], value, ends) {
    const stem = ends ?? (`${value}_ci_low` in row ? `${value}_ci` : "ci");
    return [`${stem}_low`, `${stem}_high`];
  },

  // Returns the lowest and the highest value of some columns and of the given values.
  range(rows, columns, given = []) {
    const values = rows.flatMap((row) => columns.map((column) => row[column])).concat(given);
    const known = values.filter((each) => typeof each === "number");
    return [Math.min(...known), Math.max(...known)];
  },

  // Returns an axis of names that may be long: they wrap over several lines, centred on their marks.
  wrapped() {
    const lines = "split(replace(datum.label, regexp('(.{18,}?) ', 'g'), '$1\\n'), '\\n')";
    // The first line would be centred on the mark, so each further line raises the label by half a line.
    const lifted = [2, 3, 4].map((n) => ({ test: `length(${lines}) === ${n}`, value: (-11 * (n - 1)) / 2 }));
    return {
      labelExpr: lines, labelLimit: 150, labelLineHeight: 11, labelOffset: { condition: lifted, value: 0 },
      ticks: false, labelPadding: 5, // So that a mark at the end of the axis does not cover the label.
    };
  },

  // Returns dots, hollow where the column `hollow` is true.
  points(encoding, hollow, size) {
    const full = { type: "point", filled: true, size };
    if (!hollow) return [encode.layer(full, encoding)];
    const empty = { type: "point", filled: false, size, strokeWidth: 1.5 };
    return [[`!datum['${hollow}']`, full], [`datum['${hollow}']`, empty]]
      .map(([filter, mark]) => encode.layer(mark, encoding, { filter }));
  },
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
    const names = name ? unique(all, name) : [];
    const domain = encode.range(least ? all : peers, [value, low, high], least ?? (zero || from_zero ? 0 : []));
    const padding = (zero || from_zero) && domain[0] === 0 ? 0 : 8;
    const scale = { domain, zero: false, ...(least ? {} : { nice: false, padding }) };
    // Both layers have this axis, because the page leaves out a layer without a chosen value.
    const along = { title, scale, axis: percent ? { format: ".0%" } : undefined };
    const sort = is_sorted ? [...labels].sort() : labels;
    const base = { y: word(label, { sort, axis: name ? encode.wrapped() : { labelLimit: 180 } }) };
    if (name) Object.assign(base, { yOffset: word(name, { sort: names }), color: legend(name, names) });
    const texts = encode.words({ [label]: label, ...(name ? { [name]: name } : {}) });
    const numbers = encode.tips(rows, { [value]: title, [low]: "from", [high]: "to" }, percent ? ".1%" : undefined);
    const marks = { ...base, x: number(value, along), tooltip: [...texts, ...numbers] };
    if (name) marks.shape = legend(name, names);
    const rule = { ...base, x: number(low, along), x2: { field: high } };
    const nothing = layer({ type: "rule", strokeDash: [4, 3], color: "gray" }, { x: { datum: 0, scale } });
    return {
      height: labels.length * (name ? Math.max(24, unique(rows, name).length * 13) : 22),
      layer: [...(zero ? [nothing] : []), layer({ type: "rule", strokeWidth: name ? 1.5 : 2 }, rule),
        ...encode.points(marks, hollow, name ? 45 : 70)],
    };
  },

  // A bar for each name: horizontal, or upright for names with an order of their own, such as numbers; then a missing
  // number has no bar. `whole` is for values that are counts, `wrapped` for names that may be long.
  bars({ rows, name, value, title, name_title, colour, is_upright, percent, least, whole, wrapped, all }) {
    const texts = encode.unique(rows, name);
    const numbers = texts.filter((each) => Number.isFinite(parseFloat(each)) && Number.isFinite(Number(each)));
    const areNumbers = is_upright && numbers.length > 0;
    const names = areNumbers ? numbers : texts;
    const upright = areNumbers ? { labelAngle: 0, labelOverlap: "greedy" } : undefined;
    const along = is_upright ? upright : wrapped ? encode.wrapped() : { labelLimit: 180 };
    const format = percent ? { format: ".0%" } : whole ? { format: ",d", tickMinStep: 1 } : undefined;
    const scale = least ? { domain: encode.range(all, [value], least) } : undefined;
    const [one, other] = [
      { field: name, type: is_upright ? "ordinal" : "nominal", title: name_title ?? null, sort: names, axis: along },
      encode.number(value, { title, axis: format, scale }),
    ];
    const words = encode.words({ ...(colour ? { [colour]: colour } : {}), [name]: name_title ?? name });
    const tooltip = [...words, ...encode.tips(rows, { [value]: title }, percent ? ".1%" : undefined)];
    const color = colour ? encode.legend(colour) : undefined;
    return {
      height: is_upright ? 180 : names.length * (wrapped ? 36 : 22), mark: { type: "bar" },
      transform: areNumbers ? [{ filter: { field: name, oneOf: names } }] : [],
      encoding: { tooltip, color, ...(is_upright ? { x: one, y: other } : { y: one, x: other }) },
    };
  },

  // A named point for each row, with a vertical interval; with `usd`, x is US dollars on a logarithmic scale.
  scatter({ rows, x, y, x_title, y_title, name = "model", usd }) {
    const { number, layer } = encode;
    const [low, high] = encode.ends(rows, y);
    const scale = { padding: 30, nice: false, ...(usd ? { type: "log" } : { zero: false }) };
    const axis = { tickCount: 5, ...(usd ? { format: "$,.2~r", grid: false } : {}) };
    const up = number(y, { title: y_title, scale: { zero: false } });
    const base = { x: number(x, { title: x_title, scale, axis }), y: up };
    const tooltip = [...encode.words({ [name]: name }), ...encode.tips(rows, { [x]: x_title, [y]: y_title })];
    return {
      height: 300, names: name, layer: [
        layer({ type: "rule" }, { ...base, y: number(low, { title: y_title }), y2: { field: high } }),
        layer({ type: "point", filled: true, size: 70, style: "named" }, { ...base, tooltip }),
      ],
    };
  },

  // Points of two shares, larger for more criteria, joined by a line; and the diagonal of equal shares.
  diagonal({ rows, x, y, n, name, x_title, y_title }) {
    const { number, layer, tips } = encode;
    const scale = { domain: [0, 1] };
    const base = { x: number(x, { title: x_title, scale }), y: number(y, { title: y_title, scale }) };
    const equal = { x: { datum: 0 }, y: { datum: 0 }, x2: { datum: 1 }, y2: { datum: 1 } };
    const tooltip = [...tips(rows, { [x]: x_title, [y]: y_title }), number(n, { title: "criteria" })];
    const color = encode.word(name);
    return {
      height: 300, layer: [
        layer({ type: "rule", strokeDash: [4, 4], strokeOpacity: 0.5 }, equal),
        layer({ type: "line" }, { ...base, color }),
        layer({ type: "point", filled: true }, { ...base, color, tooltip, size: number(n, { legend: null }) }),
      ],
    };
  },

  // A coloured cell with its number for each pair of names, with an asterisk where `marked` is true. `across` and `down`
  // give the order of the names (true: alphabetical), by default that of the page and that of the rows. Without a
  // `domain`, colours cover the values of all charts of the figure, on both sides of 0 if they are `diverging`.
  heat({ rows, all, x, y, value, title, domain, least, diverging, across, down, marked, tips = {}, percent }) {
    const { word, layer, unique } = encode;
    const range = domain ?? encode.range(all, [value], least);
    const most = Math.max(...range.map(Math.abs)) || 1;
    const [lowest, neutral, highest] = diverging ? [-most, 0, most] : [range[0], ...range];
    const order = (given, name) => (given === true ? unique(all, name).sort() : given);
    const known = `datum['${value}']`;
    const end = `(${known} < ${neutral} ? ${lowest} : ${highest})`;
    const share = `100 * clamp((${known} - ${neutral}) / (${end} - ${neutral}), 0, 1)`;
    const hot = `'var(--heat-' + (${known} < ${neutral} ? 'minus' : 'high') + ') '`;
    const mixed = `'color-mix(in srgb, ' + ${hot} + ${share} + '%, var(--heat-low))'`;
    const star = marked ? ` + (datum['${marked}'] ? '*' : '')` : "";
    const form = `${diverging ? "+" : ""}${percent ? ".0%" : ".2f"}`;
    const slanted = { labelAngle: 40, labelAlign: "right", labelBaseline: "bottom" };
    const top = { orient: "top", labelLimit: 110, ticks: false, domain: false, ...slanted };
    const names = unique(rows, y);
    const base = {
      x: word(x, { sort: order(across, x) ?? null, axis: top }),
      y: word(y, { sort: order(down, y) ?? names, axis: encode.wrapped() }),
    };
    const tooltip = [...encode.words({ [y]: y, [x]: x }), ...encode.tips(rows, { [value]: title, ...tips })];
    // A cell that is too narrow for its number shows only its colour.
    const fontSize = { expr: "clamp(bandwidth('x') / 3.4, 7, 11)" };
    const opacity = { expr: "bandwidth('x') < 22 ? 0 : 1" };
    const shown = { calculate: `isValid(${known}) ? format(${known}, '${form}')${star} : ''`, as: "shown" };
    return {
      height: names.length * 30, layer: [
        layer({ type: "rect", color: { expr: `isValid(${known}) ? ${mixed} : 'transparent'` } }, { ...base, tooltip }),
        layer({ type: "text", fontSize, opacity }, { ...base, text: { field: "shown", type: "nominal" } }, shown),
      ],
    };
  },

  // A night in which a judge was out of control; the colour is in `charts.config`.
  alarm: { type: "point", filled: true, size: 150, opacity: 1, shape: "triangle-down", style: "alarm" },

  // Values over time with their intervals; each `colour` has a colour, and each `line` one stroke. If the setup changes,
  // a stroke ends and the next one begins; a dashed line between them says what `changed`. `marked` rows are alarms.
  over_time({ rows, x, value, title, colour, line, changed, marked, tips }) {
    const { word, layer } = encode;
    const aria = false; // A screen reader reads each row once, from its dot.
    for (const row of rows) {
      const isAlone = rows.filter((each) => each[line] === row[line]).length === 1;
      Object.assign(row, { [x]: `${row[x].replace(" ", "T").slice(0, 19)}Z`, is_alone: isAlone });
    }
    const moments = rows.map((row) => Date.parse(row[x]));
    const isShort = Math.max(...moments) - Math.min(...moments) < 3 * 86_400_000;
    const axis = { format: isShort ? "%-d %b %H:%M" : "%-d %b", tickCount: 6, labelOverlap: "greedy" };
    const [low, high] = encode.ends(rows, value);
    const scale = { domain: encode.range(rows, [value, low, high]), nice: true, zero: false };
    const base = { x: { field: x, type: "temporal", title: null, scale: { type: "utc", padding: 12 }, axis } };
    const [up, from, to] = [encode.number(value, { title, scale }), encode.number(low, { title }), { field: high }];
    const tooltip = encode.tips(rows, tips);
    const ofModel = { ...base, color: encode.legend(colour) };
    const ofLine = { ...ofModel, detail: { field: line, type: "nominal" } };
    const where = (column, full) => ({ condition: { test: `datum['${column}']`, value: full }, value: 0 });
    // All models that changed on one day share a line.
    const once = [
      { calculate: `time(datum['${x}'])`, as: "moment" }, { calculate: "floor(datum.moment / 86400000)", as: "day" },
      { calculate: `datum['${changed}'] ? 'new ' + datum['${changed}'] : ''`, as: "new" },
      { aggregate: [{ op: "min", field: "moment", as: "moment" }], groupby: ["day", "new"] },
      { calculate: "toDate(datum.moment)", as: "day" },
    ];
    const dashed = { type: "rule", strokeDash: [3, 3], color: "gray", aria };
    const alone = { type: "rule", strokeWidth: 3, aria };
    const atDay = { x: { field: "day", type: "temporal", title: null } };
    const label = { type: "text", aria, angle: 270, align: "right", baseline: "bottom", dx: -4, dy: -3, fontSize: 11 };
    // Each layer has all rows, because a layer without rows could not find the ends of its axes.
    return {
      height: 240, layer: [
        layer(dashed, { ...atDay, opacity: where("new", 1) }, ...once),
        layer(label, { ...atDay, y: { value: 0 }, text: { field: "new", type: "nominal" } }, ...once),
        layer({ type: "area", opacity: 0.15, aria }, { ...ofLine, y: from, y2: to }),
        layer(alone, { ...ofModel, y: from, y2: to, opacity: where("is_alone", 0.35) }),
        layer({ type: "line", aria }, { ...ofLine, y: up }),
        layer({ type: "point", filled: true, size: 55, opacity: 1 }, { ...ofModel, y: up, tooltip }),
        layer({ ...this.alarm, aria }, { ...base, y: up, tooltip, size: where(marked, 150) }),
      ],
    };
  },

  // A share in each night, and short lines across the night (`lines`: column -> name); `marked` nights are alarms.
  control({ rows, x, value, title, lines, marked, tips }) {
    const { number, word, layer } = encode;
    const nights = { type: "band", padding: 0.1, domain: encode.unique(rows, x) };
    const [lowest] = encode.range(rows, [value, ...Object.keys(lines)]);
    const dated = { x: word(x, { scale: nights, axis: { labelAngle: -40, labelOverlap: "greedy" } }) };
    const scale = { domain: [lowest, 1], nice: true, zero: false };
    const y = number(value, { title, scale, axis: { format: ".0%" } });
    const dots = { ...dated, y, tooltip: encode.tips(rows, tips, ".1%") };
    const legend = { orient: "top", symbolType: "stroke", symbolSize: 300, columns: 3 };
    const dashes = { domain: Object.values(lines).reverse(), range: [[1, 0], [6, 3], [2, 2]] };
    const across = ([column, what]) => layer({ type: "rule", strokeWidth: 2, color: "gray" }, {
      x: word(x, { scale: nights, bandPosition: 0 }), x2: { field: x, bandPosition: 1 }, y: number(column, { title }),
      strokeDash: word("what", { legend, scale: dashes }),
    }, { filter: `isValid(datum['${column}'])` }, { calculate: `'${what}'`, as: "what" });
    return {
      height: 240, layer: [
        ...Object.entries(lines).map(across), layer({ type: "line", aria: false }, { ...dated, y }),
        layer({ type: "point", filled: true, size: 60, opacity: 1 }, dots, { filter: `!datum['${marked}']` }),
        layer(this.alarm, dots, { filter: `datum['${marked}']` }),
      ],
    };
  },

  // A dot for each row, by colour and shape, and dashed lines at some heights (`bounds`); y is a share.
  certainty({ rows, x, y, x_title, y_title, colour, names, bounds, tips }) {
    const { number, layer, legend } = encode;
    const tooltip = encode.tips(rows, tips).map((tip) => (tip.field === y ? { ...tip, format: ".1%" } : tip));
    const dots = {
      x: number(x, { title: x_title, scale: { zero: false, padding: 10 } }),
      y: number(y, { title: y_title, axis: { format: ".0%" } }),
      color: legend(colour, names), shape: legend(colour, names),
    };
    const bound = (datum) => layer({ type: "rule", strokeDash: [4, 3], color: "gray" }, { y: { datum } });
    const point = { type: "point", filled: true, size: 45, opacity: 0.75 };
    return { height: 240, layer: [...bounds.map(bound), layer(point, { ...dots, tooltip })] };
  },
};
