// States and reasons of dead letters in words; colour is never the only sign.

const STATES = {
  taking_over: ["busy", "Acquiring"],
  restoring: ["busy", "Restoring"],
  replaying: ["busy", "Replaying"],
  running: ["good", "Running"],
  waiting: ["warn", "Waiting for the broker"],
  fenced: ["bad", "Fenced by another process"],
};

const REASONS = {
  tombstone: "no value",
  too_large: "more bytes than the limit",
  malformed: "not the declared format, or not a record",
  version: "a record of another version of the format",
  unknown_view: "a view that is not declared",
  dimension: "a view with more or fewer values than declared",
  bad_sparse: "a sparse pair with invalid indices or values",
  all_missing: "all views are missing",
  not_finite: "NaN or infinity, or beyond the declared precision",
  negative: "a negative value in a view that does not allow one",
  out_of_range: "a value too large for transform none",
};

export const reasonText = (reason) => REASONS[reason] ?? "";

export const stateKind = (state) => STATES[state][0];
export const stateText = (state) => STATES[state][1];

/** Kind and text of the state of the whole process. */
export function serviceState(status) {
  if (!status.health.alive) return ["bad", "Stuck"];
  if (status.health.ready) return ["good", "Ready"];
  const waits = (status.health.reason ?? "").startsWith("waiting for the broker");
  return waits ? ["warn", "Waiting for the broker"] : ["busy", "Not ready"];
}

/** Number of partitions in each state: "31 running, 1 restoring". */
export function stateSummary(partitions) {
  const counts = new Map();
  for (const { state } of partitions) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${count} ${stateText(state).toLowerCase()}`).join(", ");
}
