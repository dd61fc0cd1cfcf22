// `lockstep explore` from outside: who is turned away, whether its answers are the program's, and
// the page in Chromium, on a screen and a phone, light and dark. Leaves screenshots of all with
// LOCKSTEP_SCREENSHOTS=1, and otherwise of what fails. With LOCKSTEP_ALL=1 (`tools/test --all`) pages of
// twenty scenarios are held against what `lockstep run` prints for them, and one of them otherwise.
//   node explore_test.mjs PLAYWRIGHT_FOLDER CHROMIUM PROGRAM FOLDER
import {execFileSync, spawn} from 'node:child_process';
import {mkdirSync, readFileSync, writeFileSync} from 'node:fs';
import {connect} from 'node:net';
import {createRequire} from 'node:module';
import {resolve} from 'node:path';
import {Readable} from 'node:stream';

const [driver, chromiumPath, programArgument, folderArgument] = process.argv.slice(2);
const folder = resolve(folderArgument), program = resolve(programArgument);
mkdirSync(folder, {recursive: true});

const failures = [];
const check = (condition, what) => { if (!condition) failures.push(what); };

function start(args) {
  const child = spawn(program, ['explore', ...args], {stdio: ['ignore', 'pipe', 'pipe']});
  const ended = new Promise(done => child.on('exit', (code, signal) => done({code, signal})));
  const address = new Promise((done, fail) => {
    let said = '';
    child.stdout.on('data', data => {
      said += data;
      if (said.endsWith('\n')) done(said.trim());
    });
    ended.then(({code}) => fail(new Error(`explore ended with ${code}`)));
  });
  return {child, ended, address};
}

const served = start([]);
const address = await served.address.catch(error => error);
if (address instanceof Error) {
  // Without npm the program has no chart library, and says so.
  console.log(`skipped: ${address.message}`);
  process.exit(0);
}
const {port, host, pathname} = new URL(address);
check(/^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/.test(address), `address: ${address}`);

// --- who is turned away --------------------------------------------------------------------------

// Sends the text as it is, then the parts, and returns all that comes back. Parts are written as they
// are taken: to write one text of their length would hold up whatever else this program asks meanwhile.
function raw(text, parts = []) {
  return new Promise(done => {
    const socket = connect(Number(port), '127.0.0.1');
    let said = '';
    socket.on('data', data => { said += data; });
    for (const event of ['close', 'error']) socket.on(event, () => done(said));
    socket.on('connect', () => {
      socket.write(text, 'latin1');
      if (parts.length > 0) Readable.from(parts).pipe(socket, {end: false});
    });
  });
}
const get = (path, headers = [`Host: ${host}`], method = 'GET', body = '') =>
  raw(`${method} ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`);
