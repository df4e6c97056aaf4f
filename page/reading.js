// Shows the number in a cell of a picture: under the mouse, under a finger, or by arrow keys.
//
// An element with data-cells shows a matrix. data-cells has its numbers, row by row, as float16 in
// base64; or "#7", which stands for those of the seventh such element. data-name and data-shape
// are the name and the shape of the array. data-panel has four numbers: the rows and the columns
// of a panel, the panels in a line, and the columns of the whole matrix. data-labels, if there is
// one, has the tokens that both the rows and the columns stand for.

const pictures = [...document.querySelectorAll("[data-cells]")];
const box = document.body.appendChild(document.createElement("output"));
const frame = document.body.appendChild(document.createElement("i"));
box.id = "number";
frame.id = "cell";
let here = null;  // the picture whose number is shown, and where in it
let row = 0, column = 0;

function numbers(picture) {
  const cells = picture.dataset.cells;
  if (cells[0] == "#") return numbers(pictures[cells.slice(1) - 1]);
  picture.numbers ??= Uint8Array.from(atob(cells), character => character.charCodeAt(0));
  return picture.numbers;
}

function half(low, high) {
  const sign = high > 127 ? -1 : 1, exponent = Math.floor(high / 4) % 32;
  const fraction = (high % 4 * 256 + low) / 1024;
  if (exponent == 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction) * 2 ** (exponent - 15) : fraction * 2 ** -14);
}

function words(value) {
  if (Number.isNaN(value)) return "nothing yet";
  if (Math.abs(value) == Infinity) return value > 0 ? "inf" : "-inf";
  if (value == 0 || Math.abs(value) > 0.001) return String(Number(value.toPrecision(3)));
  return value.toExponential(1);
}

// Which index or indices of an axis of this size the cell number i of n shows.
function indices(i, n, size) {
  const first = Math.floor(i * size / n), last = Math.floor((i + 1) * size / n) - 1;
  return last > first ? first + "–" + last : String(first);
}

// What to say of a cell, "" where the picture has a gap.
function reading(picture, row, column) {
  const {name, shape: text, panel, labels} = picture.dataset;
  const [rows, columns, per_line, width] = panel.split(" ").map(Number);
  const shape = text.split(" ").map(Number), bytes = numbers(picture);
  const place = 2 * (row * width + column);
  const value = words(half(bytes[place], bytes[place + 1]));
  if (labels) {
    const names = labels.split(" ");
    if (value == "-inf") return `“${names[column]}” is hidden from “${names[row]}”`;
    return `“${names[row]}” looks at “${names[column]}”: ${value}`;
  }
  let y = row, x = column, nth = 0;
  if (rows == 1 ? columns > width : false) {  // one long row, broken into lines
    y = 0;
    x = row * width + column;
    if (x >= columns) return "";
  } else {
    y = row % (rows + 1);
    x = column % (columns + 1);
    nth = Math.floor(row / (rows + 1)) * per_line + Math.floor(column / (columns + 1));
    if (y == rows || x == columns) return "";
  }
  const index = [indices(x, columns, shape.at(-1))];
  if (shape.length > 1) index.unshift(indices(y, rows, shape.at(-2)));
  for (const size of shape.slice(0, -2).reverse()) {
    index.unshift(nth % size);
    nth = Math.floor(nth / size);
  }
  if (nth > 0) return "";
  const many = index.join().includes("–") ? ", of these the farthest from 0" : "";
  return `${name}[${index.join(", ")}] = ${value}${many}`;
}

function size(picture) {
  const width = Number(picture.dataset.panel.split(" ")[3]);
  return [numbers(picture).length / 2 / width, width];
}

function show(picture, new_row, new_column) {
  const [rows, columns] = size(picture), area = picture.getBoundingClientRect();
  [here, row, column] = [picture, new_row, new_column];
  const text = reading(picture, row, column);
  if (!text) return hide();
  const height = area.height / rows, width = area.width / columns;
  const left = area.left + column * width, top = area.top + row * height;
  Object.assign(frame.style, {left: left + "px", top: top + "px", width: width + "px",
                              height: height + "px", display: "block"});
  box.textContent = text;
  box.style.display = "block";
  const most = document.documentElement.clientWidth - box.offsetWidth - 8;
  const above = top - box.offsetHeight - 8;
  box.style.left = Math.max(8, Math.min(left, most)) + "px";
  box.style.top = (above > 8 ? above : top + height + 8) + "px";
}

function hide() {
  box.style.display = frame.style.display = "none";
  here = null;
}

function point(event) {
  const picture = event.target.closest("[data-cells]");
  if (!picture) return hide();
  const [rows, columns] = size(picture), area = picture.getBoundingClientRect();
  const inside = (share, n) => Math.max(0, Math.min(n - 1, Math.floor(share * n)));
  show(picture, inside((event.clientY - area.top) / area.height, rows),
       inside((event.clientX - area.left) / area.width, columns));
}

const STEPS = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};

function press(event) {
  if (event.key == "Escape") hide();
  const picture = event.target.closest("[data-cells]"), step = STEPS[event.key];
  if (!picture || !step) return;
  event.preventDefault();
  const [rows, columns] = size(picture), [down, right] = step;
  let [y, x] = here == picture ? [row + down, column + right] : [0, 0];
  for (; y >= 0; y += down, x += right) {  // over the gaps between panels
    if (y >= rows || x >= columns || 0 > x) return;
    if (reading(picture, y, x)) return show(picture, y, x);
  }
}

// A link to a line inside a folded function unfolds it.
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  const outer = target ? target.closest("details") : null;
  if (!outer || outer.open) return;
  outer.open = true;
  target.scrollIntoView();
}

for (const picture of pictures) picture.setAttribute("tabindex", 0);
for (const hint of document.querySelectorAll("[hidden]")) hint.hidden = false;
document.addEventListener("pointermove", event => event.pointerType == "mouse" ? point(event) : 0);
document.addEventListener("click", point);
document.addEventListener("focusin", event => {
  const picture = event.target.closest("[data-cells]");
  if (picture ? picture.matches(":focus-visible") : false) show(picture, 0, 0);
});
document.addEventListener("keydown", press);
document.addEventListener("scroll", () => {
  if (here ? here == document.activeElement : false) show(here, row, column);
  else hide();
}, {capture: true, passive: true});
function unfold_all(selector) {
  for (const details of document.querySelectorAll(selector)) details.open = true;
}

document.getElementById("unfold").addEventListener("click", () => unfold_all(".function"));
addEventListener("beforeprint", () => unfold_all("details"));
addEventListener("hashchange", unfold);
unfold();
