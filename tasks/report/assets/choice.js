// The choice of models and a judge for the charts and tables of a page. It is kept from page to page; the judge is also
// in the address. The event `choice` tells which models and judges are left out, at the start and at each change, so
// scripts that listen to it come earlier.
"use strict";

const choice = {
  key: "prbench-choice",
  without: null, // Models that the user left out; null if the user chose nothing, so the page shows the first ones.
  boxes: () => [...document.querySelectorAll("#choice input[name=model]")],
  unchecked: () => choice.boxes().filter((box) => !box.checked).map((box) => box.value),
  offered: () => [...choice.judges.options].map((option) => option.value),

  start(form) {
    this.judges = byId("judge_config");
    this.orders = new Map(Object.entries(JSON.parse(byId("orders").textContent)));
    this.most = Number(form.dataset.most);
    this.main = this.judges.value; // The judge that the page starts with.
    form.hidden = this.boxes().length === 0;
    const stored = attempt(() => JSON.parse(sessionStorage.getItem(this.key)));
    const requested = new URLSearchParams(location.search).get("judge") ?? stored?.judge_config;
    if (this.offered().includes(requested)) this.judges.value = requested;
    this.without = stored?.without ?? null;
    if (this.judges.value !== this.main) this.link();
    form.addEventListener("change", ({ target }) => this.change(target.name === "model"));
    for (const [id, isChecked] of [["all-models", true], ["no-models", false]]) {
      byId(id).addEventListener("click", () => {
        this.boxes().forEach((box) => { box.checked = isChecked; });
        this.change(true);
      });
    }
    this.apply();
  },

  // Sorts the models by their order under the chosen judge; checks the first ones if the user chose nothing.
  apply() {
    const judge_config = this.judges.value;
    const order = this.orders.get(judge_config) ?? this.orders.get(this.main) ?? [];
    // A model without a place in the order comes last.
    const rank = ({ value }) => (order.includes(value) ? order.indexOf(value) : order.length);
    const boxes = this.boxes().sort((firstBox, secondBox) => rank(firstBox) - rank(secondBox));
    byId("all-models").before(...boxes.map((box) => box.parentElement));
    boxes.forEach((box, n) => { box.checked = this.without ? !this.without.includes(box.value) : n < this.most; });
    const models = this.unchecked(); // Those that are left out.
    const judge = judge_config ? ` by ${judge_config}` : "";
    const note = this.without || !models.length ? "" : `, the best${judge}`;
    byId("n-models").textContent = `${boxes.length - models.length} of ${boxes.length} shown${note}`;
    const others = judge_config ? this.offered().filter((label) => label !== judge_config) : [];
    this.tell({ model: models, judge_config: others });
  },

  tell: (detail) => document.dispatchEvent(new CustomEvent("choice", { detail })),

  // Writes the judge into the address, so that a copied link shows the same page.
  link() {
    const judge = new URLSearchParams({ judge: this.judges.value });
    attempt(() => history.replaceState(null, "", `?${judge}${location.hash}`));
  },

  change(isOfModels) {
    if (isOfModels) this.without = this.unchecked();
    const stored = JSON.stringify({ judge_config: this.judges.value, without: this.without });
    attempt(() => sessionStorage.setItem(this.key, stored));
    this.link();
    this.apply();
  },
};

if (byId("choice")) choice.start(byId("choice"));
else choice.tell({ model: [], judge_config: [] }); // A page without a choice of models or judges.
