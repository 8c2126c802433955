"use strict";
for (const form of document.querySelectorAll("form.filter")) {
  const cases = [...form.parentElement.querySelectorAll("article.case")];
  const shown = form.querySelector("output");
  const texts = cases.map((each) => each.textContent.toLowerCase());
  const slices = cases.map((each) => JSON.parse(each.dataset.slices).map((pair) => JSON.stringify(pair)));
  const value = (name) => (form.elements[name] ? form.elements[name].value : "");
  const apply = () => {
    const words = value("text").toLowerCase().split(/\s+/).filter(Boolean);
    const direction = value("direction");
    const slice = value("slice") && JSON.stringify(JSON.parse(value("slice")));
    let count = 0;
    cases.forEach((each, i) => {
      const fits = words.every((word) => texts[i].includes(word)) && (!direction || each.dataset.direction === direction) && (!slice || slices[i].includes(slice));
      each.hidden = !fits;
      count += fits;
    });
    shown.textContent = `${count} of ${cases.length} shown`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
}
