// What is wrong with a page that can be told by looking at it: a list of sentences.
() => {
  const found = [];
  const visible = (element) => element.checkVisibility();
  const name = (element) => `${element.tagName.toLowerCase()}.${element.className.baseVal ?? element.className} "${element.textContent.slice(0, 40)}"`;

  // --- structure
  if (!document.documentElement.lang) found.push("the page has no language");
  const levels = [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].filter(visible).map((h) => Number(h.tagName[1]));
  if (levels.filter((level) => level === 1).length !== 1) found.push("not one h1");
  levels.forEach((level, place) => {
    if (level > (levels[place - 1] ?? 0) + 1) found.push(`heading ${place} is of level ${level}, after ${levels[place - 1]}`);
  });
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  if (new Set(ids).size !== ids.length) found.push("an id occurs twice");
  for (const reference of document.querySelectorAll("[aria-labelledby]")) {
    if (!document.getElementById(reference.getAttribute("aria-labelledby"))) found.push(`${name(reference)} is labelled by nothing`);
  }

  // --- everything that is not text says what it is
  for (const image of document.querySelectorAll("img")) if (!image.hasAttribute("alt")) found.push("an image without alt");
  for (const picture of document.querySelectorAll("svg, canvas, [role=meter]")) {
    if (visible(picture) && !picture.getAttribute("aria-label")) found.push(`${name(picture)} says nothing`);
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption?.textContent) found.push("a table without a caption");
    if ([...table.querySelectorAll("th")].some((cell) => !cell.scope)) found.push("a heading of a table without a scope");
  }
  for (const link of document.querySelectorAll("a, summary")) if (!link.textContent.trim()) found.push(`${name(link)} is empty`);

  // --- contrast of every text, by the formula of WCAG 2
  const channels = (colour) => colour.match(/[\d.]+/g).map(Number);
  const luminance = (rgb) => rgb.slice(0, 3)
    .map((value) => value / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, place) => sum + value * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = channels(getComputedStyle(one).backgroundColor);
      if ((colour[3] ?? 1) === 1) return colour;
    }
    return [255, 255, 255];
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let looked = 0;
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.textContent.trim() || !visible(element) || element.closest("svg, noscript")) continue;
    looked += 1;
    const [one, other] = [luminance(channels(getComputedStyle(element).color)), luminance(behind(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) found.push(`${name(element)} has a contrast of ${contrast.toFixed(2)}`);
  }
  if (looked < 20) found.push("hardly any text was looked at");
  return found;
}
