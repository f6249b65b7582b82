// Returns what is wrong with the page that is loaded, as a list of sentences. Evaluated by tests/report_browser.rs.
(() => {
  const wrong = [];
  const seen = (box) => box.width > 0 && box.height > 0;
  const short = (text) => text.trim().replace(/\s+/g, " ").slice(0, 40);

  // A colour as [red, green, blue, alpha], 0 to 255 and 0 to 1.
  const parsed = (text) => {
    const parts = (text.match(/[\d.]+/g) || []).map(Number);
    return parts.length < 3 ? [0, 0, 0, 0] : [parts[0], parts[1], parts[2], parts.length > 3 ? parts[3] : 1];
  };
  const over = ([r, g, b, alpha], below) => [r, g, b].map((part, i) => part * alpha + below[i] * (1 - alpha));
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  // The colour below a text: all that is painted at its middle, blended from the lowest up.
  const below = (element, box) => {
    const stack = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2).reverse();
    let colour = dark ? [18, 18, 18] : [255, 255, 255];
    for (const part of stack) {
      if (part === element || ["text", "tspan", "line", "polyline"].includes(part.tagName)) continue;
      const style = getComputedStyle(part);
      const drawn = part instanceof SVGElement && part.tagName !== "svg";
      const paint = parsed(drawn ? (style.fill === "none" ? "" : style.fill) : style.backgroundColor);
      paint[3] *= Number(style.opacity) * (drawn ? Number(style.fillOpacity) : 1);
      colour = over(paint, colour);
    }
    return colour;
  };
  const checkContrast = (element, paint, box, text) => {
    if (!element.checkVisibility()) return;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const back = below(element, box);
    const ratio = contrast(over(parsed(paint), back), back);
    if (ratio < (large ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)}: "${short(text)}"`);
  };

  if (document.documentElement.scrollWidth > innerWidth)
    wrong.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${innerWidth} px`);
  if (!document.documentElement.lang) wrong.push("the page names no language");
  if (document.querySelectorAll("h1").length < 1) wrong.push("no heading");

  for (const drawing of document.querySelectorAll("figure svg")) {
    const frame = drawing.getBoundingClientRect();
    if (!seen(frame) || drawing.closest(".legend")) continue;
    const name = drawing.getAttribute("aria-label") || drawing.getAttribute("aria-labelledby") || "";
    if (drawing.getAttribute("role") !== "img" || !name) wrong.push(`a picture has no role or name: ${short(drawing.textContent)}`);
    if (!drawing.querySelector("path,rect,circle,polyline,polygon,line")) wrong.push(`no marks: ${name}`);
    const texts = [...drawing.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    const shown = texts.filter(([, box]) => seen(box));
    for (const [text, box] of shown) {
      const cut = Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
      if (cut > 1) wrong.push(`cut by ${cut.toFixed(0)} px: "${short(text.textContent)}"`);
      checkContrast(text, getComputedStyle(text).fill, box, text.textContent);
    }
    shown.forEach(([one, a], index) => {
      for (const [other, b] of shown.slice(index + 1)) {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        // The box of a line of text is higher than its letters.
        if (across > 1 && down > 4)
          wrong.push(`"${short(one.textContent)}" overlaps "${short(other.textContent)}" by ${across.toFixed(0)} px`);
      }
    });
  }

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || element.closest("svg,script,style,#tip,.weir-data")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getClientRects()[0];
    if (!box || !seen(box) || box.right > innerWidth) continue; // a table that scrolls
    checkContrast(element, getComputedStyle(element).color, box, node.textContent);
  }
  return [...new Set(wrong)];
})()
