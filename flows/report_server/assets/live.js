// Asks for the page again every few seconds and puts what changed in place; the server says all that is shown.
"use strict";

const live = {
  everyMs: 3000,
  opened: new Set(), // The ids of what was unfolded: it stays so, also when it was away for a while.

  async renew() {
    if (document.hidden) return;
    const lost = document.getElementById("lost");
    try {
      const answer = await fetch(location.pathname, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      this.show(page);
      lost.hidden = true;
    } catch {
      lost.hidden = false; // The server has ended, or is busy; it is asked again.
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
    if (headline.textContent !== text) headline.textContent = text; // Said aloud only when it is another one.
  },
};

setInterval(() => live.renew(), live.everyMs);
document.addEventListener("visibilitychange", () => live.renew());
