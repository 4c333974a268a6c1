// Loads the page again every few seconds and replaces its content, which the server makes.
"use strict";

const live = {
  everyMs: 3000,
  opened: new Map(), // Key of a folding part -> whether it is open; kept while the part is missing.

  // Sends the next request after each response, so that a slow server gets one request at a time.
  async renew() {
    if (!document.hidden) {
      const html = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(10 * this.everyMs) })
        .then((response) => (response.ok ? response.text() : null)).catch(() => null);
      byId("lost").hidden = html !== null; // The server has ended or is busy.
      if (html !== null) this.show(new DOMParser().parseFromString(html, "text/html"));
    }
    setTimeout(() => this.renew(), this.everyMs);
  },

  key: (element) => `${element.closest("section")?.id} ${element.className}`,

  show(page) {
    const content = byId("live");
    const newContent = document.importNode(page.getElementById("live"), true);
    const focus = document.activeElement;
    const focusedKey = content.contains(focus) ? this.key(focus.parentElement) : null;
    for (const details of content.querySelectorAll("details")) this.opened.set(this.key(details), details.open);
    content.replaceWith(newContent);
    for (const details of newContent.querySelectorAll("details")) {
      const key = this.key(details);
      details.open = this.opened.get(key) ?? details.open;
      if (focusedKey === key) details.querySelector("summary").focus({ preventScroll: true });
    }
    const text = page.getElementById("headline").textContent;
    if (byId("headline").textContent !== text) byId("headline").textContent = text; // Read aloud only when it changes.
  },
};

setTimeout(() => live.renew(), live.everyMs);
