// Dark or light: what was chosen last, else what the machine says. Runs before the page is drawn, so nothing flashes.
"use strict";

const theme = {
  asked: window.matchMedia("(prefers-color-scheme: dark)"),
  listeners: [],
  stored() {
    try {
      return localStorage.getItem("prbench-theme");
    } catch {
      return null; // Storage can be off; then the machine's setting holds.
    }
  },
  get isDark() {
    return (this.stored() ?? (this.asked.matches ? "dark" : "light")) === "dark";
  },
  apply() {
    document.documentElement.dataset.theme = this.isDark ? "dark" : "light";
    this.listeners.forEach((listener) => listener());
  },
  toggle() {
    try {
      localStorage.setItem("prbench-theme", this.isDark ? "light" : "dark");
    } catch {
      return;
    }
    this.apply();
  },
};

theme.apply();
theme.asked.addEventListener("change", () => theme.apply());
document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const name = () => { button.textContent = theme.isDark ? "Light" : "Dark"; };
  button.hidden = false;
  button.addEventListener("click", () => theme.toggle());
  theme.listeners.push(name);
  name();
});
