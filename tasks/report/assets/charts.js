// Names beside the points of a chart: none covers another one or a point, and one that has to stand away has a line to
// its point.
"use strict";

const names = {
  fontSize: 11,
  height: 13,
  longest: 160, // In pixels; of a longer name the middle is left out. Tooltip and table have it in full.
  radius: 5,
  distances: [3, 8, 16, 28, 42, 58, 76, 96],
  near: 8,
  directions: [[1, 0], [-1, 0], [1, -1], [1, 1], [-1, -1], [-1, 1], [0, -1], [0, 1], [1, -0.5], [1, 0.5], [-1, -0.5], [-1, 0.5]],

  overlap: (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom,

  around: ({ x, y }, dx, dy) => ({ left: x - dx, right: x + dx, top: y - dy, bottom: y + dy }),

  // Where the box of a name may stand: in a direction from its point, so far from the point's edge.
  box(point, width, [across, down], distance) {
    const reach = this.radius + distance;
    const centre = {
      x: point.x + across * reach + Math.sign(across) * (width / 2),
      y: point.y + down * reach + Math.sign(down) * (this.height / 2) * Math.min(1, Math.abs(down) * 2),
    };
    return this.around(centre, width / 2, this.height / 2);
  },

  // The best free box of a point: near, and across few intervals; null where there is none.
  find(point, width, { plot, taken, dots, bars }) {
    let best = null;
    for (const distance of this.distances) {
      if (best && best.cost <= distance) break;
      this.directions.forEach((direction, place) => {
        const box = this.box(point, width, direction, distance);
        const isInside = box.left >= 0 && box.right <= plot.width && box.top >= 0 && box.bottom <= plot.height;
        if (!isInside || [...taken, ...dots].some((other) => this.overlap(box, other))) return;
        const cost = distance + 4 * bars.filter((bar) => this.overlap(box, bar)).length + place / 10;
        if (!best || cost < best.cost) best = { box, cost, isFar: distance > this.near };
      });
    }
    return best;
  },

  // Points with x, y, low and high in pixels and a text -> their names with a place each, the most crowded first.
  place(points, plot, widthOf) {
    const dots = points.map((point) => this.around(point, this.radius, this.radius));
    const bars = points.filter(({ low }) => low !== null).map(({ x, low, high }) => ({ left: x - 1, right: x + 1, top: high, bottom: low }));
    const room = (point) => Math.min(...points.filter((each) => each !== point).map((each) => Math.hypot(each.x - point.x, each.y - point.y)));
    const taken = [];
    return [...points].sort((one, other) => room(one) - room(other)).flatMap((point) => {
      const found = this.find(point, widthOf(point.text), { plot, taken, dots, bars });
      if (!found) return [];
      const { box, isFar } = found;
      taken.push(box);
      const end = { x: Math.min(Math.max(point.x, box.left), box.right), y: Math.min(Math.max(point.y, box.top), box.bottom) };
      return [{ text: point.text, left: box.left, middle: (box.top + box.bottom) / 2, x: point.x, y: point.y, toX: isFar ? end.x : point.x, toY: isFar ? end.y : point.y }];
    });
  },

  // A name without its middle where it is too long: names of models differ at their ends.
  fitting(text, widthOf) {
    const letters = [...text];
    const without = (n) => `${letters.slice(0, Math.ceil((letters.length - n) / 2)).join("")}…${letters.slice(Math.ceil((letters.length + n) / 2)).join("")}`;
    let shown = text;
    for (let n = 2; widthOf(shown) > this.longest && n < letters.length; n += 1) shown = without(n);
    return shown;
  },

  // What a chart needs for its names: texts and lines at pixels, of which there are none before it is drawn.
  layers(colour) {
    const at = (field) => ({ field, type: "quantitative", scale: null, axis: null });
    const of = (mark, encoding) => ({ data: { name: "names", values: [] }, mark: { ...mark, aria: false, tooltip: null }, encoding });
    return [
      of({ type: "rule", strokeWidth: 0.75, color: colour }, { x: at("x"), y: at("y"), x2: { field: "toX" }, y2: { field: "toY" } }),
      of({ type: "text", align: "left", baseline: "middle", fontSize: this.fontSize, style: "name" },
        { x: at("left"), y: at("middle"), text: { field: "text" } }),
    ];
  },

  // Places the names of a chart that is drawn, and again when its width changes.
  attach(view, rows, { x, y, low, high, name }) {
    const context = document.createElement("canvas").getContext("2d");
    context.font = `${this.fontSize}px ${getComputedStyle(document.documentElement).fontFamily}`;
    const widthOf = (text) => context.measureText(text).width + 2;
    const draw = () => {
      const [across, up] = [view.scale("x"), view.scale("y")];
      const height = (value) => (typeof value === "number" ? up(value) : null);
      const points = rows.map((row) => ({ x: across(row[x]), y: up(row[y]), low: height(row[low]), high: height(row[high]), text: this.fitting(row[name], widthOf) }));
      const plot = { width: view.signal("width"), height: view.signal("height") };
      return view.data("names", this.place(points, plot, widthOf)).runAsync();
    };
    view.addSignalListener("width", () => setTimeout(draw));
    return draw();
  },
};

// Draws the charts of a page from the specifications that stand in it, in the page's colours.
const charts = {
  views: [],
  chosen: {},

  colour: (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(),

  config(width) {
    const style = getComputedStyle(document.documentElement);
    const { colour } = this;
    const text = { labelColor: colour("ink"), titleColor: colour("soft"), titleFontWeight: 500 };
    const series = Array.from({ length: 8 }, (_, i) => colour(`series-${i + 1}`));
    return {
      background: "transparent",
      font: style.getPropertyValue("font-family"),
      view: { stroke: "transparent" },
      axis: {
        ...text, gridColor: colour("line"), domainColor: colour("line"), tickColor: colour("line"), labelSeparation: 8,
        labelFlush: false, // A number stands at its tick, at the ends too.
      },
      axisXQuantitative: { tickCount: Math.max(3, Math.min(8, Math.round(width / 100))) },
      legend: { ...text, columns: width < 480 ? 1 : 2 },
      text: { color: colour("ink") },
      point: { color: series[0] }, rule: { color: series[0] }, bar: { color: series[0] }, line: { color: series[0] },
      style: { alarm: { color: colour("bad") } },
      range: {
        category: series,
        heatmap: [colour("heat-low"), colour("heat-high")],
        diverging: [colour("heat-minus"), colour("heat-low"), colour("heat-high")],
      },
    };
  },

  // A row that stands for several models or judges is shown where one of them is chosen.
  isChosen(row) {
    return Object.entries(this.chosen).every(([column, values]) =>
      !values || !(column in row) || [row[column]].flat().some((value) => values.includes(value)));
  },

  // Text that Vega can use as a key and in an expression, and that looks the same: it trips over names that every
  // object has (__proto__, constructor) and over separators of lines.
  harmless(text) {
    const line = text.replace(/[\u0000-\u001f\u2028\u2029]/g, " ");
    return line in Object.prototype ? `${line}\u200b` : line;
  },

  // The chart of a place with the rows that are chosen; one with a line a name is as high as it has names.
  specification(place) {
    const raw = JSON.parse(place.querySelector("script").textContent);
    raw.data.values = raw.data.values.filter((row) => this.isChosen(row));
    const specification = JSON.parse(JSON.stringify(raw), (_, value) =>
      (typeof value === "string" ? this.harmless(value) : value));
    const rows = specification.data.values;
    this.leaveOutEmpty(specification);
    this.orderModels(specification, [...new Set(rows.map((row) => row.model))]);
    const { line, lineHeight, domain, zero, names: named } = specification.usermeta ?? {};
    if (domain) this.shareDomain(place, specification, domain, zero);
    if (named) specification.layer.push(...names.layers(this.colour("soft")));
    const lines = (name) => Math.max(1, new Set(rows.map((row) => row[name])).size);
    if (line) specification.height = [line].flat().reduce((height, name) => height * lines(name), lineHeight);
    return specification;
  },

  // A layer without a value on an axis of numbers, such as intervals where none is known, would look in vain for where
  // that axis ends.
  leaveOutEmpty(specification) {
    const { data: { values: rows }, layer: layers } = specification;
    if (!layers) return;
    const hasValues = ({ field, type }) => type !== "quantitative" || field === undefined ||
      rows.some((row) => typeof row[field] === "number");
    specification.layer = layers.filter(({ encoding = {} }) =>
      [encoding.x, encoding.y].filter(Boolean).every(hasValues));
  },

  // The charts of a figure have one axis, which fits what is chosen of all of them; with `zero` it begins there.
  shareDomain(place, specification, columns, zero) {
    const values = [...place.closest(".plots").querySelectorAll(".chart > script")]
      .map((script) => JSON.parse(script.textContent))
      .filter((other) => String(other.usermeta?.domain) === String(columns))
      .flatMap((other) => other.data.values.filter((row) => this.isChosen(row)))
      .flatMap((row) => columns.map((column) => row[column]).filter((value) => typeof value === "number"));
    if (!values.length) return;
    if (zero) values.push(0);
    const domain = [Math.min(...values), Math.max(...values)];
    const side = zero && domain[0] === 0 ? 0 : 8;
    for (const { encoding } of specification.layer) {
      encoding.x.scale = { ...encoding.x.scale, domain, nice: false, zero: false, padding: side };
    }
  },

  // A model has the same place, colour and sign in all charts of a page: those of its place among the chosen ones.
  orderModels(specification, present) {
    const boxes = [...document.querySelectorAll("#choice input[name=model]:checked")];
    const order = boxes.map((box) => this.harmless(box.value));
    const shown = order.filter((name) => present.includes(name));
    for (const { encoding = {} } of [specification, ...(specification.layer ?? [])]) {
      for (const [channel, definition] of Object.entries(encoding)) {
        if (definition?.field !== "model") continue;
        if (channel === "color" || channel === "shape") {
          definition.scale = { ...definition.scale, domain: order };
          definition.legend = { ...definition.legend, values: shown };
        } else if (channel === "x" || channel === "yOffset") {
          definition.sort = shown;
        }
      }
    }
  },

  showsAnything({ data: { values: rows }, usermeta }) {
    return rows.length > 0 && (usermeta?.needed ?? []).every((columns) =>
      rows.some((row) => columns.some((column) => (row[column] ?? null) !== null)));
  },

  async draw(place) {
    const target = place.querySelector(".drawing") ?? place.appendChild(document.createElement("div"));
    target.className = "drawing";
    const specification = this.specification(place);
    // A chart of which nothing is chosen, such as that of another judge, is not shown, and neither is one without values.
    const isEmpty = !this.showsAnything(specification);
    place.closest(".plot")?.toggleAttribute("hidden", isEmpty);
    if (isEmpty) return;
    // The interpreter instead of compiled functions: the page's policy forbids the evaluation of text.
    const { view } = await vegaEmbed(target, specification, {
      ast: true, renderer: "svg", actions: false, defaultStyle: false, config: this.config(place.clientWidth),
      tooltip: { disableDefaultStyle: true, theme: "page" },
    });
    this.views.push(view);
    if (specification.usermeta?.names) await names.attach(view, specification.data.values, specification.usermeta.names);
    // What has no words of its own, such as a line that helps the eye, is nothing to a screen reader.
    target.querySelectorAll('[role="graphics-symbol"]:not([aria-label])').forEach((mark) => {
      mark.removeAttribute("role");
      mark.removeAttribute("aria-roledescription");
    });
  },

  // Draws again; a later call ends an earlier one.
  async drawAll() {
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.views.splice(0).forEach((view) => view.finalize());
    for (const place of document.querySelectorAll(".chart")) {
      if (turn !== this.turn) return;
      await this.draw(place);
    }
    document.documentElement.dataset.drawn = "yes";
  },

  choose(chosen) {
    this.chosen = chosen;
    return this.drawAll();
  },
};

document.addEventListener("DOMContentLoaded", () => {
  theme.listeners.push(() => charts.drawAll());
  choice.listeners.push((chosen) => charts.choose(chosen));
});
