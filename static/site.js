// SPDX-License-Identifier: BSD-2-Clause
// The colour scheme that a reader has chosen, who is signed in, keys to move through a page, buttons that copy commands,
// choices of the search, and relative times. It runs before the page is painted, so that a dark page is never light at
// first. Without it, pages follow the browser's scheme.
"use strict";

(() => {
  const COPIED_MS = 2000;
  const SHORTEST_WORD = 3;
  const TYPING_MS = 150;
  const UNITS = [["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const relative = new Intl.RelativeTimeFormat("en", { style: "narrow" });
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");

  // Browsers may forbid a page to keep anything.
  function kept(name) {
    try { return localStorage.getItem(name); } catch { return null; }
  }

  function keep(name, value) {
    try { localStorage.setItem(name, value); } catch { /* it holds for this page only */ }
  }

  function scheme() {
    return root.dataset.scheme || (dark.matches ? "dark" : "light");
  }

  function choose(name) {
    if (name === "dark" || name === "light") root.dataset.scheme = name;
  }

  function offerScheme(header) {
    const button = document.createElement("button");
    const label = () => { button.textContent = `${scheme() === "dark" ? "light" : "dark"} colours`; };
    button.className = "scheme";
    label();
    button.addEventListener("click", () => {
      choose(scheme() === "dark" ? "light" : "dark");
      keep("scheme", scheme());
      label();
      document.dispatchEvent(new Event("schemechange"));
    });
    dark.addEventListener("change", label);
    header.append(button);
  }

  // The name that the service has set when the reader signed in; empty for nobody.
  function reader() {
    const found = document.cookie.split("; ").find((pair) => pair.startsWith("account="));
    try { return decodeURIComponent(found?.slice("account=".length) || ""); } catch { return ""; }
  }

  // Pages are the same for all readers, so that they can be cached. The link to the account gets its name here.
  function showReader(link) {
    const name = reader();
    const { signIn } = link.dataset;
    link.textContent = name || "sign in";
    if (name) link.setAttribute("aria-label", `${name}: your account`);
    else if (location.pathname !== signIn) link.href = `${signIn}?next=${encodeURIComponent(location.pathname + location.search)}`;
  }

  // The first link of each row of a table, those of rows in closed parts left out.
  function links() {
    const rows = [...document.querySelectorAll("main tbody tr")];
    return rows.map((row) => row.querySelector("a")).filter((link) => link?.checkVisibility());
  }

  function move(by) {
    const all = links();
    const row = document.activeElement.closest("main tbody tr");
    const at = row ? all.findIndex((link) => row.contains(link)) : by > 0 ? -1 : all.length;
    const link = all[at + by];
    link?.focus();
    link?.scrollIntoView({ block: "nearest" });
  }

  // How long ago a time is, in its largest unit: beside the times of a page's head and of lists, elsewhere as a tooltip.
  function tellAges() {
    for (const time of document.querySelectorAll("time[datetime]")) {
      const seconds = (new Date(time.dateTime) - Date.now()) / 1000;
      const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) || UNITS.at(-1);
      const age = relative.format(Math.trunc(seconds / length), unit);
      time.title = age;
      if (!time.closest(".facts, .dated")) continue;
      const beside = document.createElement("small");
      beside.textContent = ` ${age}`;
      time.after(beside);
    }
  }

  // A clipboard is there on pages from a secure origin only.
  function offerCopies() {
    if (!navigator.clipboard) return;
    for (const command of document.querySelectorAll("pre.command")) command.after(copyButton("Copy", () => command.textContent));
    for (const strip of document.querySelectorAll(".strip")) strip.append(copyButton("Copy link", () => location.href));
  }

  function copyButton(label, text) {
    const button = document.createElement("button");
    button.className = "copy";
    button.textContent = label;
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, COPIED_MS);
    });
    return button;
  }

  // Names with the typed text, as choices of the search field. The browser shows them; one that is chosen opens its page.
  function offerNames(form) {
    const field = form.querySelector("input");
    const choices = document.createElement("datalist");
    let names = {};
    let waiting = 0;
    async function ask() {
      const text = field.value.trim();
      if (text.length < SHORTEST_WORD) return;
      const answer = await fetch(`${form.dataset.names}?q=${encodeURIComponent(text)}`).catch(() => null);
      if (!answer?.ok || field.value.trim() !== text) return;
      names = await answer.json();
      choices.replaceChildren(...Object.keys(names).map((name) => new Option(name, name)));
    }
    choices.id = "names";
    form.append(choices);
    field.setAttribute("list", choices.id);
    field.autocomplete = "off";
    field.addEventListener("input", (event) => {
      const chosen = !event.inputType || event.inputType === "insertReplacementText";
      if (chosen && Object.hasOwn(names, field.value)) location.assign(names[field.value]);
      clearTimeout(waiting);
      waiting = setTimeout(ask, TYPING_MS);
    });
  }

  const keys = {
    "/": ["search", () => document.querySelector("form.search input").focus()],
    j: ["the next row of a table", () => move(1)],
    k: ["the row before it", () => move(-1)],
    "?": ["this list", help],
  };

  function help() {
    const dialog = document.createElement("dialog");
    dialog.innerHTML = "<form method=dialog><h2>Keys</h2><dl class=changes></dl>"
      + "<p><label><input type=checkbox> Keys are on</label></p><button>Close</button></form>";
    for (const [key, [meaning]] of Object.entries(keys)) {
      for (const [tag, text] of [["dt", key], ["dd", meaning]]) {
        const part = document.createElement(tag);
        part.textContent = text;
        dialog.querySelector("dl").append(part);
      }
    }
    const box = dialog.querySelector("input");
    box.checked = kept("keys") !== "off";
    box.addEventListener("change", () => keep("keys", box.checked ? "on" : "off"));
    dialog.setAttribute("aria-label", "Keys");
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  function press(event) {
    const own = Object.hasOwn(keys, event.key) && (event.key === "?" || kept("keys") !== "off");
    const elsewhere = event.ctrlKey || event.altKey || event.metaKey || document.querySelector("dialog[open]");
    if (!own || elsewhere || event.target.closest?.("input, select, textarea")) return;
    event.preventDefault();
    keys[event.key][1]();
  }

  choose(kept("scheme"));
  document.addEventListener("DOMContentLoaded", () => {
    showReader(document.querySelector("a[data-sign-in]"));
    offerScheme(document.querySelector("header.site"));
    offerCopies();
    offerNames(document.querySelector("form.search"));
    tellAges();
  });
  document.addEventListener("keydown", press);
})();
