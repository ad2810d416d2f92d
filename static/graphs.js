// SPDX-License-Identifier: BSD-2-Clause
// Makes the graphs of a page interactive with Plotly once they come into view: values under the pointer, zoom, export,
// and the comparison of two points.
// Figures have no colours; the style sheet has them, so that graphs follow the browser's light or dark scheme. Without
// this script, pictures and tables of the page show the same.
"use strict";

(() => {
  // On a touch screen a drag scrolls the page and does not zoom, and no buttons cover the graph.
  const pointed = matchMedia("(hover: hover)").matches;
  const config = {
    displayModeBar: pointed ? "hover" : false,
    displaylogo: false,
    showSendToCloud: false,
    responsive: true,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg" },
  };
  const { plotly: library, compare } = document.currentScript.dataset;
  const drawn = new Map();
  const picked = new Map();

  // A custom property has the colours of both schemes; an element that uses it has the one that is shown.
  const probe = document.body.appendChild(document.createElement("span"));

  function colour(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }

  function shown(element, number) {
    const box = element.querySelector(`input[data-toggle="${number}"]`);
    return !box || box.checked;
  }

  // Plotly removes grid lines and numbers that would be below its labels inside a plot.
  function labelsInside(axis) {
    if (!axis?.ticklabelposition) return [];
    const place = { x: 0, xref: "paper", xanchor: "left", yanchor: "bottom", yshift: 2 };
    return axis.categoryarray.map((text) => ({ ...place, y: text, text }));
  }

  // Letters at the points that a reader has clicked.
  function pickedLabels(element, figure) {
    const logarithm = figure.layout.yaxis.type === "log" ? Math.log10 : (y) => y;
    return (picked.get(element) || []).flatMap(({ id }, number) => {
      const trace = figure.data.find(({ ids }) => ids?.includes(id));
      if (!trace) return [];
      const place = trace.ids.indexOf(id);
      return [{ x: trace.x[place], y: logarithm(trace.y[place]), yshift: 14, text: "AB"[number], bgcolor: colour("raised") }];
    });
  }

  function coloured(element, figure) {
    const [line, muted, text] = ["line", "muted", "text"].map(colour);
    const data = figure.data.map((trace) => {
      const own = colour(trace.meta.role);
      return {
        ...trace,
        visible: shown(element, trace.meta.toggle),
        marker: { ...trace.marker, color: own },
        line: { width: 1.5, ...trace.line, color: own },
        hoverlabel: { namelength: 0 },
        ...(trace.type === "box" && { fillcolor: "rgba(0,0,0,0)" }),
        ...(trace.error_x && { error_x: { ...trace.error_x, color: own } }),
      };
    });
    const axis = { gridcolor: line, linecolor: line, zeroline: false, zerolinecolor: muted, automargin: true,
      exponentformat: "none", separatethousands: true };
    const { layout } = figure;
    const inside = labelsInside(layout.yaxis);
    const notes = [...(layout.annotations || []), ...inside];
    const top = 30 + Math.max(0, ...notes.map((note) => note.yshift || 0));
    notes.push(...pickedLabels(element, figure));
    return {
      data,
      layout: {
        ...layout,
        xaxis: { ...axis, ...layout.xaxis },
        yaxis: { ...axis, ...layout.yaxis, ...(inside.length && { showticklabels: false }) },
        shapes: (layout.shapes || []).map((shape) => ({ ...shape, line: { ...shape.line, color: muted } })),
        annotations: notes.map((note) => ({ ...note, showarrow: false })),
        separators: ".\u202f",
        font: { family: "system-ui, sans-serif", size: 12, color: text },
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: text },
        dragmode: pointed ? "zoom" : false,
        showlegend: false,
        margin: { l: inside.length ? 10 : 60, r: 10, t: top, b: 40 },
      },
    };
  }

  function draw(element) {
    const plot = element.querySelector(".plot");
    const figure = coloured(element, drawn.get(element));
    if (!plot.classList.contains("js-plotly-plot")) plot.replaceChildren();
    Plotly.react(plot, figure.data, figure.layout, config);
    reachOnce(plot);
    return plot;
  }

  // A point that is a side of a comparison waits for a second one; any other opens its page.
  function click(element, event) {
    const { data, pointNumber, text, customdata: address } = event.points[0];
    const id = data.ids?.[pointNumber];
    if (!id) {
      if (address) location.assign(address);
      return;
    }
    const before = picked.get(element) || [];
    const others = before.length < 2 ? before.filter((point) => point.id !== id) : [];
    picked.set(element, [...others, { id, text, address }]);
    draw(element);
    offerComparison(element);
  }

  function linkTo(address, text) {
    return Object.assign(document.createElement("a"), { href: address, textContent: text });
  }

  function offerComparison(element) {
    const [a, b] = picked.get(element);
    const box = element.querySelector(".picked") || document.createElement("p");
    box.className = "picked";
    box.setAttribute("role", "status");
    const named = [a, b].filter(Boolean).flatMap(({ id, text, address }, number) => [
      number ? " · " : "", `${"AB"[number]} `, linkTo(address, `run ${id.replace("/", ", ")}`), ` ${text}`,
    ]);
    const sides = b && new URLSearchParams([["base", a.id], ["with", b.id]]);
    box.replaceChildren(...named, " · ", b ? linkTo(`${compare}?${sides}`, "Compare these") : "Click a second point to compare.");
    element.querySelector(".plot").after(box);
  }

  async function zoom(element, event) {
    // The server thins large figures, so the visible part is fetched again after a zoom.
    const by = drawn.get(element).layout.meta?.zoom;
    const [from, to] = [event["xaxis.range[0]"], event["xaxis.range[1]"]];
    if (!by || (from === undefined && !event["xaxis.autorange"])) return;
    const part = from === undefined ? {} : bounds(by, from, to, drawn.get(element).layout.meta.places);
    keepInAddress({ by, from: undefined, to: undefined, newest: undefined, ...part });
    const figures = await figuresOfPage();
    if (!figures[element.dataset.graph]) return;
    drawn.set(element, figures[element.dataset.graph]);
    draw(element);
  }

  // Bounds of a time axis are texts, those of an axis of runs numbers between two runs, those of commits lie between
  // the numbers of places.
  function bounds(by, from, to, places) {
    if (by === "time") return { from, to };
    if (by === "run") return { from: Math.floor(from), to: Math.ceil(to) };
    const inside = (place) => Math.min(Math.max(place, 0), places.length - 1);
    const time = (place, more) => new Date(places[inside(place)] + more).toISOString();
    return { from: time(Math.ceil(from), -1), to: time(Math.floor(to), 0) };
  }

  // The part that is shown can be linked to, and the page shows it after a reload.
  function keepInAddress(changes) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined) query.delete(name);
      else query.set(name, value);
      const field = document.querySelector(`form.range [name="${name}"]`);
      if (field && field.type !== "hidden") field.value = value ?? "";
    }
    history.replaceState(null, "", `?${query}`);
  }

  async function figuresOfPage() {
    const query = new URLSearchParams(location.search);
    query.set("graphs", "json");
    const answer = await fetch(`?${query}`);
    if (!answer.ok) throw new Error(`graphs: ${answer.status}`);
    return answer.json();
  }

  async function save(address, name) {
    // The picture of the server at twice its resolution. It needs no request, so it works offline.
    const picture = new Image();
    picture.src = address;
    await picture.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [2 * picture.naturalWidth, 2 * picture.naturalHeight];
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    const link = document.createElement("a");
    link.href = canvas.toDataURL("image/png");
    link.download = `${name}.png`;
    link.click();
  }

  // The tab key reaches a graph once; there, arrow keys move through its buttons, as in a toolbar.
  function reachOnce(plot) {
    const buttons = [...plot.querySelectorAll(".modebar-btn")];
    for (const button of buttons) button.tabIndex = -1;
    plot.onkeydown = (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const at = buttons.indexOf(document.activeElement);
      if (event.key === "Escape" && at >= 0) plot.focus();
      if (!step || !buttons.length) return;
      event.preventDefault();
      buttons.at(at < 0 && step > 0 ? 0 : (at + step) % buttons.length).focus();
    };
  }

  function offerPng(element) {
    const picture = element.querySelector("figcaption a");
    const button = document.createElement("button");
    button.textContent = "PNG";
    button.addEventListener("click", () => save(picture.href, element.dataset.graph));
    picture.after(" ", button);
  }

  // Plotly has a megabyte and starts slowly, so the page is shown first, with the pictures of the server.
  function painted() {
    return new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  }

  function load(address) {
    const script = document.createElement("script");
    script.src = address;
    document.head.append(script);
    return new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));
  }

  async function start() {
    const elements = [...document.querySelectorAll("[data-graph]")];
    elements.forEach(offerPng);
    await painted();
    const [figures] = await Promise.all([figuresOfPage(), load(library)]);
    const seen = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        drawn.set(target, figures[target.dataset.graph]);
        const plot = draw(target);
        plot.on("plotly_click", (event) => click(target, event));
        plot.on("plotly_relayout", (event) => zoom(target, event));
      }
    }, { rootMargin: "300px" });
    for (const element of elements) {
      seen.observe(element);
      element.addEventListener("change", () => drawn.has(element) && draw(element));
    }
    const redraw = () => [...drawn.keys()].forEach(draw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    document.addEventListener("schemechange", redraw);
  }

  start();
})();
