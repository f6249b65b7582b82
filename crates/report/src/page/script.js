"use strict";
(() => {
  const tip = document.getElementById("tip");
  const texts = new Map();
  for (const title of document.querySelectorAll("svg title")) {
    texts.set(title.parentNode, title.textContent);
    title.parentNode.setAttribute("data-tip", "");
    title.remove();
  }
  document.addEventListener("pointermove", (event) => {
    const mark = event.target.closest && event.target.closest("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = texts.get(mark);
    const x = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 6);
    const y = event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : event.clientY + 18;
    tip.style.left = Math.max(4, x) + "px";
    tip.style.top = y + "px";
  });
  for (const item of document.querySelectorAll(".legend li")) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(...item.childNodes);
    item.append(button);
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      const series = item.getAttribute("data-series");
      for (const group of item.closest("figure").querySelectorAll("g[data-series]"))
        if (group.getAttribute("data-series") === series) group.classList.toggle("off", !shown);
    });
  }
  const bytes = async (data) => {
    if (data.dataset.form === "text") return new Blob([data.textContent]);
    const packed = Uint8Array.from(atob(data.textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).blob();
  };
  for (const data of document.querySelectorAll(".weir-data")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Save " + data.dataset.name;
    button.addEventListener("click", async () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await bytes(data));
      link.download = data.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    data.before(button);
  }
  for (const name of ["beforeprint", "afterprint"])
    addEventListener(name, () => document.querySelectorAll("figure details").forEach((part) => (part.open = name === "beforeprint")));
})();
