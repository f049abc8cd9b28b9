// The newest rankings: one block each, with one card for each view.

import { Sparkline } from "./charts.js";
import { keep, make, mark, say } from "./elements.js";
import { HeatMap, spot } from "./heatmap.js";
import { ago, clock, counted, decimal, share, whole } from "./numbers.js";

const title = (ranking) =>
  ranking.scope === "merged" ? "Whole stream" : `${ranking.topic} / ${ranking.partition}`;

export const rankingKey = (ranking) =>
  ranking.scope === "merged" ? "merged" : `${ranking.topic}/${ranking.partition}`;

export class Rankings {
  constructor(list, none) {
    this.list = list;
    this.none = none;
  }

  show(status) {
    this.none.hidden = status.rankings.length > 0;
    keep(this.list, status.rankings, rankingKey, (_, index) => new Ranking(index === 0),
      (part, ranking) => part.show(ranking, status.time));
  }
}

class Ranking {
  constructor(open) {
    this.title = make("h3");
    this.about = make("span", { class: "note" });
    this.weights = make("span", { class: "weights" });
    this.views = make("div", { class: "views" });
    this.foot = make("p", { class: "foot" });
    this.element = make("details", { class: "block ranking" },
      make("summary", {}, this.title, this.about, this.weights), this.views, this.foot);
    this.element.open = open;
    // Collapsed blocks are not drawn.
    this.element.addEventListener("toggle", () => this.fill());
  }

  show(ranking, now) {
    this.ranking = ranking;
    mark(this.element, "id", `ranking-${rankingKey(ranking)}`);
    say(this.title, title(ranking));
    const age = ago((now - ranking.time) / 1000);
    say(this.about, `ranking ${whole(ranking.sequence)} · ${counted(ranking.records, "record")} · ${age}`);
    say(this.weights, [...ranking.views].sort((one, other) => other.weight - one.weight).slice(0, 3)
      .map((view) => `${view.name} ${decimal(view.weight)}`).join(" · "));
    say(this.foot, `Published at ${clock(ranking.time)} · preset ${ranking.preset}, score `
      + `${ranking.score}, model ${ranking.model} · a feature that repeats a better one ranks lower`);
    this.fill();
  }

  fill() {
    if (!this.element.open) return;
    const { ranking } = this;
    const heaviest = Math.max(...ranking.views.flatMap((view) => view.history.weight));
    keep(this.views, ranking.views, (view) => view.name, () => new View(),
      (part, view) => part.show(view, ranking.history.sequence, heaviest));
  }
}

class View {
  constructor() {
    this.name = make("h4");
    this.size = make("span", { class: "note" });
    this.trends = { weight: new Trend(), missing: new Trend(), overlap: new Trend() };
    this.imputed = make("p", { class: "label imputed" });
    this.features = make("ol", { class: "features" });
    this.leaders = make("p", { class: "label" });
    this.heat = new HeatMap();
    this.body = make("div", { class: "view-body" },
      this.heat.element, make("div", {}, this.leaders, this.features));
    this.element = make("article", { class: "view" },
      make("header", {}, this.name, this.size),
      make("div", { class: "trends" }, ...Object.values(this.trends).map((trend) => trend.element)),
      this.imputed,
      this.body);
  }

  show(view, sequence, heaviest) {
    say(this.name, view.name);
    const shape = view.shape ? ` · ${view.shape.join(" × ")}` : "";
    say(this.size, `${counted(view.dimension, "feature")}${shape}`);
    const { history } = view;
    const { weight, missing, overlap } = this.trends;
    weight.show("Weight", decimal(view.weight), sequence, history.weight, heaviest, decimal);
    missing.show("Missing", share(view.missing), sequence, history.missing, 1, share);
    // A merged ranking has no chunk that rows could be missing from.
    missing.element.hidden = history.missing.every((value) => value === null);
    this.imputed.hidden = !view.imputed;
    if (view.imputed) {
      say(this.imputed, `${counted(view.imputed.rows, "row")} imputed · weight n/j ${decimal(view.imputed.weight)}`);
    }
    overlap.show(`Top ${view.top} stable`, share(view.overlap), sequence, history.overlap, 1, share);
    this.heat.element.hidden = view.scores === null;
    if (view.scores !== null) this.heat.show(view);
    say(this.leaders, `First ${whole(view.features.length)} by rank`);
    const highest = Math.max(...view.features.map(({ relevance }) => relevance)) || 1;
    keep(this.features, view.features, (_, place) => place, feature, (part, item) => {
      const plain = view.shape ? spot(item.index, view.shape) : `feature ${item.index}`;
      say(part.name, item.name ?? plain);
      mark(part.element, "data-index", item.index);
      mark(part.name, "title", `${item.name ?? plain} (feature ${item.index})`);
      part.bar.style.width = `${Math.max(0.5, 100 * item.relevance / highest)}%`;
      say(part.value, decimal(item.relevance));
    });
  }
}

function feature() {
  const [name, bar, value] = [make("span", { class: "name" }), make("span"), make("span", { class: "value" })];
  const track = make("span", { class: "bar", "aria-hidden": "true" }, bar);
  return { element: make("li", {}, name, track, value), name, bar, value };
}

/** A value and its history. */
class Trend {
  constructor() {
    this.label = make("span", { class: "label" });
    this.value = make("span", { class: "trend-value" });
    this.spark = new Sparkline();
    this.element = make("div", { class: "trend" }, this.label, this.value, this.spark.element);
  }

  show(label, text, positions, values, most, format) {
    say(this.label, label);
    say(this.value, text);
    this.spark.show(label, positions, values, most, format);
  }
}
