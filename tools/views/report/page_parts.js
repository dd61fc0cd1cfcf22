// What a reader does with a page: sorts and searches its tables, zooms its pictures, prints it.

// A cell's number, or its text; "" where the number is not known, which sorts last.
const cellKey = cell => cell.dataset.sort !== undefined ? Number(cell.dataset.sort)
  : cell.textContent.trim();
function sortBy(table, head) {
  const numeric = head.classList.contains('number');
  const before = head.getAttribute('aria-sort');
  const order = before ? (before === 'ascending' ? 'descending' : 'ascending')
    : (numeric ? 'descending' : 'ascending');
  for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', order);
  const sign = order === 'ascending' ? 1 : -1;
  const body = table.tBodies[0];
  const known = [], unknown = [];
  for (const row of body.rows) {
    const key = cellKey(row.cells[head.cellIndex]);
    (numeric === (typeof key === 'number') ? known : unknown).push({row, key});
  }
  known.sort((a, b) => sign * (numeric ? a.key - b.key
    : a.key.localeCompare(b.key, 'en', {numeric: true})));
  body.append(...known.map(each => each.row), ...unknown.map(each => each.row));
}
for (const table of document.querySelectorAll('table')) {
  const first = Number(table.dataset.first || 0);
  const rows = table.tBodies[0].rows;
  const showFirst = () => [...rows].forEach((row, i) => { row.hidden = i >= first; });
  let all = first === 0 || rows.length <= first;
  // A search looks at all rows; without words the table is as it was.
  const search = table.parentElement.previousElementSibling;
  if (search && search.classList.contains('search')) {
    const [field, count] = [search.querySelector('input'), search.querySelector('output')];
    const texts = new Map([...rows].map(row => [row, row.textContent.toLowerCase()]));
    field.oninput = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = 0;
      for (const row of rows) {
        const fits = words.every(word => texts.get(row).includes(word));
        row.classList.toggle('other', !fits);
        if (fits) found += 1;
      }
      table.classList.toggle('searched', words.length > 0);
      count.textContent = `${found} row${found === 1 ? '' : 's'}`;
    };
  }
  if (!all) {
    showFirst();
    const button = document.createElement('button');
    button.className = 'all';
    button.textContent = `Show all ${rows.length}`;
    button.onclick = () => {
      all = true;
      for (const row of rows) row.hidden = false;
      button.remove();
    };
    table.after(button);
  }
  for (const head of table.tHead.rows[0].cells) {
    head.querySelector('button').onclick = () => {
      sortBy(table, head);
      if (!all) showFirst();
    };
  }
}

// Sentences in a last column have the width to be read in on a narrow screen; a word needs none.
for (const cell of document.querySelectorAll('td:last-child:not(.number)')) {
  cell.classList.toggle('words', cell.textContent.length > 24);
}

// What is wider than its place says so, for as long as it is: tables, pictures, charts.
{
  const mark = place => {
    place.classList.toggle('wide', place.scrollWidth > place.clientWidth + 1);
    place.classList.toggle('at-end',
      place.scrollLeft + place.clientWidth >= place.scrollWidth - 1);
  };
  const places = document.querySelectorAll('.table, .canvas, .chart');
  const watch = new ResizeObserver(() => places.forEach(mark));
  for (const place of places) {
    mark(place);
    watch.observe(place);
    if (place.firstElementChild) watch.observe(place.firstElementChild);
    place.addEventListener('scroll', () => mark(place), {passive: true});
  }
}

// Pictures: buttons and Ctrl with the wheel zoom, dragging and arrow keys move; "whole" shows all.
for (const figure of document.querySelectorAll('figure.picture')) {
  const svg = figure.querySelector('svg'), canvas = figure.querySelector('.canvas');
  const whole = svg.getAttribute('viewBox').split(' ').map(Number);
  let view = [...whole];
  const show = () => svg.setAttribute('viewBox', view.map(n => n.toFixed(1)).join(' '));
  const zoom = (factor, x = 0.5, y = 0.5) => {
    const width = Math.min(whole[2], view[2] / factor), height = whole[3] * width / whole[2];
    view = [view[0] + x * (view[2] - width), view[1] + y * (view[3] - height), width, height];
    move(0, 0);
  };
  const move = (dx, dy) => {
    view[0] = Math.min(Math.max(whole[0], view[0] + dx), whole[0] + whole[2] - view[2]);
    view[1] = Math.min(Math.max(whole[1], view[1] + dy), whole[1] + whole[3] - view[3]);
    show();
  };
  const actions = {in: () => zoom(1.5), out: () => zoom(1 / 1.5),
    whole: () => { view = [...whole]; show(); }};
  for (const button of figure.querySelectorAll('[data-zoom]')) {
    button.onclick = actions[button.dataset.zoom];
  }
  canvas.addEventListener('wheel', event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const box = svg.getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width,
      (event.clientY - box.top) / box.height);
  }, {passive: false});
  canvas.addEventListener('keydown', event => {
    const part = {ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, -0.1],
      ArrowDown: [0, 0.1]}[event.key];
    if (event.key === '+') zoom(1.5);
    else if (event.key === '-') zoom(1 / 1.5);
    else if (part && view[2] < whole[2]) move(part[0] * view[2], part[1] * view[3]);
    else return;
    event.preventDefault();
  });
  canvas.addEventListener('pointermove', event => {
    if (event.buttons !== 1 || view[2] >= whole[2]) return;
    const box = svg.getBoundingClientRect();
    move(-event.movementX * view[2] / box.width, -event.movementY * view[3] / box.height);
  });
  // On paper there is all of it.
  addEventListener('beforeprint', () => svg.setAttribute('viewBox', whole.join(' ')));
  addEventListener('afterprint', show);
}

// A number leads to what stands behind it, and opens that.
for (const link of document.querySelectorAll('a[href^="#behind-"]')) {
  link.addEventListener('click', () => {
    document.getElementById(link.hash.slice(1)).open = true;
  });
}

// On paper the foot stands below the headline: behind the last section it would often have a sheet
// to itself.
{
  const [head, main, foot] = ['header', 'main', 'footer'].map(each => document.querySelector(each));
  // Before the sheets are counted, which the media's change comes too late for.
  addEventListener('beforeprint', () => head.append(foot));
  addEventListener('afterprint', () => main.after(foot));
}

{
  const sheet = document.querySelector('.sheet');
  sheet.addEventListener('submit', event => event.preventDefault());
  sheet.querySelector('[data-today]').onclick = () => {
    const now = new Date(), two = number => String(number).padStart(2, '0');
    sheet.elements.date.value =
      `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  };
  sheet.querySelector('[data-print]').onclick = () => window.print();
}
