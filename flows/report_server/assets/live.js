// Loads the page again every few seconds and replaces what is shown; all of it is made by the server.
"use strict";

const live = {
  everyMs: 3000,
  longestMs: 30000, // A server that takes longer than this is called lost.
  isLoading: false,
  opened: new Map(), // What was folded or unfolded stays so, also when it was away for a while.

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

  key: (each) => `${each.closest("section")?.id} ${each.className}`,

  show(page) {
    const [shown, news] = [document.getElementById("live"), document.importNode(page.getElementById("live"), true)];
    const focused = shown.contains(document.activeElement) ? this.key(document.activeElement.parentElement) : null;
    const scrolled = new Map([...shown.querySelectorAll(".scroll")].map((each) => [this.key(each), [each.scrollLeft, each.scrollTop]]));
    for (const each of shown.querySelectorAll("details")) this.opened.set(this.key(each), each.open);
    shown.replaceWith(news);
    for (const each of news.querySelectorAll("details")) {
      each.open = this.opened.get(this.key(each)) ?? each.open;
      if (focused === this.key(each)) each.querySelector("summary").focus({ preventScroll: true });
    }
    for (const each of news.querySelectorAll(".scroll")) each.scrollTo(...(scrolled.get(this.key(each)) ?? [0, 0]));
    const headline = document.getElementById("headline");
    const text = page.getElementById("headline").textContent;
    if (headline.textContent !== text) headline.textContent = text; // Read aloud only when it changes.
  },
};

setInterval(() => live.renew(), live.everyMs);
document.addEventListener("visibilitychange", () => live.renew());