const ours = `Host: ${host}`;
const hostile = {
  'no token': get('/'),
  'no token, an answer': get('/answer'),
  'a token of zeros': get(`/${'0'.repeat(32)}/answer`),
  'half of the token': get(`${pathname.slice(0, 17)}/answer`),
  'the token without its slash': get(pathname.slice(0, -1)),
  'the token in capitals': get(`${pathname.toUpperCase()}answer`),
  'a path below': get(`${pathname}../answer`),
  'a file': get(`${pathname}../../../../etc/passwd`),
  'a file, encoded': get(`${pathname}%2e%2e%2f%2e%2e%2fetc%2fpasswd`),
  'a file, twice encoded': get(`${pathname}%252e%252e%252fetc%252fpasswd`),
  'a file, absolute': get('//etc/passwd'),
  'a zero byte': get(`${pathname}answer%00.json`),
  'another page': get(`${pathname}index.html`),
  'a question without its field': get(`${pathname}explain`),
  'another host': get(pathname, ['Host: example.org']),
  'another port': get(pathname, ['Host: 127.0.0.1:1']),
  'no host': get(pathname, []),
  'two hosts': get(pathname, [ours, 'Host: example.org']),
  'another origin': get(pathname, [ours, 'Origin: http://example.org']),
  'an origin of none': get(pathname, [ours, 'Origin: null']),
  'our origin over https': get(pathname, [ours, `Origin: https://${host}`]),
  'another site': get(pathname, [ours, 'Sec-Fetch-Site: cross-site']),
  'a range': get(pathname, [ours, 'Range: bytes=0-,0-,0-']),
  'an upgrade': get(pathname, [ours, 'Upgrade: websocket', 'Connection: Upgrade']),
  'a body': get(pathname, [ours, 'Content-Length: 2'], 'GET', '{}'),
  'a body in chunks': get(pathname, [ours, 'Transfer-Encoding: chunked'], 'GET', '2\r\n{}\r\n0\r\n\r\n'),
  'a question at length': get(`${pathname}answer?${'a'.repeat(20000)}`),
  'a header at length': get(pathname, [ours, `X: ${'a'.repeat(20000)}`]),
  'no request': raw('\x16\x03\x01 hello\r\n\r\n'),
  'an announced body': get(`${pathname}answer`, [ours, 'Expect: 100-continue', 'Content-Length: 9'],
    'POST'),
};
for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS', 'CONNECT', 'TRACE', 'PRI']) {
  hostile[`the method ${method}`] = get(`${pathname}answer`, [ours, 'Content-Length: 0'], method);
}
// What is announced decides. No more is sent than a socket takes at once: whoever still writes when
// the connection is reset may never read why.
for (const size of [1, 1e5, 1e8]) {
  hostile[`a body of ${size} bytes`] =
    get(`${pathname}answer`, [ours, `Content-Length: ${size}`], 'POST', 'x'.repeat(Math.min(size, 1e4)));
}
// What is wrong is said: the method, or that there is a body; an announced none is none.
for (const [status, said] of [[405, hostile['the method POST']], [405, hostile['a body of 100000 bytes']],
                              [413, hostile['a body']],
                              [200, get(pathname, [ours, 'Content-Length: 0'])]]) {
  const reply = await said;
  check(reply.startsWith(`HTTP/1.1 ${status} `), `${status}: ${JSON.stringify(reply.slice(0, 80))}`);
}
for (const [what, said] of Object.entries(hostile)) {
  const reply = await said;
  check(/^HTTP\/1\.1 4\d\d /.test(reply), `${what}: ${JSON.stringify(reply.slice(0, 80))}`);
  const body = reply.slice(reply.indexOf('\r\n\r\n') + 4);
  check(body === '', `${what}: more than a status: ${JSON.stringify(body.slice(0, 80))}`);
}
// Who says nothing is left, without a word, and a body that is sent whole is read by nobody; meanwhile
// others get their answers. Who is slow is told: tests/tools/explore/server_test.cpp, which says how slow.
{
  const silent = Array.from({length: 50}, () => raw(''));
  const flood = raw(`POST ${pathname}answer HTTP/1.1\r\n${ours}\r\nContent-Length: 50000000\r\n\r\n`,
    Array(50).fill('x'.repeat(1e6)));
  const other = await get(pathname);
  check(other.startsWith('HTTP/1.1 200 '), `beside silent ones: ${JSON.stringify(other.slice(0, 80))}`);
  for (const reply of await Promise.all(silent)) {
    check(reply === '', `who says nothing: ${JSON.stringify(reply.slice(0, 80))}`);
  }
  check(/^(HTTP\/1\.1 405 |$)/.test(await flood), 'a body of 50 MB is taken');
}
{
  // Listening on this machine's own address, and on no other.
  const place = Number(port).toString(16).toUpperCase().padStart(4, '0');
  const listening = ['tcp', 'tcp6'].flatMap(table => readFileSync(`/proc/net/${table}`, 'utf8').split('\n'))
    .map(line => line.trim().split(/\s+/)).filter(([, local, , how]) => how === '0A' && local.endsWith(`:${place}`));
  check(listening.length === 1 && listening[0][1] === `0100007F:${place}`, `listens at ${listening}`);
}

// --- answers ---------------------------------------------------------------------------------------

const fetched = async what => {
  const reply = await fetch(address + what);
  return {status: reply.status, text: await reply.text()};
};
const run = (args, options = {}) => execFileSync(program, args, {encoding: 'utf8', cwd: folder, ...options});

// What is saved gives the program's own bytes.
const followed = JSON.parse((await fetched('moved?moved=parallelism.pipeline&to=3')).text);
check(/^data width .* follow$/.test(followed.said), `moved: ${followed.said}`);
const kStates = ['', new URLSearchParams(followed.state).toString(), 'cluster.nodes=32', 'model=llama3_8b&cluster.node=dgx_b200&cluster.nodes=2',
  'cluster.node.nics=2&cluster.fabric=fat_tree_2_to_1&batch.micro=2', 'parallelism.tensor=4'];
