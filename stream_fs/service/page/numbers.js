// Numbers and times as text.

const WHOLE = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const SHARE = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });
const UNKNOWN = "–";

const known = (value) => value !== null && value !== undefined;

export const whole = (value) => (known(value) ? WHOLE.format(value) : UNKNOWN);

export const share = (value) => (known(value) ? SHARE.format(value) : UNKNOWN);

/** Three decimal places; very small and very large values in scientific notation. */
export function decimal(value) {
  if (!known(value)) return UNKNOWN;
  if (value === 0 || (Math.abs(value) >= 0.001 && Math.abs(value) < 1000)) return value.toFixed(3);
  return value.toExponential(1);
}

/** Records per second. */
export function rate(value) {
  if (value === 0) return "0/s";
  return value < 10 ? `${value.toFixed(1)}/s` : `${WHOLE.format(value)}/s`;
}

/** A duration in its two largest units. */
export function duration(seconds) {
  const all = Math.max(0, Math.round(seconds));
  const [days, hours, minutes] = [Math.floor(all / 86400), Math.floor(all / 3600) % 24, Math.floor(all / 60) % 60];
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  if (minutes) return `${minutes} min ${all % 60} s`;
  return `${all} s`;
}

export const ago = (seconds) => `${duration(seconds)} ago`;

/** The time of day, with the date unless it is today. */
export function clock(milliseconds) {
  const time = new Date(milliseconds);
  const today = time.toDateString() === new Date().toDateString();
  const hours = time.toLocaleTimeString("en-GB");
  return today ? hours : `${time.toLocaleDateString("en-CA")} ${hours}`;
}

export function bytes(value) {
  if (!known(value)) return UNKNOWN;
  if (value < 1000) return `${value} B`;
  if (value < 1e6) return `${(value / 1e3).toFixed(1)} kB`;
  return `${(value / 1e6).toFixed(1)} MB`;
}

export const counted = (number, one, many = `${one}s`) => `${whole(number)} ${number === 1 ? one : many}`;
