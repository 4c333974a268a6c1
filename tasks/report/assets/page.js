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

// Dark or light as the system says, also while the page is open.
const dark = matchMedia("(prefers-color-scheme: dark)");
const applyTheme = () => { document.documentElement.dataset.theme = dark.matches ? "dark" : "light"; };
applyTheme();
dark.addEventListener("change", applyTheme);
