// SPDX-License-Identifier: BSD-2-Clause
// Follows the events of a run in progress (perfweb/runs/progress.py lists them): moves the bar, shows the current
// activity, lists results, and reloads the page at the end. A page that is opened late gets all events from the first;
// after a broken connection the browser's EventSource continues where it stopped.
"use strict";

(() => {
  const LONGEST_LIST = 8;
  const MOST_STREAMS = 4; // leaves two of a browser's six connections to a server for other requests
  const REFUSED_MS = 5000;
  const IDLE = ["queued", "paused"]; // states without a bar, because a bar without a value is animated
  const format = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });

  // Narrow spaces between thousands, as on all pages.
  function number(value) {
    return format.format(value).replaceAll(",", "\u202f");
  }

  // Ids of events are milliseconds, "-", and a number within them. A new connection begins with the first event.
  function isNewer(id, than) {
    const [a, b] = [id, than || "0-0"].map((text) => text.split("-").map(Number));
    return a[0] > b[0] || (a[0] === b[0] && a[1] > b[1]);
  }

  function quantity(value, unit) {
    return unit === "bits/s" ? `${number(value / 1e9)} Gbit/s` : `${number(value)} ${unit}`;
  }

  function follow(box) {
    const bar = box.querySelector("progress");
    const [text, left, list] = ["doing", "left", "measured"].map((name) => box.querySelector(`[data-${name}]`));

    function listItem(words) {
      const item = document.createElement("li");
      item.textContent = words;
      list.prepend(item);
      while (list.children.length > LONGEST_LIST) list.lastChild.remove();
    }

    const handlers = {
      state(event) {
        bar.hidden = IDLE.includes(event.state);
        if (bar.hidden) left.textContent = "";
        text.textContent = event.reason ? `${event.state}: ${event.reason}` : event.state;
      },
      boot(event) {
        text.textContent = `boot ${event.position + 1} of ${event.boots}: ${event.variant}, ${event.topology}, ${event.server}`;
      },
      measuring(event) {
        text.textContent = `${event.test} on ${event.variant}`;
      },
      measurement(event) {
        const result = event.state === "ok" ? quantity(event.mean, event.unit) : `${event.state}: ${event.reason}`;
        listItem(`${event.test} on ${event.variant}: ${result}`);
      },
      decided(event) {
        listItem(`${event.topology}, ${event.server}: decided after ${event.boots} of ${event.planned} boots of each variant`);
      },
      eta(event) {
        bar.value = event.fraction;
        left.textContent = event.seconds >= 60 ? `about ${Math.round(event.seconds / 60)} min left` : `about ${event.seconds} s left`;
      },
      over() {
        events.close();
        location.reload();
      },
    };

    let events;
    let last = "";

    // A browser reconnects by itself after a broken stream, but not after a refusal such as 503. Then the page polls:
    // each response ends at once and has the time until the next request.
    function connect(address) {
      events = new EventSource(address);
      for (const [name, handle] of Object.entries(handlers)) {
        events.addEventListener(name, (message) => {
          if (name !== "over" && !isNewer(message.lastEventId, last)) return; // "over" has no id of its own
          last = message.lastEventId;
          handle(JSON.parse(message.data));
        });
      }
      events.addEventListener("error", () => {
        if (events.readyState === EventSource.CLOSED) setTimeout(connect, REFUSED_MS, `${box.dataset.events}?once`);
      });
    }

    connect(box.dataset.events);
  }

  [...document.querySelectorAll("[data-events]")].slice(0, MOST_STREAMS).forEach(follow);
})();
