// Elements, made once and then brought up to date in place, so that what is open or has the focus
// stays so. Data become text and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes; children are elements or texts. */
export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for drawings. */
export function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Change a text only where it differs: a live region speaks on every change. */
export function say(element, text) {
  const said = String(text);
  if (element.textContent !== said) element.textContent = said;
}

/** Change an attribute only where it differs. */
export function mark(element, name, value) {
  const said = String(value);
  if (element.getAttribute(name) !== said) element.setAttribute(name, said);
}

const kept = new WeakMap();

/**
 * Let the children of an element be one for each item, in their order.
 *
 * `create` makes what belongs to an item, an object with its `element`; `update` brings it up to
 * date. Items are the same where their keys are.
 */
export function keep(parent, items, key, create, update) {
  if (!kept.has(parent)) kept.set(parent, new Map());
  const known = kept.get(parent);
  const names = new Set(items.map(key));
  // First, so that nobody has to move: an element that moves loses the focus.
  for (const [name, part] of known) {
    if (names.has(name)) continue;
    part.element.remove();
    known.delete(name);
  }
  items.forEach((item, index) => {
    const name = key(item, index);
    if (!known.has(name)) known.set(name, create(item, index));
    const part = known.get(name);
    const there = parent.children[index];
    if (there !== part.element) parent.insertBefore(part.element, there ?? null);
    update(part, item, index);
  });
}
