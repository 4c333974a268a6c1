// Helpers for all pages: elements, and calls that a browser may refuse.
"use strict";

// Makes an element. Attributes that are null or false are left out; a function listens to the event that its attribute
// names. Children that are strings stay text.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (![null, undefined, false].includes(value)) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => ![null, undefined, false, ""].includes(child)));
  return element;
};

const byId = (id) => document.getElementById(id);
const para = (kind, ...children) => make("p", { class: kind }, children);
const scrolling = (tag, kind, ...children) => make(tag, { class: kind, tabindex: 0 }, children);
const options = (pairs, chosen) =>
  pairs.map(([value, text]) => Object.assign(make("option", { value }, text), { selected: value === chosen }));
const folded = (attributes, title, ...children) => make("details", attributes, make("summary", {}, title), children);

// A browser may forbid storage and changes of the address; then a choice is valid for this page only.
const attempt = (work) => { try { return work(); } catch { return null; } };
