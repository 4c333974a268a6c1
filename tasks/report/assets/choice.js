// Which models and which judge the charts and tables of a page show; kept from page to page, the judge in the link too.
"use strict";

const choice = {
  key: "prbench-choice",
  listeners: [], // Called with what is chosen, at first and whenever it changes.
  without: null, // The models that somebody left out; null: nobody chose, so the page shows those that it begins with.
  form: () => document.getElementById("choice"),
  select: () => document.getElementById("judging"),
  boxes: () => [...document.querySelectorAll("#choice input[name=model]")],
  offered: {
    model: () => choice.boxes().map((box) => box.value),
    judging: () => [...choice.select().options].map((option) => option.value),
  },

  restore() {
    this.orders = JSON.parse(document.getElementById("orders").textContent);
    this.main = this.select().querySelector("option[selected]")?.value; // What the page begins with.
    let stored = {};
    try {
      stored = JSON.parse(sessionStorage.getItem(this.key) ?? "{}");
    } catch {
      // Storage can be off, or hold something else.
    }
    const asked = new URLSearchParams(location.search).get("judge") ?? stored.judging;
    if (this.offered.judging().includes(asked)) this.select().value = asked;
    if (Array.isArray(stored.without)) this.without = stored.without;
    if (this.select().value !== this.main) this.link();
    this.arrange();
  },

  // Brings the models into the order of the chosen judge, and shows the first of them where nobody chose.
  arrange() {
    const { value } = this.select();
    const order = [value, this.main].filter((each) => Object.hasOwn(this.orders, each)).map((each) => this.orders[each])[0] ?? [];
    const place = (box) => (order.indexOf(box.value) + order.length + 1) % (order.length + 1);
    const sorted = this.boxes().sort((one, other) => place(one) - place(other));
    document.getElementById("all-models").before(...sorted.map((box) => box.closest("label")));
    const most = Number(this.form().dataset.most ?? Infinity);
    sorted.forEach((box, number) => { box.checked = this.without ? !this.without.includes(box.value) : number < most; });
  },

  apply() {
    const boxes = this.boxes();
    const models = boxes.filter((box) => box.checked).map((box) => box.value);
    const judging = this.select().value;
    const isBest = !this.without && models.length < boxes.length;
    document.getElementById("n-models").textContent =
      `${models.length} of ${boxes.length} shown${isBest ? `, the best${judging ? ` by ${judging}` : ""}` : ""}`;
    const chosen = { model: models.length === boxes.length ? null : models, judging: judging ? [judging] : null };
    this.listeners.forEach((listener) => listener(chosen));
  },

  store() {
    const judging = this.select().value;
    try {
      sessionStorage.setItem(this.key, JSON.stringify({ judging, without: this.without }));
    } catch {
      // Then the choice holds for this page only.
    }
    this.link();
  },

  // Writes the judge into the address, so that a copied link shows the same.
  link() {
    try {
      history.replaceState(null, "", `?${new URLSearchParams({ judge: this.select().value })}${location.hash}`);
    } catch {
      // Browsers refuse it in some frames, and when it is called very often: then the address stays as it is.
    }
  },

  check(isChecked) {
    this.boxes().forEach((box) => { box.checked = isChecked; });
    this.change(true);
  },

  change(isOfModels) {
    if (isOfModels) this.without = this.boxes().filter((box) => !box.checked).map((box) => box.value);
    else this.arrange();
    this.store();
    this.apply();
  },
};

document.addEventListener("DOMContentLoaded", () => {
  const form = choice.form();
  if (!form) {
    charts.drawAll(); // A page on which nothing depends on models or judges.
    return;
  }
  form.hidden = choice.boxes().length === 0;
  choice.restore();
  form.addEventListener("change", ({ target }) => choice.change(target.name === "model"));
  document.getElementById("all-models").addEventListener("click", () => choice.check(true));
  document.getElementById("no-models").addEventListener("click", () => choice.check(false));
  choice.apply();
});
