// The states of a partition, and of the service, in words; a colour never says it alone.

const STATES = {
  taking_over: ["busy", "Taking over"],
  restoring: ["busy", "Restoring"],
  replaying: ["busy", "Replaying"],
  running: ["good", "Running"],
  waiting: ["warn", "Waiting for the broker"],
  fenced: ["bad", "Taken by another process"],
};

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