for (const state of kStates) {
  const answer = await fetched(`answer?${state}`), saved = await fetched(`explore.json?${state}`);
  check(answer.status === 200 && saved.status === 200, `${state}: ${answer.status}: ${answer.text}`);
  writeFileSync(`${folder}/explore.json`, saved.text);
  const own = run(['run', 'explore.json', '--allow-oom', '--format', 'json']);
  check(own === answer.text, `${state}: not the bytes of lockstep run`);
  const number = JSON.parse(run(['explain', 'explore.json', 'mfu', '--format', 'json']));
  const explained = JSON.parse((await fetched(`explain?field=mfu&${state}`)).text);
  check(explained.value === number.value && explained.formula === number.formula,
    `${state}: explained otherwise`);
}
{
  const state = 'cluster.node.nics=2&cluster.fabric=fat_tree_2_to_1';
  writeFileSync(`${folder}/explore.json`, (await fetched(`explore.json?${state}`)).text);
  const own = run(['run', 'explore.json', '--explain-fabric', '--allow-oom', '--format', 'json']);
  check(own === (await fetched(`fabric?${state}`)).text, 'fabric: not the bytes of --explain-fabric');
}
{
  const found = JSON.parse((await fetched('layout?cluster.nodes=96&batch.sequences=1536')).text);
  const answer = await fetched(`answer?${new URLSearchParams(found.state)}`);
  check(answer.status === 200 && JSON.parse(answer.text).memory_fits, `layout: ${JSON.stringify(found)}`);
  check(found.state['cluster.nodes'] === '96', 'layout: forgets what was chosen');
}
// A state that cannot be is one line, as from the program.
const kMistakes = {
  'model=llama3_70': /^explore#\/model: found "llama3_70"; allowed: .*Did you mean "?llama3_70b"?\?$/,
  'model=/etc/passwd': /^explore#\/model: found "\/etc\/passwd"; allowed: /,
  'cluster.nodes=0': /^explore#\/cluster\/nodes: found "0"; allowed: a whole number from 1 to 16384$/,
  'cluster.nodes=1e3': /^explore#\/cluster\/nodes: found "1e3"; /,
  'cluster.nodes=2&cluster.nodes=4': /^explore#\/cluster\/nodes: found "[24]"; allowed: one value, not two$/,
  'parallelism.schedule_file=x.json': /^explore: found "parallelism.schedule_file"; allowed: .*Did you mean/,
  'price.usd_per_gpu_hour=nan': /^explore#\/price\/usd_per_gpu_hour: found "nan"; /,
  'parallelism.tensor=3': /^explore\.json#\/parallelism/,
};
for (const [state, pattern] of Object.entries(kMistakes)) {
  const {status, text} = await fetched(`answer?${state}`);
  check(status === 422, `${state}: ${status}`);
  const line = JSON.parse(text).error.message;
  check(pattern.test(line) && !line.includes('\n'), `${state}: ${line}`);
}

// --- the page in a browser ---------------------------------------------------------------------------

const {chromium} = createRequire(import.meta.url)(resolve(driver));
const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer', '--disable-quic',
    '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
async function openWindow(view) {
  const page = await browser.newPage({viewport: {width: view.width, height: 900},
    deviceScaleFactor: view.scale ?? 1});
  let name, given, scheme = 'light';
  page.on('pageerror', error => failures.push(`${name}: ${error.message}`));
  page.on('console', message => {
    // A state that cannot be is a reply of status 422.
    if (['error', 'warning'].includes(message.type()) && !message.text().includes('422')) {
      failures.push(`${name}: ${message.text()}`);
    }
  });
  page.on('request', request => {
    if (!request.url().startsWith(address) && !request.url().startsWith('data:')) {
      failures.push(`${name}: asked for ${request.url()}`);
    }
  });
  const named = () => (name = `${given}, ${view.width} px, ${scheme}`);
  const show = async where => {
    given = where || 'as given';
    named();
    await page.goto(address + (where ? `?${where}` : ''));
    await settled(page);
    return name;
  };
  // The page that is there draws its charts again, in the other colours.
  const turn = async () => {
    scheme = scheme === 'light' ? 'dark' : 'light';
    named();
    const ink = () => page.evaluate('getComputedStyle(document.body).color');
    const before = await ink();
    await page.evaluate('delete document.documentElement.dataset.charts');
    await page.emulateMedia({colorScheme: scheme});
    await page.waitForFunction(() => document.documentElement.dataset.charts !== undefined);
    check(await ink() !== before, `${name}: does not follow the colour scheme`);
    return name;
  };
  return {page, show, turn};
}
async function open(where, view) {
  const {page, show} = await openWindow(view);
  return {page, name: await show(where)};
}
const settled = page => page.waitForFunction(() => {
  const {dataset} = document.documentElement;
  const said = new URLSearchParams(location.search);
  said.delete('kept');
  return dataset.shown === said.toString();
});
const number = (page, path) => page.locator(`[data-number="${path}"]`).innerText();
const coloursOfCharts = () => [...document.querySelectorAll('figure:not([hidden]) .chart')].map(chart => {
  const canvas = chart.querySelector('canvas');
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 12) {
    if (data[i + 3] > 0) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
  }
  return seen.size;
});
const namelessControls = () => [...document.querySelectorAll('button, input, select, [tabindex], [role=img]')]
  .filter(each => !(each.getAttribute('aria-label') || each.textContent.trim() || each.labels?.[0]?.textContent))
  .map(each => each.outerHTML.slice(0, 60));

