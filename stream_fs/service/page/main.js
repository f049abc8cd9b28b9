// Fetches the status every two seconds and shows it. All content of the page comes from it.

import { Gauge } from "./charts.js";
import { keep, make, mark, say } from "./elements.js";
import { ago, bytes, clock, counted, duration, rate, whole } from "./numbers.js";
import { Rankings } from "./rankings.js";
import { reasonText, serviceState, stateKind, stateSummary, stateText } from "./states.js";
import { Table } from "./table.js";

const INTERVAL = 2000;
const MAX_INTERVAL = 30000;
const TIMEOUT = 10000;
const FEW_PARTITIONS = 8;

const find = (id) => document.getElementById(id);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

// --- parts of the page ------------------------------------------------------------------------

const gauges = new WeakMap();

function fillChunk(cell, { chunk }) {
  if (!gauges.has(cell)) {
    gauges.set(cell, new Gauge("Good records in the open chunk"));
    cell.append(gauges.get(cell).element);
  }
  const { waiting, size } = chunk ?? { waiting: 0, size: 1 };
  gauges.get(cell).show(waiting, size, chunk ? `${whole(waiting)} / ${whole(size)}` : "–");
}

function fillPlace(cell, row) {
  if (!cell.firstChild) cell.append(make("a"));
  const key = `${row.topic}/${row.partition}`;
  mark(cell.firstChild, "href", `#ranking-${encodeURIComponent(key)}`);
  say(cell.firstChild, `${row.topic} / ${row.partition}`);
}

function fillState(cell, row) {
  if (!cell.firstChild) cell.append(make("span", { class: "state" }), make("span", { class: "reason" }));
  const [state, reason] = cell.children;
  mark(state, "data-kind", stateKind(row.state));
  const left = row.behind ? `, ${counted(row.behind, "chunk")} left` : "";
  say(state, stateText(row.state) + left);
  say(reason, row.own ?? "");
}

function fillReason(cell, row) {
  if (!cell.firstChild) cell.append(make("code"), make("span", { class: "reason" }));
  say(cell.children[0], row.reason);
  say(cell.children[1], reasonText(row.reason));
}

const bad = (row) => sum(Object.values(row.records.bad));

const partitions = new Table(find("partitions-table"), "The partitions of this process", [
  ["Partition", null, { head: true, fill: fillPlace }],
  ["State", null, { fill: fillState }],
  ["Records", (row) => whole(row.records.good + bad(row)), { number: true }],
  ["Bad", (row) => whole(bad(row)), { number: true }],
  ["Rate", (row) => rate(row.records.rate), { number: true }],
  ["Chunk", null, { fill: fillChunk }],
  ["Lag", (row) => whole(row.lag), { number: true }],
  ["Ranking", (row) => whole(row.sequence), { number: true }],
  ["Offsets", (row) => (row.commit ? `${row.commit.offsets.from}–${row.commit.offsets.next}` : "–"), { number: true }],
  ["Last commit", (row) => (row.commit ? ago(row.commit.age_seconds) : "–"), { number: true }],
  ["Snapshot", (row) => (row.snapshot ? `${row.snapshot.sequence}${row.snapshot.bytes ? `, ${bytes(row.snapshot.bytes)}` : ""}` : "–"), { number: true }],
], (row) => `${row.topic}/${row.partition}`);

const letters = new Table(find("letters-table"), "Dead letters by reason", [
  ["Reason", null, { head: true, fill: fillReason }],
  ["Last hour", (row) => whole(row.last_hour), { number: true }],
  ["Total", (row) => whole(row.total), { number: true }],
  ["Last seen", (row) => clock(row.time)],
  ["In", (row) => `${row.topic} / ${row.partition}, offsets ${row.offsets.from}–${row.offsets.next}`],
], (row) => row.reason);

const rankings = new Rankings(find("rankings-list"), find("rankings-none"));

// Partitions of this process, out of those of the stream where their number is known.
function partitionsHere({ partitions, stream_partitions: total }) {
  const here = whole(partitions.length);
  return total ? `${here} of ${whole(total)}` : here;
}

