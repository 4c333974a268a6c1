// Draws the charts of a page from the specifications that stand in it, in the page's colours.
"use strict";

const charts = {
  views: [],
  chosen: {},

  config() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const text = { labelColor: colour("ink"), titleColor: colour("soft"), titleFontWeight: 500 };
    const series = Array.from({ length: 8 }, (_, i) => colour(`series-${i + 1}`));
    return {
      background: "transparent",
      font: style.getPropertyValue("font-family"),
      view: { stroke: "transparent" },
      axis: { ...text, gridColor: colour("line"), domainColor: colour("line"), tickColor: colour("line") },
      legend: text,
      text: { color: colour("ink") },
      point: { color: series[0] }, rule: { color: series[0] }, bar: { color: series[0] }, line: { color: series[0] },
      range: { category: series },
    };
  },

  // The chart of a place with the rows that are chosen; one with a line a name is as high as it has names.
  specification(place) {
    const specification = JSON.parse(place.querySelector("script").textContent);
    const rows = specification.data.values.filter((row) => Object.entries(this.chosen)
      .every(([column, values]) => !values || !(column in row) || values.includes(row[column])));
    specification.data.values = rows;
    const { line, lineHeight } = specification.usermeta ?? {};
    if (line) specification.height = lineHeight * Math.max(1, new Set(rows.map((row) => row[line])).size);
    return specification;
  },

  async draw(place) {
    const target = place.querySelector(".drawing") ?? place.appendChild(document.createElement("div"));
    target.className = "drawing";
    // The interpreter instead of compiled functions: the page's policy forbids the evaluation of text.
    const { view } = await vegaEmbed(target, this.specification(place), {
      ast: true, renderer: "svg", actions: false, defaultStyle: false, config: this.config(),
      tooltip: { disableDefaultStyle: true, theme: "page" },
    });
    this.views.push(view);
  },

  // Draws anew; a later call ends an earlier one.
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
});
