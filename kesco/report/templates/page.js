"use strict";
// The page works without this: then all views stand one below another, and nothing can be zoomed.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const data = JSON.parse($("#data").textContent);
  const details = $("#details"), tip = $("#tip");
  let origin = null; // what the details are of: Escape gives it the focus back

  function element(name, text, attributes = {}) {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  // ---- theme ----
  const theme = $("#theme"), prefers = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (prefers.matches ? "dark" : "light")) === "dark";
  const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  prefers.addEventListener("change", name);
  name();

  // ---- views and functions ----
  const tabs = all("[role=tab]"), select = $("#function");
  function show(tab) {
    for (const one of tabs) {
      const chosen = one === tab;
      one.setAttribute("aria-selected", chosen);
      one.tabIndex = chosen ? 0 : -1;
      $("#" + one.getAttribute("aria-controls")).hidden = !chosen;
    }
    if (select) select.closest("label").hidden = !/graph|timeline/.test(tab.id);
    fitAll();
  }
  tabs.forEach((tab, at) => {
    tab.addEventListener("click", () => show(tab));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const next = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : step && (at + step + tabs.length) % tabs.length;
      if (next === undefined) return;
      event.preventDefault();
      show(tabs[next]);
      tabs[next].focus();
    });
  });
  function choose(number) {
    for (const one of all(".of-function")) one.hidden = one.dataset.function !== String(number);
    if (select) select.value = number;
    fitAll();
  }
  if (select) select.addEventListener("change", () => choose(select.value));

  // ---- zoom: a drawing is made larger inside a view that scrolls ----
  const scales = new WeakMap();
  function natural(svg) {
    return [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height];
  }
  function zoom(view, factor, x = view.clientWidth / 2, y = view.clientHeight / 2) {
    const svg = $("svg", view), wide = "wide" in view.dataset;
    const least = innerWidth < 700 ? 0.6 : 0.12; // on a telephone a drawing is scrolled rather than too small to read
    const fit = wide ? 1 : Math.min(1, Math.max(least, (view.clientWidth - 4) / natural(svg)[0]));
    const before = scales.get(view) || fit;
    const after = factor ? Math.min(wide ? 400 : 4, Math.max(wide ? 1 : 0.08, before * factor)) : fit;
    scales.set(view, after);
    const left = view.scrollLeft + x, top = view.scrollTop + y;
    if (wide) {
      svg.setAttribute("width", after * 100 + "%");
    } else {
      svg.setAttribute("width", natural(svg)[0] * after);
      svg.setAttribute("height", natural(svg)[1] * after);
      svg.classList.toggle("far", after < 0.4);
    }
    view.scrollLeft = factor ? left * after / before - x : 0;
    if (!wide) view.scrollTop = factor ? top * after / before - y : 0;
  }
  const views = all(".view");
  function fitAll() {
    for (const view of views) if (!scales.has(view) && view.clientWidth) zoom(view, 0);
  }
  for (const view of views) {
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const box = view.getBoundingClientRect();
      zoom(view, event.deltaY < 0 ? 1.2 : 1 / 1.2, event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    view.addEventListener("keydown", (event) => {
      const factor = { "+": 1.25, "=": 1.25, "-": 0.8, 0: 0 }[event.key];
      if (factor !== undefined && !event.ctrlKey && !event.metaKey) zoom(view, factor);
    });
    let drag = null;
    view.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && event.pointerType === "mouse" && !event.target.closest(".item"))
        drag = [event.clientX + view.scrollLeft, event.clientY + view.scrollTop];
    });
    view.addEventListener("pointermove", (event) => {
      if (!drag) return;
      view.classList.add("grabbing");
      view.scrollLeft = drag[0] - event.clientX;
      view.scrollTop = drag[1] - event.clientY;
    });
    for (const end of ["pointerup", "pointerleave"])
      view.addEventListener(end, () => { drag = null; view.classList.remove("grabbing"); });
  }
  for (const tools of all("[data-zooms]")) {
    const view = document.getElementById(tools.dataset.zooms);
    for (const button of all("[data-zoom]", tools))
      button.addEventListener("click", () => zoom(view, Number(button.dataset.zoom)));
    const dash = $("[data-dash]", tools);
    if (dash) dash.addEventListener("click", () => {
      const shown = dash.getAttribute("aria-pressed") !== "true";
      dash.setAttribute("aria-pressed", shown);
      $("svg", view).classList.toggle("nodash", !shown);
    });
  }

  // ---- folded lines ----
  function fold(button, open) {
    button.setAttribute("aria-expanded", open);
    for (const row of all(`[data-block="${button.dataset.fold}"]`)) row.hidden = !open;
  }
  for (const button of all("[data-fold]")) {
    fold(button, false);
    button.addEventListener("click", () => fold(button, button.getAttribute("aria-expanded") !== "true"));
  }

  // ---- details ----
  const operation = (key) => {
    const [f, site] = key.split("-");
    return [data.functions[f].operations[site], f, Number(site)];
  };
  const where = (op) => op.stream === null ? "default stream" : `stream ${op.stream}`;
  function list(title, items, target) {
    if (!items.length) return;
    target.append(element("h3", title));
    const made = element("ul");
    made.append(...items);
    target.append(made);
    return made;
  }
  function jump(label, to) {
    const button = element("button", label, { type: "button" });
    button.addEventListener("click", to);
    return button;
  }
  function reveal(tab, target) {
    const there = document.getElementById("tab-" + tab);
    if (there) show(there);
    if (!target) return;
    const row = target.closest("[data-block]");
    if (row && row.hidden) fold($(`[data-fold="${row.dataset.block}"]`), true);
    target.scrollIntoView({ block: "center", inline: "center" });
    focusOn(target);
    open(target, false);
  }
  function edgeButton(f, index) {
    const edge = data.functions[f].edges[index], ops = data.functions[f].operations;
    const kind = { wait: "wait", stream: "same stream", removed: "not needed" }[edge.kind];
    const made = element("li");
    made.append(jump(`${ops[edge.source].label} → ${ops[edge.target].label}: ${edge.buffers.join(", ") || "order"} (${kind})`,
      () => { choose(f); reveal("graph", document.getElementById(`e${f}-${edge.source}-${edge.target}`)); }));
    return made;
  }
  function jumps(key, op, target) {
    const [f] = key.split("-"), line = element("div", "", { class: "jump" });
    const node = document.getElementById("g" + key), bar = $(`.bar-item[data-op="${key}"]`);
    const bars = all(`.bar-item[data-op="${key}"]`), row = $(`[data-ops~="${key}"]`) || document.getElementById("l" + op.line);
    if (node && origin !== node) line.append(jump("Graph", () => { choose(f); reveal("graph", node); }));
    if (bar && !bars.includes(origin)) line.append(jump("Timeline", () => { choose(f); reveal("timeline", bars.at(-1)); }));
    if (row && origin !== row) line.append(jump("Source", () => reveal("source", row)));
    target.append(line);
  }
  function describe(item) {
    const page = [];
    const body = document.createDocumentFragment();
    if (item.dataset.edge) {
      const [f, index] = item.dataset.edge.split("-"), edge = data.functions[f].edges[index];
      const [a, b] = [edge.source, edge.target].map((n) => data.functions[f].operations[n]);
      page.push(`${a.label} → ${b.label}`);
      const word = { wait: "A wait for an event", stream: "No wait", removed: "No wait is needed" }[edge.kind];
      const how = edge.why.at(-1).replace("no wait: ", ""), what = edge.why.slice(0, -1);
      body.append(element("p", `${word}${edge.carried ? ", around a loop" : ""}: ${how}`));
      list("What it keeps in order", what.map((text) => element("li", text)), body);
      list("Both places", [a, b].map((op) => element("li", `${op.label}: ${op.place}, ${where(op)}`)), body);
      const ends = element("div", "", { class: "jump" });
      for (const n of [edge.source, edge.target])
        ends.append(jump(data.functions[f].operations[n].label, () => reveal("graph", document.getElementById(`g${f}-${n}`))));
      body.append(ends);
    } else if (item.dataset.op) {
      const [op, f, site] = operation(item.dataset.op);
      page.push(op.label);
      const about = [op.kind, op.place, where(op), op.around, op.task].filter(Boolean).join(" · ");
      body.append(element("p", about, { class: "muted" }));
      if (item.dataset.said) body.append(element("p", item.dataset.said.split("\n").slice(1).join(", ")));
      jumps(item.dataset.op, op, body);
      const words = { r: "reads", w: "writes", rw: "reads and writes" };
      list("Touches", op.accesses.map(([mode, buffer, why]) =>
        element("li", `${words[mode] || mode} ${buffer}` + (why ? ` (${why})` : ""))), body);
      const edges = data.functions[f].edges.map((edge, at) => [edge, at]);
      for (const [title, end] of [["Comes after", "target"], ["Comes before", "source"]]) {
        const made = list(title, edges.filter(([edge]) => edge[end] === site).map(([, at]) => edgeButton(f, at)), body);
        if (made) made.className = "links";
      }
    } else {
      const [head, ...rest] = (item.dataset.said || "").split("\n");
      page.push("inserted" in item.dataset ? "What this line does" : head);
      for (const text of "inserted" in item.dataset ? [head, ...rest] : rest) body.append(element("p", text));
      for (const key of (item.dataset.ops || "").split(" ").filter(Boolean)) {
        const [op] = operation(key);
        body.append(element("h3", op.label + (op.around ? ` (${op.around})` : "")));
        jumps(key, op, body);
      }
    }
    return [page[0], body];
  }
  function open(item, move = true) {
    for (const one of all(".sel")) one.classList.remove("sel");
    item.classList.add("sel");
    for (const one of all(`[data-op="${item.dataset.op}"]`)) one.classList.add("sel");
    origin = item;
    const [title, body] = describe(item);
    const close = element("button", "×", { type: "button", class: "close", "aria-label": "Close details" });
    close.addEventListener("click", shut);
    details.replaceChildren(close, element("h2", title), body);
    details.hidden = false;
    if (move) details.focus({ preventScroll: true });
  }
  function shut() {
    for (const one of all(".sel")) one.classList.remove("sel");
    const back = origin;
    details.hidden = true;
    origin = null;
    if (back) back.focus({ preventScroll: true });
  }

  // ---- items: hover, focus, click, arrows ----
  function said(item) {
    if (item.dataset.edge) {
      const [f, index] = item.dataset.edge.split("-");
      return data.functions[f].edges[index].why.join("\n");
    }
    if (!item.dataset.said && item.dataset.op) {
      const [op] = operation(item.dataset.op);
      return [`${op.label}, ${where(op)}`, ...op.accesses.map(([mode, buffer]) => `${mode} ${buffer}`)].join("\n");
    }
    return item.dataset.said;
  }
  function light(item) {
    const svg = item.closest(".view > svg");
    if (!svg || !item.id) return;
    const near = new Set([item]);
    const [f, key] = (item.dataset.edge || item.dataset.op).split("-");
    data.functions[f].edges.forEach((edge, at) => {
      const mine = item.dataset.edge ? String(at) === key : [edge.source, edge.target].includes(Number(key));
      if (!mine) return;
      for (const id of [`e${f}-${edge.source}-${edge.target}`, `g${f}-${edge.source}`, `g${f}-${edge.target}`])
        near.add(document.getElementById(id));
    });
    dim();
    svg.classList.add("lit");
    for (const one of near) if (one) one.classList.add("near");
  }
  function dim() {
    for (const svg of all("svg.lit")) svg.classList.remove("lit");
    for (const one of all(".near")) one.classList.remove("near");
  }
  function hint(item, x, y) {
    tip.textContent = said(item) || "";
    tip.hidden = !tip.textContent;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - width - 8)) + "px";
    tip.style.top = (y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18) + "px";
  }
  const hide = () => { tip.hidden = true; dim(); };
  const itemOf = (event) => event.target.closest && event.target.closest(".item");
  document.addEventListener("pointerover", (event) => {
    const item = itemOf(event);
    if (!item) return hide();
    light(item);
    hint(item, event.clientX, event.clientY);
  });
  document.addEventListener("focusin", (event) => {
    const item = itemOf(event);
    if (!item) return hide();
    light(item);
    if (!item.matches(":focus-visible")) return;
    const box = boxOf(item);
    hint(item, Math.max(0, box.left), Math.min(box.bottom, innerHeight) - 12);
  });
  document.addEventListener("click", (event) => {
    const item = itemOf(event);
    if (item) { focusOn(item); open(item); hide(); }
  });
  function home(item) {
    return item.closest(".view, .source");
  }
  function focusOn(item) {
    for (const one of all('.item[tabindex="0"]', home(item))) one.tabIndex = -1;
    item.tabIndex = 0;
    item.focus({ preventScroll: true });
  }
  // a bar's label may be longer than the bar, which hides the rest of it but counts it as its own
  const boxOf = (one) => ($(".run", one) || one).getBoundingClientRect();
  const visible = (one) => one.getClientRects().length > 0;
  function beside(item, key) {
    const mine = boxOf(item), x = mine.left + mine.width / 2, y = mine.top + mine.height / 2;
    const down = { ArrowDown: 1, ArrowUp: -1 }[key], right = { ArrowRight: 1, ArrowLeft: -1 }[key];
    let best = null, least = Infinity;
    for (const other of all(".item:not(.edge)", home(item))) {
      if (other === item || !visible(other)) continue;
      const box = boxOf(other);
      const dx = box.left + box.width / 2 - x, dy = box.top + box.height / 2 - y;
      const along = down ? dy * down : dx * right, aside = Math.abs(down ? dx : dy);
      const distance = along + aside * (down ? 0.6 : 4);
      if (along > (down ? 3 : 0) && distance < least) [best, least] = [other, distance];
    }
    return best;
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      tip.hidden = true;
      if (!details.hidden) shut();
      return;
    }
    const item = itemOf(event);
    if (!item) {
      if (event.target.matches(".view") && event.key === "Enter") {
        const first = $(".item:not(.edge)", event.target);
        if (first) focusOn(first);
      }
      return;
    }
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open(item);
    } else if (event.key.startsWith("Arrow")) {
      event.preventDefault();
      const next = beside(item, event.key);
      if (!next) return;
      focusOn(next);
      next.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  });

  // ---- lines named in what was gained and lost ----
  for (const link of all("a.line")) link.addEventListener("click", (event) => {
    const number = $(link.getAttribute("href")), row = number && number.closest(".row");
    if (!row) return;
    event.preventDefault();
    const change = $(".item", row);
    if (change) return reveal("source", change);
    show($("#tab-source"));
    if (row.hidden) fold($(`[data-fold="${row.dataset.block}"]`), true);
    for (const one of all(".here")) one.classList.remove("here");
    row.classList.add("here");
    number.scrollIntoView({ block: "center" });
    number.tabIndex = -1;
    number.focus({ preventScroll: true });
  });

  // ---- changes in the source ----
  const changes = all(".source .item");
  if (changes[0]) changes[0].tabIndex = 0;
  let at = -1;
  for (const [id, step] of [["next", 1], ["previous", -1]]) {
    const button = document.getElementById(id);
    if (button) button.addEventListener("click", () => {
      if (!changes.length) return;
      at = (at + step + changes.length) % changes.length;
      reveal("source", changes[at]);
    });
  }
  for (const view of all("[data-wide]")) {
    const first = $(".item", view);
    if (first) first.tabIndex = 0;
  }

  const bar = $("#bar");
  bar.hidden = false;
  if (select) choose(select.value);
  if (tabs.length) show(tabs[0]);
  document.documentElement.classList.add("ready");
})();