const kept = new URLSearchParams({kept: 'cluster.node=dgx_h100'});
const kWindow = {width: 1360}, kPhone = {width: 390, scale: 2};
const kPages = {given: '', compared: `cluster.node=dgx_b200&cluster.nodes=32&${kept}`,
  mistaken: 'parallelism.tensor=1', full: 'model=llama3_405b'};
async function look(page, view, name, said) {
  const before = failures.length;
  const wide = await page.evaluate('document.documentElement.scrollWidth');
  check(wide <= view.width, `${said}: ${wide} px wide`);
  const nameless = await page.evaluate(namelessControls);
  check(nameless.length === 0, `${said}: no name for a screen reader: ${nameless}`);
  if (name !== 'mistaken') {
    const colours = await page.evaluate(coloursOfCharts);
    check(colours.length === (name === 'compared' ? 5 : 4), `${said}: ${colours.length} charts`);
    check(colours.every(seen => seen > 4), `${said}: a chart is blank: ${colours}`);
  }
  if (failures.length > before || process.env.LOCKSTEP_SCREENSHOTS) {
    const scheme = said.slice(said.lastIndexOf(' ') + 1);
    await page.screenshot({path: `${folder}/${name}-${view.width}-${scheme}.png`, fullPage: true});
  }
}
// The same numbers as `lockstep run NAME`: all that it prints is in the answer that the page has, but
// for what a page leaves out (expectations) and adds (power); and the page shows them.
const kTwenty = readFileSync(new URL('../package/twenty.txt', import.meta.url), 'utf8').trim().split('\n')
  .map(path => path.slice(path.lastIndexOf('/') + 1));
check(kTwenty.length === 20, `${kTwenty.length} scenarios`);
const kOwn = ['scenario', 'assumptions', 'expectation', 'claim'];
{
  const page = await browser.newPage({viewport: {width: 1360, height: 900}});
  let compared = 0;
  for (const scenario of process.env.LOCKSTEP_ALL ? kTwenty : kTwenty.slice(0, 1)) {
    const one = start([scenario]);
    const where = await one.address;
    const given = JSON.parse(await (await fetch(`${where}answer?`)).text());
    const printed = JSON.parse(run(['run', scenario, '--allow-oom', '--format', 'json']));
    for (const answer of [given, printed]) delete answer.job.file;
    for (const [name, value] of Object.entries(printed)) {
      if (kOwn.includes(name)) continue;
      compared++;
      check(JSON.stringify(given[name]) === JSON.stringify(value),
        `${scenario}: ${name}: ${JSON.stringify(given[name])?.slice(0, 80)} in the page's answer`);
    }
    await page.goto(where);
    await settled(page);
    const gpus = await number(page, 'gpus'), step = await number(page, 'step_s');
    check(gpus.replaceAll(',', '') === String(printed.gpus), `${scenario}: the page shows ${gpus} GPUs`);
    const [, digits, unit] = /^([\d.]+)\s(\w+)$/.exec(step) ?? [];
    const seconds = Number(digits) * ({us: 1e-6, ms: 1e-3, s: 1, min: 60}[unit] ?? NaN);
    check(Math.abs(seconds / printed.step_s - 1) <= 0.0051,
      `${scenario}: the page shows ${step}, not ${printed.step_s} s`);
    one.child.kill('SIGTERM');
    await one.ended;
  }
  console.log(`compared with lockstep run: ${compared} members`);
  await page.close();
}

