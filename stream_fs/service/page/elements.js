// Elements, created once and updated in place, so that open parts stay open and the focus is kept.
// Data become text and attributes, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes; children are elements or texts. */
export function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function draw(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Set a text only if it differs: a screen reader announces every change of a live region. */
export function say(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/** Set an attribute only if it differs. */
export function mark(element, name, value) {
  const wanted = String(value);
  if (element.getAttribute(name) !== wanted) element.setAttribute(name, wanted);
}

const kept = new WeakMap();

/**
 * Keep one child of `parent` for each item, in the order of the items.
 *
 * `create` returns an object with the `element` of an item; `update` shows the item in it. Items are
 * identified by their keys.
 */
export function keep(parent, items, key, create, update) {
  if (!kept.has(parent)) kept.set(parent, new Map());
  const known = kept.get(parent);
  const names = new Set(items.map(key));
  // Removed first, so that the others do not move: an element that moves loses the focus.
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
