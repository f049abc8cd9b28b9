// Scores of a view that has a shape, as a grid of colours; leading features are framed. A pointer or
// the arrow keys read single cells.

import { make, mark, say } from "./elements.js";
import { decimal } from "./numbers.js";

const SIZE = 416;
const STOPS = ["--heat-0", "--heat-1", "--heat-2", "--heat-3"];
const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** Rows and columns; with more than two axes, all but the first are side by side. */
export function grid(shape) {
  if (shape.length === 1) return [1, shape[0]];
  return [shape[0], shape.slice(1).reduce((product, length) => product * length, 1)];
}

/** Position of a feature: [row, column], or one index for each axis. */
export function spot(index, shape) {
  const places = [];
  for (const length of [...shape].reverse()) {
    places.unshift(index % length);
    index = Math.floor(index / length);
  }
  return `[${places.join(", ")}]`;
}

export class HeatMap {
  constructor() {
    this.canvas = make("canvas", { role: "img", tabindex: "0" });
    this.readout = make("p", { class: "readout", "aria-live": "polite" });
    this.low = make("span");
    this.high = make("span");
    this.legend = make("p", { class: "legend", "aria-hidden": "true" },
      this.low, make("span", { class: "ramp" }), this.high);
    this.element = make("figure", { class: "heat" }, this.canvas, this.legend, this.readout);
    this.cursor = null;
    this.canvas.addEventListener("keydown", (event) => this.pressed(event));
    this.canvas.addEventListener("pointermove", (event) => this.pointed(event));
    for (const end of ["pointerleave", "blur"]) {
      this.canvas.addEventListener(end, () => this.look(null));
    }
    // Colours of the current scheme, light or dark.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  show(view) {
    const same = this.view?.scores.length === view.scores.length
      && this.view.scores.every((score, index) => score === view.scores[index])
      && this.view.features.every(({ index }, place) => index === view.features[place]?.index);
    this.view = view;
    [this.rows, this.columns] = grid(view.shape);
    this.element.classList.toggle("wide", this.columns > 2 * this.rows);
    if (!same) this.paint();
    const best = view.scores.indexOf(Math.max(...view.scores));
    mark(this.canvas, "aria-label",
      `Scores of ${view.name} as a grid of ${this.rows} by ${this.columns}, highest ${this.cell(best)}. `
      + "The arrow keys read the cells.");
    say(this.low, decimal(Math.min(...view.scores)));
    say(this.high, decimal(Math.max(...view.scores)));
  }

  cell(index) {
    return `${decimal(this.view.scores[index])} at ${spot(index, this.view.shape)}`;
  }

  paint() {
    if (!this.view?.scores) return;
    const { scores, features } = this.view;
    const side = Math.max(1, Math.floor(SIZE / Math.max(this.rows, this.columns)));
    const gap = side >= 12 ? 2 : 0;
    this.canvas.width = this.columns * side;
    this.canvas.height = this.rows * side;
    const context = this.canvas.getContext("2d");
    const style = getComputedStyle(document.documentElement);
    const stops = STOPS.map((name) => channels(style.getPropertyValue(name)));
    const [low, high] = [Math.min(...scores), Math.max(...scores)];
    const place = (index) => [(index % this.columns) * side, Math.floor(index / this.columns) * side];
    scores.forEach((score, index) => {
      context.fillStyle = mixed(stops, high > low ? (score - low) / (high - low) : 0.5);
      context.fillRect(...place(index), side - gap, side - gap);
    });
    context.lineWidth = Math.max(1, Math.min(4, side / 10));
    const framed = side >= 6 ? features.map(({ index }) => index) : [];
    const frame = (index, colour) => {
      const inset = context.lineWidth / 2;
      const [x, y] = place(index);
      context.strokeStyle = style.getPropertyValue(colour);
      context.strokeRect(x + inset, y + inset, side - gap - 2 * inset, side - gap - 2 * inset);
    };
    for (const index of framed) frame(index, "--frame");
    if (this.cursor !== null) {
      context.lineWidth = Math.max(2, context.lineWidth * 1.5);
      frame(this.cursor, "--focus");
    }
  }

  look(index) {
    if (index === this.cursor) return;
    this.cursor = index;
    this.paint();
    say(this.readout, index === null ? "" : `${this.cell(index)}, feature ${index}`);
  }

  pressed(event) {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    if (this.cursor === null) return this.look(this.view.features[0].index);
    const within = (value, count) => Math.max(0, Math.min(count - 1, value));
    const row = within(Math.floor(this.cursor / this.columns) + move[0], this.rows);
    const column = within((this.cursor % this.columns) + move[1], this.columns);
    return this.look(row * this.columns + column);
  }

  pointed(event) {
    const box = this.canvas.getBoundingClientRect();
    const within = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    const row = within((event.clientY - box.top) / box.height, this.rows);
    const column = within((event.clientX - box.left) / box.width, this.columns);
    this.look(row * this.columns + column);
  }
}

/** Red, green and blue of "#rrggbb". */
function channels(colour) {
  const digits = colour.trim().slice(1);
  return [0, 2, 4].map((start) => parseInt(digits.slice(start, start + 2), 16));
}

/** The colour at a fraction of the gradient. */
function mixed(stops, along) {
  const place = along * (stops.length - 1);
  const index = Math.min(stops.length - 2, Math.floor(place));
  const rest = place - index;
  const colour = stops[index].map((low, channel) =>
    Math.round(low + rest * (stops[index + 1][channel] - low)));
  return `rgb(${colour.join(",")})`;
}