// Each page is light and dark, and loaded once for both: every other one dark, to turn light.
for (const view of [kWindow, kPhone]) {
  const {page, show, turn} = await openWindow(view);
  for (const [name, where] of Object.entries(kPages)) {
    await look(page, view, name, await show(where));
    await look(page, view, name, await turn());
  }
  await page.close();
}

{
  const {page, name} = await open('', kWindow);
  const scenario = JSON.parse((await fetched('explore.json?')).text);
  check(/^\S+: one training step/.test(await page.locator('h1').innerText()) &&
    (await page.title()).includes(await page.locator('h1').innerText()) &&
    (await page.locator('header .about').innerText()).startsWith(scenario.about.slice(0, 40)),
    `${name}: does not say what is simulated: ${await page.title()}`);
  // A slider by the keyboard: its answer is there within a blink, and the address follows.
  const slider = page.locator('[id="cluster.nodes"]');
  await slider.focus();
  const times = [];
  for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowLeft']) {
    await page.keyboard.press(key);
    await settled(page);
    times.push(Number(await page.evaluate('document.documentElement.dataset.ms')));
  }
  console.log(`from a slider to its answer, ms: ${times.join(', ')}`);
  await slider.press('ArrowLeft');
  await slider.press('ArrowLeft');
  await settled(page);
  const state = new URL(page.url()).searchParams;
  check(state.get('cluster.nodes') === '32', `${name}: ${page.url()}`);
  const answer = JSON.parse((await fetched('answer?cluster.nodes=32')).text);
  check(await number(page, 'gpus') === String(answer.gpus), `${name}: ${await number(page, 'gpus')} GPUs`);
  check((await number(page, 'step_s')).startsWith(answer.step_s.toPrecision(3)),
    `${name}: ${await number(page, 'step_s')} is not ${answer.step_s}`);
  // Kept and moved on: both stand there, with what was moved, and the address has both.
  await page.getByRole('button', {name: 'keep, to compare'}).click();
  await page.locator('[id="cluster.node"]').selectOption('dgx_b200');
  await settled(page);
  check(await page.locator('#moved li').innerText() === 'Server: dgx_h100 → dgx_b200',
    `${name}: moved: ${await page.locator('#moved').innerText()}`);
  check(await page.locator('#numbers thead th').count() === 4, `${name}: no two states side by side`);
  const both = page.url();
  const again = await open(new URL(both).search.slice(1), kWindow);
  check(await again.page.locator('#numbers').innerText() === await page.locator('#numbers').innerText(),
    `${name}: another page at the same address`);
  await again.page.close();
  // Back undoes one thing at a time: the server, what was kept, all moves of the slider; and stays.
  const sought = () => new URL(page.url()).search.slice(1);
  const byHand = [];
  for (let i = 0; i < 3; ++i) {
    await page.goBack();
    await settled(page);
    byHand.push(sought());
  }
  check(byHand.join(' | ') === 'cluster.nodes=32&kept=cluster.nodes%3D32 | cluster.nodes=32 | ',
    `${name}: Back leads to ${byHand.join(' | ')}`);
  check(await slider.evaluate(each => each.getAttribute('aria-valuetext')) === String(scenario.cluster.nodes),
    `${name}: the slider does not go back`);
  for (let i = 0; i < 3; ++i) await page.goForward();
  await settled(page);
  check(page.url() === both, `${name}: forward leads to ${page.url()}`);
  await page.getByRole('button', {name: 'back to what was kept'}).click();
  await settled(page);
  check(await number(page, 'step_s') === (await page.locator('#numbers tbody tr').first().locator('td').nth(1).innerText()),
    `${name}: not back at what was kept`);
  // A number opens; what it says is explained.
  await page.locator('[data-field="mfu"]').click();
  const explained = page.locator('#explained');
  await explained.getByRole('heading', {name: /^mfu = /}).waitFor();
  const why = await explained.innerText();
  check(/What goes in/.test(why) && /measured [\d.]+ m?s, predicted [\d.]+ m?s/.test(why),
    `${name}: mfu is not explained: ${why}`);
  check(!/undefined|NaN/.test(why + await page.locator('main').innerText()), `${name}: a value is none`);
  await page.keyboard.press('Escape');
  check(!await explained.isVisible(), `${name}: the explanation does not close`);
  await page.getByRole('button', {name: 'which links hold it back'}).click();
  await page.locator('#held table, #held p').first().waitFor();
  // A slider takes along what keeps the job whole, and the page says what.
  await page.getByRole('button', {name: 'as given', exact: true}).click();
  await settled(page);
  const tensor = page.locator('[id="parallelism.tensor"]');
  await tensor.focus();
  await page.keyboard.press('Home');  // all weights on each card
  await settled(page);
  const sentence = await page.locator('#followed').innerText();
  check(/^With Tensor at 1, .*data width [\d,]+ → [\d,]+.* follows?\.$/.test(sentence) &&
    await page.locator('body.stale').count() === 0, `${name}: followed: ${sentence}`);
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await settled(page);
  check([...new URL(page.url()).searchParams.keys()].join() === 'kept', `${name}: there and back leaves ${page.url()}`);
  // A list of amounts sends them as scenarios write them.
  for (const id of ['cluster.node.nic_bandwidth', 'training.tokens']) {
    await page.locator(`[id="${id}"]`).selectOption({index: 3});
    await settled(page);
    check(await page.locator('body.stale').count() === 0 && /[0-9]/.test(new URL(page.url()).searchParams.get(id)),
      `${name}: ${id}: ${await page.locator('#said').innerText()}`);
    await page.locator(`[id="${id}"]`).selectOption('');
    await settled(page);
  }
  // Each stop of a slider has a mark; where there is no answer a choice says so.
  await page.waitForFunction(() =>
    document.documentElement.dataset.looked === document.documentElement.dataset.shown);
  const marks = page.locator('[data-control="cluster.nodes"] .marks i');
  check(await marks.count() === 1 + Number(await slider.getAttribute('max')),
    `${name}: ${await marks.count()} marks`);
  // A model that the layout does not fit has the fastest searched.
  await page.locator('[data-control="model"]').hover();
  const other = page.locator('[id="model"] option[label$="layout is searched"]').first();
  await other.waitFor({state: 'attached'});
  await page.locator('[id="model"]').selectOption(await other.evaluate(option => option.value));
  await page.waitForFunction(() => /fastest/.test(document.getElementById('followed').textContent));
  await settled(page);
  check(await page.locator('body.stale').count() === 0, `${name}: no layout of another model`);
  // What cannot be is said in the page's words, with the last state's numbers below it.
  await page.getByRole('button', {name: 'as given', exact: true}).click();
  await settled(page);
  await page.locator('[data-control="precision"]').hover();
  const none = page.locator('[id="precision"] option.none').first();
  await none.waitFor({state: 'attached'});
  await page.locator('[id="precision"]').selectOption(await none.evaluate(option => option.value));
  await page.locator('body.stale').waitFor();
  const mistake = await page.locator('#said').innerText();
  check(/^(With Precision at \w+, )?[A-Z][\w ]+: .*Allowed: .*The numbers below are of the last state/.test(mistake) &&
    !/\.json|#\/|--set/.test(mistake), `${name}: ${mistake}`);
  await page.getByRole('button', {name: 'back to the last that answers'}).click();
  await page.locator('body:not(.stale)').waitFor();
  await settled(page);
  check(await page.locator('#ways').isHidden(), `${name}: ways out of no mistake`);
  // A layout that an address has and that cannot be gives way to the fastest.
  await page.goto(`${address}?parallelism.tensor=1`);
  await page.locator('body.stale').waitFor();
  await page.getByRole('button', {name: 'fastest layout of these machines'}).click();
  await page.locator('body:not(.stale)').waitFor();
  await settled(page);
  const saved = page.waitForEvent('download');
  await page.getByText('save the scenario').click();
  const file = await (await saved).path();
  check(JSON.parse(readFileSync(file, 'utf8')).model === 'llama3_70b', `${name}: no scenario saved`);
  await page.emulateMedia({media: 'print'});
  check(!await page.locator('#controls').isVisible(), `${name}: controls on paper`);
  // The sheet says of what it is.
  const sheet = await page.locator('main').innerText();
  for (const said of ['one training step', 'Server dgx_h100', 'Sequences a step', 'Assumed:']) {
    check(sheet.includes(said), `${name}: not on paper: ${said}`);
  }
  await page.close();
}
await browser.close();

// --- it stops when it is told ---------------------------------------------------------------------------

for (const [signal, child] of [['SIGTERM', served], ['SIGINT', start(['llama3-405b-16k'])]]) {
  await child.address;
  const began = Date.now();
  child.child.kill(signal);
  const {code} = await child.ended;
  check(code === 0, `${signal}: status ${code}`);
  check(Date.now() - began < 5000, `${signal}: took ${Date.now() - began} ms`);
}

for (const failure of failures) console.log(failure);
process.exit(failures.length === 0 ? 0 : 1);
