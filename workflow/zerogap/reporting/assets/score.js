// The texts of the question that the mouse points at; a tap gives the same events. All texts come
// from the user's files, so they are only ever set as text, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const tip = document.getElementById("tip");
const GAP = 14; // pixels between the mouse and the box

function add(parent, name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  parent.append(element);
  return element;
}

function fillTip(question, strategy) {
  const asked = data.questions[question], { name, solve, responses } = data.strategies[strategy];
  tip.replaceChildren();
  add(tip, "strong", asked.id + (asked.leaked ? " (leaked)" : ""));
  if (asked.text) add(tip, "p", asked.text);
  add(tip, "p", `solve probability: clean model ${asked.clean}, ${name} ${solve[question]}`);
  if (responses[question].length === 0) {
    add(tip, "p", "The file has no texts of responses.");
    return;
  }
  const list = add(tip, "ol", "");
  for (const response of responses[question]) add(list, "li", response);
}

// Next to the mouse and inside the window; on a narrow screen the style sheet puts it at the bottom.
function placeTip(event) {
  const left = Math.min(event.clientX + GAP, innerWidth - tip.offsetWidth - GAP);
  const below = event.clientY + GAP;
  const top = below + tip.offsetHeight < innerHeight ? below : event.clientY - GAP - tip.offsetHeight;
  tip.style.left = `${Math.max(0, left)}px`;
  tip.style.top = `${Math.max(0, top)}px`;
}

document.querySelectorAll(".questions tbody tr").forEach((row, question) => { // as yet not sorted
  [...row.cells].forEach((cell, column) => {
    cell.dataset.question = question;
    cell.dataset.strategy = Math.max(0, column - 2); // after the id and the clean model
  });
});

document.addEventListener("mouseover", (event) => {
  const target = event.target.closest("[data-question]");
  tip.hidden = target === null;
  if (target === null) return;
  fillTip(Number(target.dataset.question), Number(target.dataset.strategy));
  placeTip(event);
});
