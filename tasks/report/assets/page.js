// Helpers for all pages: elements, and calls that a browser may refuse.
"use strict";

// Returns a text in which characters that hide or reorder text are codes, such as \u202e. The page has the rule
// (`visible` in tasks/rules/text/characters.py).
const hiddenCharacters = new RegExp(document.documentElement.dataset.hidden, "gu");
const visible = (text) => text.replace(hiddenCharacters, (char) => {
  if (char === "\r") return "\\r";
  const code = char.codePointAt(0);
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(digits, "0")}`;
});

// Makes an element. Attributes that are null or false are left out; a function listens to the event that its attribute
// names. Children that are strings stay text, in which hidden characters are visible.
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (![null, undefined, false].includes(value)) element.setAttribute(name, value === true ? "" : value);
  }
  const shown = children.flat(Infinity).filter((child) => ![null, undefined, false, ""].includes(child));
  element.append(...shown.map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
};

const byId = (id) => document.getElementById(id);
const para = (kind, ...children) => make("p", { class: kind }, children);
const scrolling = (tag, kind, ...children) => make(tag, { class: `scroll ${kind}`, tabindex: 0 }, children);
const options = (pairs, chosen) =>
  pairs.map(([value, text]) => Object.assign(make("option", { value }, text), { selected: value === chosen }));
const folded = (attributes, title, ...children) => make("details", attributes, make("summary", {}, title), children);

// A browser may forbid storage and changes of the address; then a choice is valid for this page only.
const attempt = (work) => { try { return work(); } catch { return null; } };
