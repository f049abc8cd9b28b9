// States, and reasons of dead letters, in words; a colour never says it alone.

const STATES = {
  taking_over: ["busy", "Taking over"],
  restoring: ["busy", "Restoring"],
  replaying: ["busy", "Replaying"],
  running: ["good", "Running"],
  waiting: ["warn", "Waiting for the broker"],
  fenced: ["bad", "Taken by another process"],
};

const REASONS = {
  tombstone: "there is no value",
  too_large: "more bytes than the limit",
  malformed: "not the declared format, or not a record",
  version: "a record of another version of the format",
  unknown_view: "a view that is not declared",
  dimension: "a view with more or fewer values than declared",
  bad_sparse: "a sparse pair whose indices or values do not fit",
  all_missing: "no view is there",
  not_finite: "NaN or infinity, or beyond the declared precision",
  negative: "a negative value where the view does not allow one",
  out_of_range: "too large a value for transform none",
};

export const reasonText = (reason) => REASONS[reason] ?? "";

export const stateKind = (state) => STATES[state][0];
export const stateText = (state) => STATES[state][1];

/** Of the service as a whole: what kind, and in short. */
export function serviceState(status) {
  if (!status.health.alive) return ["bad", "Stuck"];
  if (status.health.ready) return ["good", "Ready"];
  const waits = (status.health.reason ?? "").startsWith("waiting for the broker");
  return waits ? ["warn", "Waiting for the broker"] : ["busy", "Not ready"];
}

/** How many partitions are in which state: "31 running, 1 restoring". */
export function statesTold(partitions) {
  const counts = new Map();
  for (const { state } of partitions) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, count]) => `${count} ${stateText(state).toLowerCase()}`).join(", ");
}
