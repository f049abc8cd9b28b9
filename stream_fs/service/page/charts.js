// Small drawings, each with an equivalent text.

import { draw, make, mark, say } from "./elements.js";

const WIDTH = 120;
const HEIGHT = 30;

/** A line over the sequence of rankings. */
export class Sparkline {
  constructor() {
    this.area = draw("path", { class: "area" });
    this.line = draw("path", { class: "line" });
    this.dot = draw("path", { class: "dot" });
    this.title = draw("title");
    this.element = draw("svg", {
      class: "spark", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none",
    }, this.title, this.area, this.line, this.dot);
  }

  /** `values` may contain nulls; the scale is from 0 to `most`. */
  show(what, positions, values, most, format) {
    const points = positions.map((x, index) => [x, values[index]]).filter(([, y]) => y !== null);
    this.describe(what, points, format);
    const first = positions[0];
    const span = Math.max(1, positions[positions.length - 1] - first);
    const at = ([x, y]) => {
      const across = positions.length > 1 ? 3 + (WIDTH - 6) * ((x - first) / span) : WIDTH - 3;
      return `${across.toFixed(2)} ${(HEIGHT - 3 - (HEIGHT - 6) * Math.min(1, y / (most || 1))).toFixed(2)}`;
    };
    const path = points.map(at).join("L");
    mark(this.line, "d", path ? `M${path}` : "");
    mark(this.dot, "d", points.length ? `M${at(points[points.length - 1])}h0.01` : "");
    const [left, right] = [points[0], points[points.length - 1]];
    mark(this.area, "d", points.length > 1
      ? `M${path}L${at([right[0], 0])}L${at([left[0], 0])}Z` : "");
  }

  describe(what, points, format) {
    const values = points.map(([, y]) => y);
    const text = values.length === 0
      ? `${what}: no values yet`
      : `${what}, rankings ${points[0][0]} to ${points[points.length - 1][0]}: now `
        + `${format(values[values.length - 1])}, lowest ${format(Math.min(...values))}, `
        + `highest ${format(Math.max(...values))}`;
    say(this.title, text);
    mark(this.element, "aria-label", text);
  }
}

/** A fill level, with its numbers. */
export class Gauge {
  constructor(label) {
    this.filled = make("span");
    // Not the element `meter`, which every browser draws differently.
    this.meter = make("span", { class: "bar", role: "meter", "aria-label": label }, this.filled);
    this.text = make("span");
    this.element = make("span", { class: "gauge" }, this.meter, this.text);
  }

  show(value, most, text) {
    const shown = Math.min(value, most);
    mark(this.meter, "aria-valuemin", 0);
    mark(this.meter, "aria-valuemax", most);
    mark(this.meter, "aria-valuenow", shown);
    this.filled.style.width = `${(100 * shown) / most}%`;
    say(this.text, text);
  }
}