function figures(status) {
  const records = status.partitions.map((row) => row.records.good + bad(row));
  const lags = status.partitions.map((row) => row.lag).filter((lag) => lag !== null);
  const [last] = status.partitions.filter((row) => row.commit)
    .sort((one, other) => one.commit.age_seconds - other.commit.age_seconds);
  return [
    ["Partitions here", partitionsHere(status), stateSummary(status.partitions) || "none yet"],
    ["Records", whole(sum(records)), rate(sum(status.partitions.map((row) => row.records.rate)))],
    ["Lag", lags.length ? whole(sum(lags)) : "–", "records not read yet"],
    ["Last commit", last ? ago(last.commit.age_seconds) : "–",
      last ? `${last.topic} / ${last.partition}` : "none yet"],
    ["Dead letters", whole(sum(status.dead_letters.map((row) => row.total))),
      `${whole(sum(status.dead_letters.map((row) => row.last_hour)))} in the last hour`],
  ];
}

function figure([label]) {
  const [value, more] = [make("dd", { class: "value" }), make("dd", { class: "more" })];
  return { element: make("div", {}, make("dt", {}, label), value, more), value, more };
}

let opened = false;

function show(status) {
  const [kind, text] = serviceState(status);
  document.title = `${status.stream}: ${text.toLowerCase()}`;
  say(find("stream"), status.stream);
  say(find("version"), status.version);
  mark(find("state"), "data-kind", kind);
  say(find("state"), text);
  say(find("uptime"), duration(status.uptime_seconds));
  say(find("time"), clock(status.time));
  mark(find("time"), "datetime", new Date(status.time).toISOString());
  notice(kind, status.health.reason ?? "");
  keep(find("figures"), figures(status), ([label]) => label, figure, (part, [, value, more]) => {
    say(part.value, value);
    say(part.more, more);
  });
  if (!opened && status.partitions.length) {
    find("partitions").open = status.partitions.length <= FEW_PARTITIONS;
    opened = true;
  }
  say(find("partitions-states"), stateSummary(status.partitions) || "none yet");
  // A reason that all partitions share is shown once, in the notice.
  const common = status.health.reason ?? "";
  partitions.show(status.partitions.map((row) =>
    ({ ...row, own: row.reason !== null && common.includes(row.reason) ? null : row.reason })));
  rankings.show(status);
  find("letters-none").hidden = status.dead_letters.length > 0;
  letters.show(status.dead_letters);
}

function notice(kind, text) {
  const place = find("notice");
  mark(place, "data-kind", kind);
  place.hidden = text === "";
  say(place, text && text[0].toUpperCase() + text.slice(1));
}

// A link to a ranking expands it.
function follow() {
  const target = find(decodeURIComponent(location.hash.slice(1)));
  if (target?.tagName !== "DETAILS") return;
  target.open = true;
  target.querySelector("summary").focus();
}
addEventListener("hashchange", follow);

// --- requests ---------------------------------------------------------------------------------

let [version, answered, failures, timer, requesting] = [null, null, 0, undefined, false];

async function request() {
  const answer = await fetch("api/status", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
  if (!answer.ok) throw new Error(`HTTP status ${answer.status}`);
  return answer.json();
}

function unanswered(delay) {
  document.body.classList.add("old");
  document.title = "Not up to date";
  const since = answered === null ? "The service does not answer" : `Not up to date: the service has not answered since ${clock(answered)}`;
  notice("bad", `${since}. Retrying every ${duration(delay / 1000)}.`);
}

async function refresh() {
  clearTimeout(timer);
  if (requesting || document.hidden) return;
  requesting = true;
  const began = performance.now();
  let status = null;
  try {
    status = await request();
  } catch {
    failures += 1;
  }
  requesting = false;
  // A slow request is repeated less often.
  const interval = Math.max(INTERVAL, 5 * (performance.now() - began));
  const delay = Math.min(MAX_INTERVAL, status ? interval : INTERVAL * 2 ** (failures - 1));
  timer = setTimeout(refresh, delay);
  if (status === null) {
    unanswered(delay);
    return;
  }
  // Another version of the service has another page.
  if (version !== null && version !== status.version) location.reload();
  [version, answered, failures] = [status.version, Date.now(), 0];
  document.body.classList.remove("old");
  show(status);
}

document.addEventListener("visibilitychange", refresh);
refresh().then(follow);
