// SPDX-License-Identifier: BSD-2-Clause
// Follows the events of a run that is not over (perfweb/runs/progress.py lists them): moves the bar, says what is being
// done, lists what has been measured, and loads the page anew at the end. A page that is opened late gets all
// events from the first; after a broken connection the browser's EventSource goes on where it stopped.
"use strict";

(() => {
  const LONGEST_LIST = 8;
  const MOST_STREAMS = 4; // of the six connections that a browser opens to a server, two are left for everything else
  const REFUSED_MS = 5000;
  const IDLE = ["queued", "paused"]; // a run that waits has no bar, which would move
  const format = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });

  // Narrow blanks between thousands, as everywhere else on the pages.
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

    function tell(words) {
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
        tell(`${event.test} on ${event.variant}: ${result}`);
      },
      decided(event) {
        tell(`${event.topology}, ${event.server}: decided after ${event.boots} of ${event.planned} boots of each variant`);
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

    // A browser comes again by itself when a stream breaks off, but not when it was refused, as with 503. Then the page
    // polls: each answer ends at once, and says when to come again.
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
