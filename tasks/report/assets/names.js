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
