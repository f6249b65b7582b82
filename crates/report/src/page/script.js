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
  // Zoom: buttons or the keys + - 0, then arrow keys or a drag move the part that is shown.
  for (const figure of document.querySelectorAll("figure")) {
    const drawings = [...figure.querySelectorAll("svg[viewBox]")].filter((drawing) => !drawing.closest(".legend"));
    if (!drawings.length || figure.closest(".frames")) continue;
    const whole = drawings.map((drawing) => drawing.getAttribute("viewBox").split(" ").map(Number));
    let [factor, x, y] = [1, 0.5, 0.5];
    const show = (more) => {
      factor = Math.max(1, Math.min(16, factor * more));
      const half = 0.5 / factor;
      [x, y] = [x, y].map((middle) => Math.max(half, Math.min(1 - half, middle)));
      drawings.forEach((drawing, number) => {
        const [left, top, width, height] = whole[number];
        const box = [left + (x - half) * width, top + (y - half) * height, width / factor, height / factor];
        drawing.setAttribute("viewBox", box.join(" "));
      });
      figure.classList.toggle("zoomed", factor > 1);
      out.disabled = all.disabled = factor === 1;
      into.disabled = factor === 16;
    };
    const nav = document.createElement("nav");
    const button = (text, name, more) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.setAttribute("aria-label", name);
      made.title = name;
      made.addEventListener("click", () => show(more));
      nav.append(made);
      return made;
    };
    const into = button("+", "Zoom in", 2);
    const out = button("\u2212", "Zoom out", 0.5);
    const all = button("whole", "Show the whole picture", 0);
    const move = (right, down) => {
      [x, y] = [x + right / factor, y + down / factor];
      show(1);
    };
    nav.className = "zoom";
    nav.setAttribute("aria-label", `Zoom: ${figure.querySelector("h3").textContent} (${figure.id})`);
    nav.addEventListener("keydown", (event) => {
      const more = { "+": 2, "-": 0.5, 0: 0 }[event.key];
      const step = { ArrowRight: [0.25, 0], ArrowLeft: [-0.25, 0], ArrowDown: [0, 0.25], ArrowUp: [0, -0.25] }[event.key];
      if (more === undefined && (!step || factor === 1)) return;
      if (step) move(...step);
      else show(more);
      event.preventDefault();
    });
    for (const drawing of drawings)
      drawing.addEventListener("pointermove", (event) => {
        if (event.buttons !== 1 || factor === 1) return;
        const frame = drawing.getBoundingClientRect();
        move(-event.movementX / frame.width, -event.movementY / frame.height);
      });
    drawings[drawings.length - 1].parentNode.after(nav);
    show(1);
  }
  // A recorded run: one frame at a time, by buttons or arrow keys.
  for (const part of document.querySelectorAll(".frames")) {
    const frames = [...part.querySelectorAll("figure")];
    if (frames.length < 2) continue;
    const nav = document.createElement("nav");
    const where = document.createElement("span");
    let now = 0;
    const show = (at) => {
      now = Math.max(0, Math.min(frames.length - 1, at));
      frames.forEach((frame, number) => frame.classList.toggle("now", number === now));
      where.textContent = `step ${now + 1} of ${frames.length}`;
      back.disabled = now === 0;
      next.disabled = now === frames.length - 1;
    };
    const button = (text, act) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.addEventListener("click", act);
      nav.append(made);
      return made;
    };
    const back = button("Back", () => show(now - 1));
    const next = button("Next", () => show(now + 1));
    nav.append(where);
    const all = button("Show all", () => {
      const single = part.classList.toggle("single");
      all.textContent = single ? "Show all" : "One at a time";
    });
    all.className = "all";
    where.setAttribute("role", "status");
    nav.setAttribute("aria-label", `Steps: ${part.previousElementSibling.textContent} (${part.id})`);
    part.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || !part.classList.contains("single")) return;
      show(now + step);
      event.preventDefault();
    });
    part.prepend(nav);
    part.classList.add("single");
    show(0);
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
