// SPDX-License-Identifier: BSD-2-Clause
// Draws the figures of a page with Plotly. Figures come without colours; these are taken from the style sheet, so that
// graphs follow the browser's light or dark scheme like everything else. Without this script the tables say the same.
"use strict";

(() => {
  const config = { displaylogo: false, showSendToCloud: false, responsive: true, modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"] };

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function coloured(figure) {
    const line = colour("line");
    const data = figure.data.map((trace) => ({
      ...trace,
      marker: { ...trace.marker, color: colour(trace.meta.role) },
      hoverlabel: { namelength: 0 },
      ...(trace.error_x && { error_x: { ...trace.error_x, color: colour(trace.meta.role) } }),
    }));
    const axis = { gridcolor: line, linecolor: line, zerolinecolor: colour("muted"), automargin: true };
    const { layout } = figure;
    return {
      data,
      layout: {
        ...layout,
        xaxis: { ...axis, ...layout.xaxis },
        yaxis: { ...axis, ...layout.yaxis },
        shapes: (layout.shapes || []).map((shape) => ({ ...shape, line: { ...shape.line, color: line } })),
        font: { family: "system-ui, sans-serif", size: 12, color: colour("text") },
        paper_bgcolor: "rgba(0,0,0,0)",
        plot_bgcolor: "rgba(0,0,0,0)",
        legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom" },
        margin: { l: 60, r: 10, t: 30, b: 40 },
      },
    };
  }

  function draw() {
    for (const element of document.querySelectorAll("[data-figure]")) {
      const figure = coloured(JSON.parse(document.getElementById(element.dataset.figure).textContent));
      Plotly.react(element, figure.data, figure.layout, config);
    }
  }

  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
