// Loads the page again every few seconds and replaces what is shown; all of it is made by the server.
"use strict";

const live = {
  everyMs: 3000,
  longestMs: 30000, // A server that takes longer than this is called lost.
  opened: new Map(), // What was folded or unfolded stays so, also when it was away for a while.

  // The next request follows the answer, so that a slow server gets one at a time.
  async renew() {
    if (!document.hidden) {
      const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(this.longestMs) })
        .then((found) => (found.ok ? found.text() : null)).catch(() => null);
      byId("lost").hidden = answer !== null; // The server has ended, or is busy; the next try may succeed.
      if (answer !== null) this.show(new DOMParser().parseFromString(answer, "text/html"));
    }
    setTimeout(() => this.renew(), this.everyMs);
  },

  key: (each) => `${each.closest("section")?.id} ${each.className}`,

  show(page) {
    const [shown, news] = [byId("live"), document.importNode(page.getElementById("live"), true)];
    const focused = shown.contains(document.activeElement) ? this.key(document.activeElement.parentElement) : null;
    for (const each of shown.querySelectorAll("details")) this.opened.set(this.key(each), each.open);
    shown.replaceWith(news);
    for (const each of news.querySelectorAll("details")) {
      each.open = this.opened.get(this.key(each)) ?? each.open;
      if (focused === this.key(each)) each.querySelector("summary").focus({ preventScroll: true });
    }
    const text = page.getElementById("headline").textContent;
    if (byId("headline").textContent !== text) byId("headline").textContent = text; // Read aloud only when it changes.
  },
};

setTimeout(() => live.renew(), live.everyMs);
