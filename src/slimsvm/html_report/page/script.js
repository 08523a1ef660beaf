"use strict";
(() => {
  const charts = [...document.querySelectorAll("#charts .chart")];
  if (!charts.length) return;
  const cost = document.getElementById("cost"), budget = document.getElementById("budget");
  const value = document.getElementById("budget-value"), choice = document.getElementById("choice");
  const tip = document.getElementById("tip");
  const shown = () => charts.find((chart) => !chart.hidden);
  const points = (chart) => [...chart.querySelectorAll(".point")];

  // The cheapest model of this kind whose loss is within the budget.
  function choose() {
    const limit = Number(budget.value) + 1e-12;
    value.textContent = Number(budget.value).toFixed(4);
    for (const chart of charts) {
      const svg = chart.querySelector("svg"), own = points(chart).filter((p) => p.dataset.kind !== "baseline");
      const within = own.filter((p) => Number(p.dataset.loss) <= limit);
      within.sort((a, b) => a.dataset.cost - b.dataset.cost || b.dataset.score - a.dataset.score);
      own.forEach((p) => p.classList.toggle("chosen", p === within[0]));
      const parent = own.find((p) => p.dataset.kind === "parent");
      const line = svg.querySelector(".budget"), { low, high, bottom, top } = svg.dataset;
      if (parent) {
        const share = (parent.dataset.score - limit - low) / (high - low);
        const y = Number(bottom) + share * (top - bottom);
        line.setAttribute("y1", y);
        line.setAttribute("y2", y);
        line.style.visibility = share >= 0 && share <= 1 ? "visible" : "hidden";
      }
      if (chart === shown()) {
        const found = within[0] ? within[0].getAttribute("aria-label") : "no model is within this budget";
        choice.textContent = `Cheapest within the budget: ${found}.`;
      }
    }
  }

  function tell(point) {
    document.querySelectorAll(".point.over").forEach((p) => p.classList.remove("over"));
    tip.hidden = !point;
    if (!point) return;
    point.classList.add("over");
    tip.textContent = point.getAttribute("aria-label");
    const place = point.getBoundingClientRect(), room = document.getElementById("charts").getBoundingClientRect();
    const left = place.left - room.left + place.width / 2 - tip.offsetWidth / 2;
    tip.style.left = `${Math.max(0, Math.min(left, room.width - tip.offsetWidth))}px`;
    const above = place.top - room.top - tip.offsetHeight - 8;
    tip.style.top = `${above < 0 ? place.bottom - room.top + 8 : above}px`;
  }

  for (const chart of charts) {
    const all = points(chart);
    if (all.length) all[0].setAttribute("tabindex", "0");
    all.forEach((point, i) => {
      point.addEventListener("mouseenter", () => tell(point));
      point.addEventListener("mouseleave", () => tell(null));
      point.addEventListener("focus", () => tell(point));
      point.addEventListener("blur", () => tell(null));
      point.addEventListener("keydown", (event) => {
        const to = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: all.length - 1 }[event.key];
        if (event.key === "Escape") tell(null);
        if (to === undefined || !all[to]) return;
        event.preventDefault();
        point.setAttribute("tabindex", "-1");
        all[to].setAttribute("tabindex", "0");
        all[to].focus();
      });
    });
  }
  cost.addEventListener("change", () => {
    charts.forEach((chart) => (chart.hidden = chart.dataset.name !== cost.value));
    tell(null);
    choose();
  });
  budget.addEventListener("input", choose);
  choose();
})();
