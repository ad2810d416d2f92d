// SPDX-License-Identifier: BSD-2-Clause
// Sorts tables by a column, and filters their rows by words, in place. Pages work without it: long lists have the same
// as query parameters.
"use strict";

(() => {
  const FEWEST_SORTED = 5;
  const FEWEST_FILTERED = 12;
  // A number as pages write it: U+2212 as its sign, thin spaces between groups of digits, × or a mark before it.
  const NUMBER = /[\u2212-]?\d[\d\u202f\u2009\u00a0]*(?:\.\d+)?/;
  const FIRST = new RegExp(`^[^\\w\u2212-]{0,3}(${NUMBER.source})\\s?([kMGT](?=[a-zA-Z]))?`);
  const CHANGE = new RegExp(`(${NUMBER.source})\\s?%`);
  const DURATION = /^(?:\d+\s(?:d|h|min|s)\b\s?)+$/;
  const SECONDS = { d: 86400, h: 3600, min: 60, s: 1 };
  const PREFIX = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
  const words = new Intl.Collator("en", { numeric: true });

  // What a cell is sorted by: its time, duration, first number or change, else its text; "" sorts last.
  function key(cell) {
    const time = cell.querySelector("time[datetime]");
    if (time) return Date.parse(time.dateTime);
    const text = cell.textContent.trim().replace(/\s*\n\s*/g, " ");
    if (DURATION.test(text)) {
      return [...text.matchAll(/(\d+)\s(d|h|min|s)\b/g)].reduce((sum, [, count, unit]) => sum + count * SECONDS[unit], 0);
    }
    const found = FIRST.exec(text) || CHANGE.exec(text);
    if (!found) return text === "–" ? "" : text;
    return Number(found[1].replace("\u2212", "-").replace(/[\u202f\u2009\u00a0]/g, "")) * (PREFIX[found[2]] || 1);
  }

  function compare(one, other) {
    if (one === other) return 0;
    if (one === "") return 1;
    if (other === "") return -1;
    if (typeof one === "number" && typeof other === "number") return one - other;
    return words.compare(String(one), String(other));
  }

  function sort(table, head, buttons) {
    const rising = head.ariaSort !== "ascending";
    for (const button of buttons) {
      button.parentElement.ariaSort = null;
      button.textContent = "↕";
    }
    head.ariaSort = rising ? "ascending" : "descending";
    head.querySelector("button.sort").textContent = rising ? "▴" : "▾";
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row.cells[head.cellIndex]), row]);
    rows.sort(([one], [other]) => (one === "" || other === "" || rising ? compare(one, other) : compare(other, one)));
    body.append(...rows.map(([, row]) => row));
  }

  // Only tables in which a column is one cell of each row.
  function isPlain(table) {
    const [head, ...others] = table.tHead?.rows || [];
    const rows = table.tBodies.length === 1 ? [...table.tBodies[0].rows] : [];
    const cells = [head, ...rows].flatMap((row) => [...(row?.cells || [])]);
    return head && !others.length && !table.tFoot && rows.length >= FEWEST_SORTED
      && rows.every((row) => row.cells.length === head.cells.length)
      && cells.every((cell) => cell.colSpan === 1 && cell.rowSpan === 1);
  }

  function offerSort(table) {
    const buttons = [];
    for (const head of table.tHead.rows[0].cells) {
      const name = head.textContent.trim();
      if (!name) continue;
      const button = document.createElement("button");
      button.className = "sort";
      button.type = "button";
      button.textContent = "↕";
      button.ariaLabel = `Sort by ${name}`;
      button.addEventListener("click", () => sort(table, head, buttons));
      head.append(" ", button);
      buttons.push(button);
    }
  }

  function offerFilter(table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < FEWEST_FILTERED) return;
    const input = document.createElement("input");
    input.type = "search";
    input.className = "filter";
    input.placeholder = "Filter rows";
    input.ariaLabel = `Filter rows: ${table.caption?.textContent.trim() || "table"}`;
    const count = document.createElement("output");
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = input.value ? `${shown} of ${rows.length}` : "";
    });
    const line = document.createElement("p");
    line.className = "filtering";
    line.append(input, " ", count);
    (table.closest(".scroll") || table).before(line);
  }

  for (const table of document.querySelectorAll("main table")) {
    if (!isPlain(table)) continue;
    offerSort(table);
    offerFilter(table);
  }
})();
