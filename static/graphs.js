// SPDX-License-Identifier: BSD-2-Clause
// Makes the graphs of a page interactive with Plotly once they come into view: values under the pointer, zoom, export.
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
  const library = document.currentScript.dataset.plotly;
  const drawn = new Map();

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
    const axis = { gridcolor: line, linecolor: line, zeroline: false, zerolinecolor: muted, automargin: true };
    const { layout } = figure;
    const inside = labelsInside(layout.yaxis);
    const notes = [...(layout.annotations || []), ...inside];
    const top = 30 + Math.max(0, ...notes.map((note) => note.yshift || 0));
    return {
      data,
      layout: {
        ...layout,
        xaxis: { ...axis, ...layout.xaxis },
        yaxis: { ...axis, ...layout.yaxis, ...(inside.length && { showticklabels: false }) },
        shapes: (layout.shapes || []).map((shape) => ({ ...shape, line: { ...shape.line, color: muted } })),
        annotations: notes.map((note) => ({ ...note, showarrow: false })),
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
    return plot;
  }

  function open(event) {
    const address = event.points[0].customdata;
    if (address) location.assign(address);
  }

  async function zoom(element, event) {
    // The server thins large figures, so the visible part is fetched again after a zoom.
    const by = drawn.get(element).layout.meta?.zoom;
    const [from, to] = [event["xaxis.range[0]"], event["xaxis.range[1]"]];
    if (!by || (from === undefined && !event["xaxis.autorange"])) return;
    // Bounds of a time axis are texts; those of an axis of runs are numbers between two runs.
    const bounds = by === "run" ? { from: Math.floor(from), to: Math.ceil(to) } : { from, to };
    const figures = await figuresOf(from === undefined ? { by } : { by, ...bounds });
    if (!figures[element.dataset.graph]) return;
    drawn.set(element, figures[element.dataset.graph]);
    draw(element);
  }

  async function figuresOf(more) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries({ ...more, graphs: "json" })) query.set(name, value);
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
    const [figures] = await Promise.all([figuresOf({}), load(library)]);
    const seen = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        drawn.set(target, figures[target.dataset.graph]);
        const plot = draw(target);
        plot.on("plotly_click", open);
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
