// Draws the charts of a page from the specifications that stand in it, in the page's colours.
"use strict";

const charts = {
  views: [],
  chosen: {},

  colour(name) {
    this.probe ??= document.body.appendChild(make("i", { hidden: true }));
    this.probe.style.color = `var(--${name})`;
    return getComputedStyle(this.probe).color;
  },

  config(width) {
    const [ink, soft, line] = ["ink", "soft", "line"].map((name) => this.colour(name));
    const series = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => this.colour(`series-${number}`));
    const text = { labelColor: ink, titleColor: soft, titleFontWeight: 500 };
    const heat = (...names) => names.map((name) => this.colour(`heat-${name}`));
    return {
      background: "transparent",
      font: getComputedStyle(document.body).fontFamily,
      view: { stroke: "transparent" },
      // A number stands at its tick, at the ends too.
      axis: { ...text, gridColor: line, domainColor: line, tickColor: line, labelSeparation: 8, labelFlush: false },
      axisXQuantitative: { tickCount: Math.max(3, Math.min(8, Math.round(width / 100))) },
      legend: { ...text, columns: width < 480 ? 1 : 2 },
      text: { color: ink },
      ...Object.fromEntries(["point", "rule", "bar", "line"].map((mark) => [mark, { color: series[0] }])),
      style: { alarm: { color: this.colour("bad") } },
      range: { category: series, heatmap: heat("low", "high"), diverging: heat("minus", "low", "high") },
    };
  },

  // Text that Vega can use as a key and in an expression, and that looks the same: it trips over names that every
  // object has (__proto__, constructor) and over separators of lines.
  harmless(text) {
    const line = text.replace(/[\u0000-\u001f\u2028\u2029]/g, " ");
    return line in Object.prototype ? `${line}\u200b` : line;
  },

  // A chart as it is declared, with the rows that are chosen: those of several models or judges where one of them is.
  declared(place) {
    const text = place.querySelector("script").textContent;
    const found = JSON.parse(text, (_, value) => (typeof value === "string" ? this.harmless(value) : value));
    found.data.values = found.data.values.filter((row) => Object.entries(this.chosen).every(([column, names]) =>
      !names || !(column in row) || [row[column]].flat().some((name) => names.includes(name))));
    return found;
  },

  // The chart of a place; one with a line a name is as high as it has names.
  specification(place) {
    const found = this.declared(place);
    const { data: { values: rows }, usermeta: { line, lineHeight, domain, zero } } = found;
    this.leaveOutEmpty(found);
    this.orderModels(found, new Set(rows.map((row) => row.model)));
    if (domain) this.shareDomain(place, found, domain, zero);
    const lines = (name) => Math.max(1, new Set(rows.map((row) => row[name])).size);
    if (line) found.height = [line].flat().reduce((height, name) => height * lines(name), lineHeight);
    return found;
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
    const values = [...place.closest(".plots").querySelectorAll(".chart")].map((chart) => this.declared(chart))
      .filter(({ usermeta }) => String(usermeta.domain) === String(columns))
      .flatMap((other) => other.data.values.flatMap((row) => columns.map((column) => row[column])))
      .filter((value) => typeof value === "number");
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
    const order = choice.boxes().filter((box) => box.checked).map((box) => this.harmless(box.value));
    const shown = order.filter((name) => present.has(name));
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
      encode: { enter: {
        text: { field: `datum["${name}"]` }, fontSize: { value: 11 }, limit: { value: 160 }, fill: { value: this.colour("ink") },
      } },
      transform: [{
        type: "label", size: { signal: "[width, height]" }, avoidMarks: of("rule"),
        anchor: distances.flatMap(() => sides), offset: distances.flatMap((distance) => sides.map(() => distance)),
      }],
    });
    return vega;
  },

  async draw(place) {
    const target = place.querySelector(".drawing") ?? place.appendChild(make("div", { class: "drawing" }));
    const specification = this.specification(place);
    // A chart of which nothing is chosen, such as that of another judge, is not shown, and neither is one without values.
    const { data: { values: rows }, usermeta: { needed, names } } = specification;
    const isEmpty = !rows.length || !needed.every((columns) =>
      rows.some((row) => columns.some((column) => (row[column] ?? null) !== null)));
    place.closest(".plot")?.toggleAttribute("hidden", isEmpty);
    if (isEmpty) return;
    // The interpreter instead of compiled functions: the page's policy forbids the evaluation of text.
    const { view } = await vegaEmbed(target, specification, {
      ast: true, renderer: "svg", actions: false, defaultStyle: false, config: this.config(place.clientWidth),
      tooltip: { disableDefaultStyle: true, theme: "page" },
      patch: (vega) => (names ? this.addNames(vega, names) : vega),
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
    this.chosen = Object.fromEntries(Object.entries(chosen).map(([kind, names]) => [kind, names?.map(this.harmless)]));
    return this.drawAll();
  },
};

document.addEventListener("DOMContentLoaded", () => {
  dark.addEventListener("change", () => charts.drawAll());
  choice.listeners.push((chosen) => charts.choose(chosen));
});
