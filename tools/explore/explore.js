// The page that asks: moves values of a scenario, and shows the answers to it, two side by side.
{
const setup = JSON.parse(document.getElementById('setup').textContent);
const byPath = new Map(setup.controls.map(control => [control.path, control]));
const at = id => document.getElementById(id);
const [stepChart, memoryChart, keptMemoryChart, exposedChart, powerChart] = charts;
const kKept = 'kept';

// What was chosen, by path; what is not in it is as given.
let state = {};
let kept;          // the query of the state that was kept; undefined: none
let now, before;   // their answers
let answered;      // the last state that has one
let moved;         // the path of the control that was moved last
let anchor;        // the state that it was moved from: what follows starts there, however often it moves
let move;          // the query of a move that nobody has followed yet
let followed = ''; // what followed the last move, in a sentence
let entry = false; // whether the browser's Back is to lead to the address that there is now
let address;       // what that address says of the page
const positions = new Map();  // where controls may stand, by path: {of, list}

// --- numbers with their units ----------------------------------------------------------------

// Made once: toLocaleString() would make one for each number, a fifth of a slider's time.
const [threeDigits, whole] = [{maximumSignificantDigits: 3}, {maximumFractionDigits: 0}].map(form =>
  new Intl.NumberFormat('en-US', form));
const digits = value => threeDigits.format(Number(value.toPrecision(3)));
function scaled(value, unit) {
  const size = Math.abs(value);
  const power = size === 0 ? 0 : Math.max(0, Math.min(5, Math.floor(Math.log10(size) / 3 + 1e-9)));
  return `${digits(value / 1000 ** power)} ${['', 'k', 'M', 'G', 'T', 'P'][power]}${unit}`.trim();
}
function counted(value) {
  const size = Math.abs(value);
  if (size < 1e4 && value % 1 !== 0) return digits(value);
  if (size < 1e6) return whole.format(Math.round(value));
  const power = Math.min(4, Math.floor(Math.log10(size) / 3 + 1e-9));
  return `${digits(value / 1000 ** power)} ${['', 'k', 'M', 'B', 'T'][power]}`;
}
function seconds(value) {
  const [size, name] = value === 0 ? [1, 's'] : value < 1e-6 ? [1e-9, 'ns']
    : value < 1e-3 ? [1e-6, 'µs'] : value < 1 ? [1e-3, 'ms'] : value < 120 ? [1, 's']
    : value < 7200 ? [60, 'min'] : value < 172800 ? [3600, 'h'] : [86400, 'days'];
  return `${digits(value / size)} ${name}`;
}
function energy(joules) {
  return joules < 3.6e6 ? scaled(joules, 'J') : scaled(joules / 3600, 'Wh');
}
const usd = value => value < 1e4 ? `$${digits(value)}` : `$${counted(Number(value.toPrecision(3)))}`;
const kShare = /mfu|share$/;
// The end of a name says the unit.
const kUnits = [
  // As data sheets and `lockstep explain` have them.
  [/(hbm|memory|nvlink)_bytes_per_s$/, value => `${whole.format(Math.round(value / 1e9))} GB/s`],
  [/_flops_per_gpu$/, value => `${digits(value / 1e12)} TFLOP/s`],
  [/bytes_per_s$/, value => scaled(8 * value, 'b/s')], [/tokens_per_s/, counted],
  [/_w_per_s$/, value => scaled(value, 'W/s')], [/_s$|_s_(low|high)$/, seconds],
  [/_gib$/, value => `${value.toFixed(1)} GiB`], [/_usd$|^usd_/, usd],
  [/_w$/, value => scaled(value, 'W')], [/_j$|joules_per/, energy],
  [kShare, value => `${(100 * value).toFixed(1)} %`],
  [/pue$|tflops/, digits],
];
function shown(path, value) {
  if (typeof value !== 'number') return String(value ?? '–');
  const unit = kUnits.find(([pattern]) => pattern.test(path));
  return unit ? unit[1](value) : counted(value);
}
// A minus sign and an arrow, as this page has them everywhere.
const written = text => text.replaceAll('->', '→').replace(/(^|[\s(])-(?=\d)/g, '$1−');
// "gpu_tensor" as words.
const worded = name => name.replaceAll('_', ' ').replace(/\b(gpu|nic|cpu|hbm|nvlink)(s?)\b/g,
  (all, word, s) => (word === 'nvlink' ? 'NVLink' : word.toUpperCase()) + s);
const valueAt = (object, path) => path === '' ? undefined
  : path.split('.').reduce((inside, key) => inside?.[key], object);

// --- the state and its address ---------------------------------------------------------------

const query = chosen => new URLSearchParams(chosen).toString();
function readAddress() {
  const said = new URLSearchParams(lockstepAlone ? location.hash.slice(1) : location.search);
  kept = said.has(kKept) ? said.get(kKept) : undefined;
  said.delete(kKept);
  state = Object.fromEntries(said);
}
function writeAddress() {
  const said = new URLSearchParams(state);
  if (kept !== undefined) said.set(kKept, kept);
  const text = said.toString();
  const mark = lockstepAlone ? '#' : '?';  // a file's address takes no other change
  const next = text || lockstepAlone ? `${mark}${text}` : location.pathname;
  if (entry && text !== address) history.pushState(null, '', next);
  else history.replaceState(null, '', next);
  address = text;
  entry = false;
  for (const [id, what] of [['save', 'explore.json'], ['json', 'answer']]) {
    const question = `${what}?${query(state)}`;
    if (lockstepAlone) at(id).dataset.question = question;
    else at(id).href = question;
  }
}

// --- the controls ----------------------------------------------------------------------------

// Where a slider stops: where the job divides (its values, before that is known), at the scenario's
// own value and where it stands.
function stopsOf(control) {
  const known = positions.get(control.path);
  const stops = new Set(known ? known.list.map(each => each.value) : control.values);
  for (const each of [control.own, state[control.path]]) if (each) stops.add(each);
  return [...stops].sort((a, b) => a - b);
}
function showControl(element) {
  const control = byPath.get(element.dataset.control);
  const chosen = state[control.path];
  const answered = valueAt(now?.json, control.answered);
  const input = element.querySelector('input, select');
  const output = element.querySelector('output');
  element.classList.toggle('chosen', chosen !== undefined);
  const said = chosen ?? (control.own || (answered === undefined || answered === null ? ''
    : shown(control.answered, answered)));
  showPositions(control, element, input);
  output.textContent = input.type === 'range' ? said
    : chosen === undefined && answered != null ? shown(control.answered, answered) : '';
  if (input.type !== 'range') {
    input.value = chosen ?? '';
    return;
  }
  const stops = stopsOf(control), value = Number(chosen ?? (control.own || answered));
  input.max = stops.length - 1;
  input.disabled = stops.length < 2;  // a model without experts
  let place = stops.findIndex(stop => Number(stop) >= value);
  if (place < 0) place = Number.isFinite(value) ? stops.length - 1 : 0;
  if (document.activeElement !== input || Number(stops[input.value]) !== value) input.value = place;
  const why = whyNot(control, said);
  input.setAttribute('aria-valuetext', `${said || 'as given'}${why && `, ${why}`}`);
}
// Why there is no answer at a position, in a few words; empty: there is one, or nobody knows yet.
function whyNot(control, value) {
  const at = positions.get(control.path)?.list.find(each => each.value === value);
  if (at?.search) return 'layout is searched';
  if (at?.too_large) {
    return `too large: ${at.too_large.needed_gib.toFixed(0)} of ${at.too_large.usable_gib.toFixed(0)} GiB`;
  }
  if (!at?.error) return '';
  const wrong = controlOf(at.error);
  return wrong && wrong !== control ? `does not go with ${wrong.title}` : 'not possible';
}
// Marks below a slider and words behind a choice: where there is an answer.
function showPositions(control, element, input) {
  const known = positions.get(control.path);
  if (!known || known.shown === `${known.of} ${state[control.path]}`) return;
  known.shown = `${known.of} ${state[control.path]}`;
  const at = new Map(known.list.map(each => [each.value, each]));
  const kind = value => at.get(value)?.error ? 'none' : at.get(value)?.too_large ? 'large' : '';
  if (input.type !== 'range') {
    for (const option of input.options) {
      if (!option.value) continue;
      const why = whyNot(control, option.value);
      option.label = why ? `${option.value} – ${why}` : option.value;
      option.className = kind(option.value);
    }
    return;
  }
  let marks = element.querySelector('.marks');
  if (!marks) {
    marks = Object.assign(document.createElement('div'), {className: 'marks'});
    marks.setAttribute('aria-hidden', 'true');
    element.append(marks);
  }
  marks.replaceChildren(...stopsOf(control).map(value => {
    const why = whyNot(control, value);
    return Object.assign(document.createElement('i'),
      {className: kind(value), title: why ? `${value}: ${why}` : value});
  }));
}
function showControls() {
  for (const element of document.querySelectorAll('[data-control]')) showControl(element);
}
function choose(path, value) {
  const control = byPath.get(path);
  const again = path === moved && anchor;
  if (!again) anchor = {...state};
  // Back undoes all moves of a slider at once, and choices from a list one by one.
  entry = !again || !['count', 'number'].includes(control.kind);
  moved = path;
  const said = new URLSearchParams({...anchor, moved: path, to: value});
  move = said.toString();
  if (value === '' || value === control.own) delete state[path];
  else state[path] = value;
  changed();
}
// A state that is no move of a control: nothing follows. `past`: what its entry of the history
// remembers, where it comes from there.
function setState(next, past) {
  state = next;
  entry = !past;
  anchor = move = undefined;
  followed = past?.followed ?? '';
  changed();
}
for (const element of document.querySelectorAll('[data-control]')) {
  const control = byPath.get(element.dataset.control);
  const input = element.querySelector('input, select');
  input.addEventListener('input', () =>
    choose(control.path, input.type === 'range' ? stopsOf(control)[input.value] : input.value));
  // A slider has no "as given" of its own.
  element.querySelector('output').addEventListener('dblclick', () => choose(control.path, ''));
  // Choices are many: which of them have answers is asked when somebody is about to choose.
  let resting;
  element.addEventListener('pointerenter', () => { resting = setTimeout(() => lookAt(control), 150); });
  element.addEventListener('pointerleave', () => clearTimeout(resting));
  element.addEventListener('focusin', () => lookAt(control));
}
at('controls').addEventListener('submit', event => event.preventDefault());

// --- asking ------------------------------------------------------------------------------------

async function ask(what, text) {
  const question = text ? `${what}?${text}` : what;
  const json = lockstepAlone ? JSON.parse(await lockstepAlone(question))
    : await (await fetch(question)).json();
  return json.error ? {error: json.error} : {json};
}
// Nobody serves what these would load where the page is alone.
for (const id of lockstepAlone ? ['save', 'json'] : []) {
  at(id).addEventListener('click', async event => {
    event.preventDefault();
    const text = await lockstepAlone(at(id).dataset.question);
    const link = Object.assign(document.createElement('a'), {
      href: URL.createObjectURL(new Blob([text], {type: 'application/json'})),
      download: id === 'save' ? 'explore.json' : 'answer.json'});
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
// The notices of what the module is made of, behind those of the charts.
if (lockstepAlone) {
  const notices = Object.assign(document.createElement('details'), {id: 'licences'});
  const title = Object.assign(document.createElement('summary'), {textContent: 'Licences of Lockstep and of what is in it'});
  const text = document.createElement('pre');
  notices.append(title, text);
  notices.addEventListener('toggle', async () => {
    if (text.textContent === '') text.textContent = await lockstepAlone('licences');
  });
  document.querySelector('footer').append(notices);
}
const nextTask = () => new Promise(done => setTimeout(done));
// One question at a time; of those that come meanwhile the last.
let asking = false, waiting = false;
async function changed() {
  writeAddress();
  showControls();
  if (asking) { waiting = true; return; }
  asking = true;
  do {
    waiting = false;
    const began = performance.now();
    try {
      if (kept !== undefined && before?.of !== kept) before = {...await ask('answer', kept), of: kept};
      const problem = await followMove();
      if (waiting) continue;
      const asked = query(state);
      const answer = problem ? {error: problem} : await ask('answer', asked);
      now = answer.error ? {...answer, of: asked, json: now?.json} : {...answer, of: asked};
      if (!answer.error) answered = Object.fromEntries(new URLSearchParams(asked));
    } catch (problem) {
      now = {error: {message: `The program that served this page does not answer (${problem.message}).`},
        json: now?.json, of: query(state)};
    }
    show();
    document.documentElement.dataset.ms = (performance.now() - began).toFixed(1);
    await nextTask();
    while (!waiting && unseen.size > 0) {
      paintUnseen();
      await nextTask();
    }
  } while (waiting);
  asking = false;
  document.documentElement.dataset.shown = query(state);
  lookAround();
}
// Takes along what a move needs, so that the job stays whole. Returns what is wrong, if anything is.
async function followMove() {
  if (move === undefined) return undefined;
  const asked = move, title = byPath.get(moved).title, value = state[moved] ?? 'as given';
  const taken = ({json}, words) => {
    state = json.state;
    followed = json.said && written(words(json.said));
    writeAddress();
    showControls();
  };
  const done = await ask('moved', asked);
  if (move !== asked) return undefined;  // moved on
  move = undefined;
  followed = '';
  if (done.error) return done.error;
  taken(done, said => `With ${title} at ${value}, ${said}.`);
  if (!done.json.search) return undefined;
  at('said').textContent = `Searching the fastest layout for ${value}.`;
  document.body.classList.add('searching');
  const found = await ask('layout', asked);
  document.body.classList.remove('searching');
  if (move !== undefined) return undefined;
  // Nothing fits: the present layout says by how much, if it is one.
  if (found.error) return done.json.said ? undefined : found.error;
  taken(found, said => `The present layout does not fit ${value}; in the fastest that was found, ${said}.`);
  return undefined;
}
// Asks where a control may stand, unless that is known of this state. Of one that is being moved, the
// state is the one that it began in.
async function lookAt(control) {
  const of = query(control.path === moved && anchor ? anchor : state);
  if (positions.get(control.path)?.of === of) return;
  const text = new URLSearchParams(of);
  text.set('moved', control.path);
  const {json} = await ask('positions', text.toString()).catch(() => ({}));
  if (!json) return;
  positions.set(control.path, {of, list: json.positions});
  showControl(document.querySelector(`[data-control="${CSS.escape(control.path)}"]`));
}
// All sliders in sight, one after another, as long as nobody moves one.
async function lookAround() {
  const of = query(state);
  for (const element of document.querySelectorAll('[data-control]:has(input)')) {
    if (element.offsetParent === null) continue;
    await nextTask();
    if (asking || query(state) !== of) return;
    await lookAt(byPath.get(element.dataset.control));
  }
  document.documentElement.dataset.looked = of;
}
// --- showing -----------------------------------------------------------------------------------

const kAnswers = () => [...(kept !== undefined && before?.json ? [['kept', before.json]] : []),
  ['now', now.json]];

function way(text, act) {
  const button = Object.assign(document.createElement('button'), {type: 'button', textContent: text});
  button.onclick = act;
  return button;
}
const pathOf = place => place.replace(/^[^#]*#\//, '').replaceAll('/', '.');
// The control that a mistake is about.
function controlOf({place = ''}) {
  const path = pathOf(place);
  return byPath.get(path) ?? setup.controls.find(each => each.path.startsWith(`${path}.`));
}
// What is wrong, in the page's words: a control, and no key of a file that only answers know.
function mistake(error) {
  const {message, place = '', found, allowed, nearest} = error;
  if (!place.includes('#') || !found) return message;
  const path = pathOf(place), control = controlOf(error);
  const what = byPath.has(path) ? control.title : control?.group ?? path;
  const asked = found.replace(/\s*\(--set [^)]*\)/, '');
  const cause = byPath.get(moved);  // what was moved need not be what is wrong then
  const after = cause && cause.title !== what && state[moved] !== undefined
    ? `With ${cause.title} at ${state[moved]}, ${what}` : what;
  return `${after}: ${asked}. Allowed: ${allowed}${nearest ? `; the nearest is ${nearest}` : ''}.`;
}
function showMistake() {
  const {error} = now, said = at('said'), ways = at('ways');
  const last = answered && now.json ? ' The numbers below are of the last state that has an answer.' : '';
  said.textContent = mistake(error) + last;
  const layout = /#\/(parallelism|batch)\b/.test(error.place ?? '');
  ways.replaceChildren(...(layout ? [way('fastest layout of these machines', () => at('search').click())] : []),
    ...(last ? [way('back to the last that answers', () => setState({...answered}))] : []));
  ways.hidden = ways.children.length === 0;
}

function show() {
  const said = at('said');
  at('ways').hidden = true;
  document.body.classList.toggle('stale', Boolean(now.error));
  for (const each of document.querySelectorAll('.control.wrong')) each.classList.remove('wrong');
  if (now.error) {
    showMistake();
    const wrong = document.querySelector(`[data-control="${CSS.escape(pathOf(now.error.place || ''))}"]`);
    wrong?.classList.add('wrong');
    wrong?.closest('details')?.setAttribute('open', '');
  } else {
    said.innerHTML = headline(now.json);
  }
  if (kept !== undefined && before?.error) {
    said.append(` What was kept has no answer to hold this against: ${mistake(before.error)}`);
  }
  at('followed').textContent = now.error ? '' : followed;
  if (followed !== (history.state?.followed ?? '')) history.replaceState({followed}, '', location.href);
  for (const id of ['forget', 'swap']) at(id).hidden = kept === undefined;
  showControls();
  if (!now.json) return;
  showFigures();
  showMoved();
  showPaper();
  showStep();
  showMemory();
  showExposed();
  showPower();
  showNumbers();
  if (!now.error && at('held').dataset.of !== now.of) at('held').replaceChildren();
}

function headline(answer) {
  const strong = text => `<strong>${escapeHtml(text)}</strong>`;
  const lost = setup.buckets.find(each => each.name === answer.largest_loss?.bucket);
  return [
    answer.memory_fits ? '' : `${strong('Does not fit in memory:')} ` +
      `${answer.needed_memory_gib.toFixed(1)} GiB of ${answer.usable_memory_gib.toFixed(1)}. `,
    `A step takes ${strong(seconds(answer.step_s))}`,
    answer.step_s_low ? ` (${seconds(answer.step_s_low)} to ${seconds(answer.step_s_high)})` : '',
    lost ? `. Most is lost to ${strong(lost.title)}: ` +
      `${(100 * answer.largest_loss.share).toFixed(1)} % of it` : '', '.'].join('');
}

function change(path) {
  const [one, other] = [valueAt(before?.json, path), valueAt(now.json, path)];
  if (kept === undefined || typeof one !== 'number' || typeof other !== 'number' || one === 0) return '';
  // A share's change in per cent of itself would be taken for points.
  const isShare = kShare.test(path);
  const share = 100 * (isShare ? other - one : other / one - 1);
  return `${share > 0 ? '+' : share < 0 ? '−' : ''}${Math.abs(share).toFixed(1)} ${isShare ? 'points' : '%'}`;
}

function showFigures() {
  const figures = [['step time', 'step_s'], ['MFU, attention in full', 'mfu'],
    ['tokens per second', 'tokens_per_s'], ['memory of the fullest GPU', 'needed_memory_gib'],
    ['drawn by the site', 'power.facility.mean_w'], ['price of the training', 'price_usd']];
  at('figures').innerHTML = figures.filter(([, path]) => valueAt(now.json, path) != null)
    .map(([title, path]) => {
      const was = change(path);
      return `<div><dt>${title}${was ? `<br>${was} against ${escapeHtml(shown(path,
        valueAt(before.json, path)))} kept` : ''}</dt>` +
        `<dd data-path="${path}">${escapeHtml(shown(path, valueAt(now.json, path)))}</dd></div>`;
    }).join('');
}

// What was moved, and what differs from the kept state.
function showMoved() {
  const own = new URLSearchParams(kept ?? '');
  const paths = setup.controls.map(control => control.path).filter(path =>
    kept === undefined ? state[path] !== undefined : (own.get(path) ?? undefined) !== state[path]);
  const value = (chosen, path) => chosen ?? (byPath.get(path).own || 'as given');
  at('moved').innerHTML = paths.length === 0 ? '' : `<ul>${paths.map(path =>
    `<li>${escapeHtml(byPath.get(path).title)}: ${escapeHtml(value(kept === undefined ? undefined
      : own.get(path) ?? undefined, path))} → <strong>${escapeHtml(value(state[path], path))}</strong></li>`)
    .join('')}</ul>`;
}

// On paper there are no controls: what each says, and what is assumed.
function showPaper() {
  const said = setup.controls.map(control => [control.title, state[control.path] ?? (control.own ||
    (valueAt(now.json, control.answered) == null ? '' : shown(control.answered, valueAt(now.json, control.answered))))])
    .filter(([, value]) => value !== '');
  const list = lines => `<ul>${lines.map(line => `<li>${escapeHtml(line)}</li>`).join('')}</ul>`;
  at('paper').innerHTML = `<p>${said.map(([title, value]) => `${escapeHtml(title)} <strong>${
    escapeHtml(value)}</strong>`).join('; ')}.</p>` +
    (now.json.assumptions?.length ? `<p>Assumed:</p>${list(now.json.assumptions)}` : '');
}

// Bars, a group for each name and a bar for each of `parts`: {name, colour, values, words}.
function grouped(names, parts, format) {
  return {
    lockstep: {words: parts.flatMap(part => part.words), rows: names.length},
    grid: {left: 4, right: 24, top: parts.length > 1 ? 36 : 8, bottom: 4, outerBoundsMode: 'same',
      outerBoundsContain: 'axisLabel'},
    ...(parts.length > 1 ? {legend: {top: 0, left: 0}} : {}),
    tooltip: {trigger: 'item', formatter: '@words', confine: true},
    xAxis: {type: 'value', axisLabel: {formatter: format, hideOverlap: true}},
    yAxis: {type: 'category', inverse: true, data: names,
      axisLabel: {width: 230, overflow: 'break', interval: 0, lineHeight: 13}},
    series: parts.map((part, row) => ({type: 'bar', name: part.name, barMaxWidth: 14, stack: part.stack,
      itemStyle: {color: part.colour}, emphasis: {disabled: true},
      data: part.values.map((value, i) => [value, i, row * names.length + i])})),
  };
}
// Charts in view are drawn at once, the others once these are on the screen.
const unseen = new Set();
function paint(chart) {
  // The canvas alone: the chart's own resize() would draw once more what is about to go.
  if (chart.resized) chart.instance.getZr().resize();
  chart.resized = false;
  showOptions(chart, chart.element.clientWidth);
}
function update(chart, options, height) {
  chart.options = options;
  const was = chart.element.style.height;
  chart.element.closest('figure').hidden = false;
  if (height) {
    // As drawChart does, which otherwise goes back to the height that the chart began with.
    chart.height = height;
    chart.lines = linesOfLegend(options, chart.element.clientWidth);
    chart.element.style.height = `${height + kLegendLine * Math.max(0, chart.lines - 1)}px`;
  }
  chart.resized ||= was !== chart.element.style.height;
  const {top, bottom} = chart.element.getBoundingClientRect();
  if (bottom <= 0 || top >= innerHeight) return void unseen.add(chart);
  unseen.delete(chart);
  paint(chart);
}
// One of them: whoever moves a slider meanwhile does not wait for the others.
function paintUnseen() {
  const [chart] = unseen;
  unseen.delete(chart);
  paint(chart);
}
const heightOf = (rows, bars) => 56 + rows * (16 + 15 * bars);

function showStep() {
  const answers = kAnswers();
  const share = (answer, name) =>
    answer.waterfall.find(each => each.bucket === name) ?? {seconds: 0, share: 0};
  const rows = setup.buckets.filter(({name}) =>
    answers.some(([, answer]) => share(answer, name).share > 5e-4));
  update(stepChart, grouped(rows.map(row => row.title), answers.map(([name, answer], i) => ({
    name, colour: name === 'now' ? '@colour-0' : '@soft',
    values: rows.map(row => share(answer, row.name).seconds),
    words: rows.map(row => [`${row.title}${answers.length > 1 ? `, ${name}` : ''}`,
      `${seconds(share(answer, row.name).seconds)}, ` +
      `${(100 * share(answer, row.name).share).toFixed(1)} % of the step`,
      ...(row.remedy ? [row.remedy] : [])]),
  })), seconds), heightOf(rows.length, answers.length));
}

const kMemoryParts = ['weights', 'gradients', 'optimiser', 'activations', 'logits', 'communication',
  'framework', 'cached'];
function memoryOptions(answer, most) {
  const step = Math.ceil(answer.stages.length / 32);
  const stages = answer.stages.filter((_, i) => i % step === 0);
  const names = stages.map(stage => `stage ${stage.stage}`);
  const parts = kMemoryParts.map((part, i) => ({name: part, colour: `@colour-${i}`, stack: 'memory',
    values: stages.map(stage => stage.memory[`${part}_gib`]),
    words: stages.map(stage => [`stage ${stage.stage}, ${part}`,
      `${stage.memory[`${part}_gib`].toFixed(2)} GiB of ${stage.memory.needed_gib.toFixed(1)}`])}))
    .filter(part => part.values.some(value => value > 0));
  const options = grouped(names, parts, '{value} GiB');
  options.xAxis.max = most;
  options.yAxis.axisLabel.width = 70;
  // From top to bottom on an axis of its own: between the first stage and the last a line has no
  // length where there is one stage.
  options.yAxis = [options.yAxis, {type: 'value', min: 0, max: 1, show: false}];
  options.series.push({type: 'line', name: 'usable', silent: true, symbol: 'none', yAxisIndex: 1,
    lineStyle: {width: 1.5, type: 'dashed', color: '@ink'}, itemStyle: {color: '@ink'},
    tooltip: {show: false},
    data: [[answer.usable_memory_gib, 0], [answer.usable_memory_gib, 1]]});
  return [options, 88 + 30 * Math.max(2, stages.length)];
}
function showMemory() {
  const most = 10 * Math.ceil(0.102 * Math.max(...kAnswers().flatMap(([, answer]) =>
    [answer.usable_memory_gib, ...answer.stages.map(stage => stage.memory.needed_gib)])));
  update(memoryChart, ...memoryOptions(now.json, most));
  const other = kept !== undefined && before?.json;
  if (other) update(keptMemoryChart, ...memoryOptions(before.json, most));
  const figure = keptMemoryChart.element.closest('figure');
  if (figure.hidden !== !other) {
    figure.hidden = !other;
    figure.parentElement.classList.toggle('alone', !other);
    for (const chart of [memoryChart, keptMemoryChart]) if (!chart.element.closest('figure').hidden) drawChart(chart);
  }
}

const kExposed = ['tensor_exposed', 'context_exposed', 'expert_exposed', 'pipeline_exposed',
  'data_exposed'];
function showExposed() {
  const answers = kAnswers();
  const here = (answer, name) => answer.waterfall.find(each => each.bucket === name).seconds;
  const ideal = (answer, name) => answer.fabric?.full_fabric?.exposed_s[name] ?? here(answer, name);
  const rows = kExposed.filter(name => answers.some(([, answer]) => here(answer, name) > 0));
  const titles = rows.map(name => setup.buckets.find(each => each.name === name).title);
  const parts = answers.flatMap(([name, answer], i) => [[here, ''], [ideal, ', switches never limit']]
    .map(([of, how], k) => ({
      name: name + how, colour: k === 1 ? (name === 'now' ? '@colour-6' : '@others')
        : name === 'now' ? '@colour-0' : '@soft',
      values: rows.map(row => of(answer, row)),
      words: rows.map((row, r) => [`${titles[r]}, ${name}${how}`, seconds(of(answer, row))])})));
  update(exposedChart, grouped(titles, parts, seconds), heightOf(Math.max(1, rows.length), parts.length));
}

function showPower() {
  const figure = powerChart.element.closest('figure');
  const answers = kAnswers().filter(([, answer]) => answer.power);
  if (answers.length === 0) { figure.hidden = true; return; }
  const share = (answer, what) => answer.power.shares.find(each => each.what === what)?.share ?? 0;
  const watts = (answer, what) => share(answer, what) * answer.power.facility.mean_w;
  const kinds = [...new Set(answers.flatMap(([, answer]) =>
    answer.power.shares.filter(each => each.share > 0.002).map(each => each.what)))];
  update(powerChart, grouped(kinds.map(worded), answers.map(([name, answer]) => ({
    name, colour: name === 'now' ? '@colour-0' : '@soft', values: kinds.map(kind => watts(answer, kind)),
    words: kinds.map(kind => [`${worded(kind)}${answers.length > 1 ? `, ${name}` : ''}`,
      `${scaled(watts(answer, kind), 'W')}, ${(100 * share(answer, kind)).toFixed(1)} %`])})),
  value => scaled(value, 'W')), heightOf(kinds.length, answers.length));
}

function table(heads, rows) {
  return `<div class="table" role="region" tabindex="0" aria-label="numbers"><table><thead><tr>${
    heads.map((head, i) => `<th scope="col"${i > 0 ? ' class="number"' : ''}>${escapeHtml(head)}</th>`)
      .join('')}</tr></thead><tbody>${rows.map(row => `<tr>${row.map((cell, i) =>
    `<td${i > 0 ? ' class="number"' : ''}>${cell}</td>`).join('')}</tr>`).join('')}</tbody></table></div>`;
}
function showNumbers() {
  const two = kept !== undefined && before?.json;
  const rows = setup.numbers.filter(({path}) =>
    [now.json, two && before.json].some(answer => answer && valueAt(answer, path) != null))
    .map(({path, title, group}) => {
      const bill = path === 'power.bill.energy_j';
      const ofTraining = answer => answer.time_to_train_s != null;
      if (bill && !ofTraining(now.json)) title = 'energy of one step';
      // A step's is none of a training's.
      const unlike = bill && two && ofTraining(now.json) !== ofTraining(before.json);
      const name = path.includes('.') ? escapeHtml(title)
        : `<button type="button" data-field="${path}">${escapeHtml(title)}</button>`;
      const cells = [`${name}<small>${escapeHtml(group)}</small>`];
      if (two) cells.push(unlike ? '–' : escapeHtml(shown(path, valueAt(before.json, path))));
      cells.push(`<span data-number="${path}">${escapeHtml(shown(path, valueAt(now.json, path)))}</span>`);
      if (two) cells.push(unlike ? '–' : change(path) || '–');
      return cells;
    });
  at('numbers').innerHTML = table(two ? ['What', 'Kept', 'Now', 'Change'] : ['What', 'Now'], rows);
}

// --- what stands behind a number ---------------------------------------------------------------

at('numbers').addEventListener('click', async event => {
  const field = event.target.dataset.field;
  if (!field) return;
  const said = new URLSearchParams(state);
  said.set('field', field);
  const {json, error} = await ask('explain', said.toString());
  const place = at('explained').querySelector('div');
  if (error) {
    place.textContent = error.message;
  } else {
    const list = (title, lines) => lines.length === 0 ? ''
      : `<h3>${title}</h3><ul>${lines.map(line => `<li>${line}</li>`).join('')}</ul>`;
    place.innerHTML = `<h2>${escapeHtml(field)} = ${escapeHtml(shown(field, json.value))}</h2>` +
      `<p>${escapeHtml(json.about)}</p><p><code>${escapeHtml(json.formula)}</code></p>` +
      list('What goes in', json.inputs.map(each => `<strong>${escapeHtml(each.path)}</strong> ${
        escapeHtml(shown(each.path, each.value))}<br><small>${escapeHtml(each.from)}</small>`)) +
      list('Assumed', json.assumptions.map(escapeHtml)) +
      list('Nearest published runs', json.nearest.map(each => `${escapeHtml(each.row)}: measured ${
        seconds(each.measured_step_s)}, predicted ${seconds(each.predicted_step_s)}`));
  }
  at('explained').showModal();
});

// --- what holds transfers back, layouts, two states --------------------------------------------

at('links').onclick = async () => {
  const of = query(state);
  at('held').textContent = 'Simulating.';
  const {json, error} = await ask('fabric', of);
  at('held').dataset.of = of;
  if (error) { at('held').textContent = error.message; return; }
  const held = json.fabric?.held_back_by ?? [], relief = json.fabric?.relief ?? [];
  const percentOf = share => written(`${(100 * share).toFixed(1)} %`);
  at('held').innerHTML = (held.length === 0 ? '<p>No link that transfers share holds them back.</p>'
    : table(['Traffic, held back by', 'of its time'], held.flatMap(each => each.by.map(part =>
      [`${escapeHtml(each.traffic)}<small>${escapeHtml(worded(part.links))}</small>`, percentOf(part.share)])))) +
    (relief.length === 0 ? '' : table(['Simulated change', 'Step', 'Saves'], relief.map(each =>
      [escapeHtml(written(each.change)), seconds(each.step_s), percentOf(1 - each.step_s / json.step_s)])));
};
at('search').onclick = async () => {
  at('said').textContent = 'Searching the layout.';
  const {json, error} = await ask('layout', query(state));
  if (error) { at('said').textContent = mistake(error); return; }
  setState(json.state);
  followed = json.said ? written(`In the fastest layout that was found, ${json.said}.`) : '';
};
function keep(what) {
  kept = what;
  before = anchor = undefined;
  entry = true;
  changed();
}
at('keep').onclick = () => keep(query(state));
at('forget').onclick = () => keep(undefined);
at('swap').onclick = () => setState(Object.fromEntries(new URLSearchParams(kept)));
at('reset').onclick = () => setState({});
addEventListener('popstate', event => { readAddress(); setState(state, event.state ?? {}); });

readAddress();
changed();
}
