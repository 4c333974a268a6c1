// Draws the charts of a page from the specifications that stand in it, in the page's colours.
"use strict";

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
    const { line, lineHeight, domain, zero } = specification.usermeta ?? {};
    if (domain) this.shareDomain(place, specification, domain, zero);
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

  // Names beside the points of a chart: none covers another one, a point or, where there is room, an interval.
  addNames(vega, { name }) {
    const of = (type) => vega.marks.filter((mark) => mark.type === type).map((mark) => mark.name);
    const [points] = of("symbol");
    const sides = ["right", "left", "top", "bottom", "top-right", "bottom-right", "top-left", "bottom-left"];
    const distances = [3, 8, 16, 28];
    vega.marks.push({
      type: "text", from: { data: points }, interactive: false, aria: false,
      encode: { enter: { text: { field: `datum["${name}"]` }, fontSize: { value: 11 }, limit: { value: 160 }, fill: { value: this.colour("ink") } } },
      transform: [{
        type: "label", size: { signal: "[width, height]" }, avoidMarks: of("rule"),
        anchor: distances.flatMap(() => sides), offset: distances.flatMap((distance) => sides.map(() => distance)),
      }],
    });
    return vega;
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
      patch: (vega) => (specification.usermeta?.names ? this.addNames(vega, specification.usermeta.names) : vega),
    });
    this.views.push(view);
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
