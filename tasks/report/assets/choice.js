// Which models and which judge the charts and tables of a page show; kept from page to page.
"use strict";

const choice = {
  key: "prbench-choice",
  listeners: [], // Are told what is chosen, at first and whenever it changes.
  boxes: () => [...document.querySelectorAll("#choice input[name=model]")],
  offered: {
    model: () => choice.boxes().map((box) => box.value),
    judging: () => [...document.getElementById("judging").options].map((option) => option.value),
  },

  restore() {
    let stored = {};
    try {
      stored = JSON.parse(sessionStorage.getItem(this.key) ?? "{}");
    } catch {
      return; // Storage can be off, or hold something else.
    }
    const judging = document.getElementById("judging");
    if ([...judging.options].some((option) => option.value === stored.judging)) judging.value = stored.judging;
    if (!Array.isArray(stored.without)) return;
    const without = new Set(stored.without);
    this.boxes().forEach((box) => { box.checked = !without.has(box.value); });
  },

  apply() {
    const boxes = this.boxes();
    const models = boxes.filter((box) => box.checked).map((box) => box.value);
    const judging = document.getElementById("judging").value;
    document.getElementById("n-models").textContent = `${models.length} of ${boxes.length}`;
    const chosen = { model: models.length === boxes.length ? null : models, judging: judging ? [judging] : null };
    this.listeners.forEach((listener) => listener(chosen));
  },

  store() {
    const boxes = this.boxes();
    const judging = document.getElementById("judging").value;
    try {
      const without = boxes.filter((box) => !box.checked).map((box) => box.value);
      sessionStorage.setItem(this.key, JSON.stringify({ judging, without }));
    } catch {
      // Then the choice holds for this page only.
    }
  },

  check(isChecked) {
    this.boxes().forEach((box) => { box.checked = isChecked; });
    this.change();
  },

  change() {
    this.store();
    this.apply();
  },
};

document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("choice");
  if (!form) {
    charts.drawAll(); // A page on which nothing depends on models or judges.
    return;
  }
  form.hidden = choice.boxes().length === 0;
  choice.restore();
  form.addEventListener("change", () => choice.change());
  document.getElementById("all-models").addEventListener("click", () => choice.check(true));
  document.getElementById("no-models").addEventListener("click", () => choice.check(false));
  choice.apply();
});
