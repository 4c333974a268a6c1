// What every page has: elements, and dark or light. Runs before the page is drawn, so nothing flashes.
"use strict";

// An element; attributes that are null or false are left out, and text is always text.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (![null, undefined, false].includes(value)) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => ![null, undefined, ""].includes(child)));
  return element;
};

const byId = (id) => document.getElementById(id);
const para = (kind, ...children) => make("p", { class: kind }, children);

// Storage and the address can be closed to a page: then what is chosen holds for this page only.
const attempt = (work) => {
  try {
    return work();
  } catch {
    return null;
  }
};

// What was chosen last, else what the machine says.
const theme = {
  system: matchMedia("(prefers-color-scheme: dark)"),
  listeners: [],
  stored: () => attempt(() => localStorage.getItem("prbench-theme")),
  apply(name = this.stored() ?? (this.system.matches ? "dark" : "light")) {
    this.name = document.documentElement.dataset.theme = name;
    this.listeners.forEach((listener) => listener());
  },
};

theme.apply();
theme.system.addEventListener("change", () => theme.apply());
document.addEventListener("DOMContentLoaded", () => {
  const button = byId("theme");
  const other = () => (theme.name === "dark" ? "Light" : "Dark");
  const name = () => { button.textContent = other(); };
  button.hidden = false;
  button.addEventListener("click", () => {
    attempt(() => localStorage.setItem("prbench-theme", other().toLowerCase()));
    theme.apply(other().toLowerCase());
  });
  theme.listeners.push(name);
  name();
});
