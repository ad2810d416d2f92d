// SPDX-License-Identifier: BSD-2-Clause
// Follows the events of a run that is not over: moves the progress bar, says what is being done, and loads the page anew
// when the state changes. The browser's EventSource resumes by itself with Last-Event-ID after a broken connection.
"use strict";

(() => {
  const box = document.querySelector("[data-events]");
  const bar = box.querySelector("progress");
  const text = box.querySelector("[data-progress-text]");
  const events = new EventSource(box.dataset.events);

  function onEvent(message) {
    const event = JSON.parse(message.data);
    if (event.fraction !== undefined) bar.value = event.fraction;
    if (event.text !== undefined) text.textContent = event.text;
  }

  events.addEventListener("message", onEvent);
  events.addEventListener("state", () => location.reload());
})();
