// Draws the charts that a page declares (`kinds.js`), in the page's own colours, dark or light.
"use strict";

const charts = {
  views: [], // What is drawn.
  without: {}, // Column -> the names that the user left out.

  config(width) {
    const series = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `var(--series-${number})`);
    const line = "var(--line)";
    const text = { labelColor: "var(--ink)", titleColor: "var(--soft)", titleFontWeight: 500 };
    return {
      background: "transparent", font: getComputedStyle(document.body).fontFamily, view: { stroke: "transparent" },
      // Labels stay centred on their ticks, also at the ends of an axis.
      axis: { ...text, gridColor: line, domainColor: line, tickColor: line, labelSeparation: 8, labelFlush: false },
      axisXQuantitative: { tickCount: Math.max(3, Math.min(8, Math.round(width / 100))) },
      legend: { ...text, columns: width < 480 ? 1 : 2, labelLimit: Math.max(60, Math.min(220, width - 188)) },
      // Screen readers read each row once, from the mark with its tooltip.
      mark: { color: series[0] }, rule: { color: series[0], aria: false }, text: { color: "var(--ink)", aria: false },
      line: { aria: false }, range: { category: series }, padding: { left: 5, top: 5, right: 16, bottom: 5 },
    };
  },

  // Returns a text that looks the same and that Vega can use as a key and in an expression: Vega fails on line
  // separators, and on names that every object has (__proto__, constructor).
  harmless(text) {
    const line = text.replace(/[\u0000-\u001f\u2028\u2029]/g, " ");
    return line in Object.prototype ? `${line}\u200b` : line;
  },

  // Returns a declared chart with the chosen rows. A row of several models or judges is chosen with any of them.
  declared(container) {
    const text = container.querySelector("script").textContent;
    const chart = JSON.parse(text, (_, value) => (typeof value === "string" ? this.harmless(value) : value));
    const isChosen = (row) => Object.entries(this.without).every(([column, names]) =>
      !(column in row) || [row[column]].flat().some((name) => !names.includes(name)));
    return { ...chart, all: chart.rows, rows: chart.rows.filter(isChosen) };
  },

  // Returns the specification of a chart; `peers` are the chosen rows of all charts of the figure that show the same
  // value, and `all` are the others too.
  specified(container, chart) {
    const containers = [...container.closest(".plots").querySelectorAll(".chart")];
    const isPeer = ({ kind, value }) => kind === chart.kind && value === chart.value;
    const peerCharts = containers.map((element) => this.declared(element)).filter(isPeer);
    const peers = peerCharts.flatMap(({ rows }) => rows);
    const all = peerCharts.flatMap((peerChart) => peerChart.all);
    const drawn = kinds[chart.kind]({ ...chart, peers, all });
    const size = { width: "container", autosize: { type: "fit-x", contains: "padding" } };
    return JSON.parse(JSON.stringify({ data: { values: chart.rows }, ...size, ...drawn }));
  },

  // Adds names beside the points of a chart, so that none covers another name or a point, or, if possible, an interval.
  addNames(vega, name) {
    const marksOf = (type) => vega.marks.filter((mark) => mark.type === type).map((mark) => mark.name);
    const sides = ["right", "left", "top", "bottom", "top-right", "bottom-right", "top-left", "bottom-left"];
    const distances = [3, 8, 16, 28];
    const text = { field: `datum["${name}"]` };
    const enter = { text, fontSize: { value: 11 }, limit: { value: 160 }, fill: { value: "var(--ink)" } };
    vega.marks.push({
      type: "text", from: { data: marksOf("symbol")[0] }, interactive: false, aria: false, encode: { enter },
      transform: [{
        type: "label", size: { signal: "[max(1, width), max(1, height)]" }, avoidMarks: marksOf("rule"),
        anchor: distances.flatMap(() => sides), offset: distances.flatMap((distance) => sides.map(() => distance)),
      }],
    });
    return vega;
  },

  async draw(container) {
    const target = container.querySelector(".drawing") ?? container.appendChild(make("div", { class: "drawing" }));
    const chart = this.declared(container);
    // A chart without chosen rows, such as that of another judge, is hidden, and so is a chart without values.
    const isKnown = (column) => !column || chart.rows.some((row) => (row[column] ?? null) !== null);
    const isEmpty = !chart.rows.length || ![chart.value, chart.x, chart.y].every(isKnown);
    container.closest(".plot").hidden = isEmpty;
    if (isEmpty) return;
    const { names, ...specification } = this.specified(container, chart);
    // With Vega's interpreter (`ast`), because the page's policy forbids the evaluation of text.
    const { view } = await vegaEmbed(target, specification, {
      ast: true, mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false,
      config: this.config(container.clientWidth),
      tooltip: { disableDefaultStyle: true, theme: "page" },
      patch: (vega) => (names ? this.addNames(vega, names) : vega),
    });
    this.views.push(view);
  },

  // Draws all charts again; a later call ends an earlier one.
  async drawAll(without) {
    const pairs = Object.entries(without).map(([kind, labels]) => [kind, labels.map(this.harmless)]);
    const names = Object.fromEntries(pairs);
    this.without = names;
    this.views.splice(0).forEach((view) => view.finalize());
    for (const container of document.querySelectorAll(".chart")) {
      await this.draw(container);
      if (this.without !== names) return;
    }
    document.documentElement.dataset.rendered = "yes";
  },
};

document.addEventListener("choice", ({ detail }) => charts.drawAll(detail));
