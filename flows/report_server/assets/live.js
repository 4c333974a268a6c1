// Loads the page again every few seconds and replaces what is shown; all of it is made by the server.
"use strict";

const live = {
  everyMs: 3000,
  longestMs: 30000, // A server that takes longer than this is called lost.
  isLoading: false,
  opened: new Set(), // The ids of what was unfolded: it stays so, also when it was away for a while.

  async renew() {
    if (document.hidden || this.isLoading) return;
    this.isLoading = true; // A slow server gets one request at a time.
    const lost = document.getElementById("lost");
    try {
      const answer = await fetch(location.pathname, { cache: "no-store", signal: AbortSignal.timeout(this.longestMs) });
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      this.show(page);
      lost.hidden = true;
    } catch {
      lost.hidden = false; // The server has ended, or is busy; the next try may succeed.
    } finally {
      this.isLoading = false;
    }
  },

  show(page) {
    const [shown, news] = [document.getElementById("live"), page.getElementById("live")];
    for (const each of shown.querySelectorAll("details[id]")) this.opened[each.open ? "add" : "delete"](each.id);
    for (const each of news.querySelectorAll("details[id]")) each.open = this.opened.has(each.id);
    const focused = document.activeElement?.id;
    shown.replaceWith(document.importNode(news, true));
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    const headline = document.getElementById("headline");
    const text = page.getElementById("headline").textContent;
    if (headline.textContent !== text) headline.textContent = text; // Read aloud only when it changes.
  },
};

setInterval(() => live.renew(), live.everyMs);
document.addEventListener("visibilitychange", () => live.renew());
