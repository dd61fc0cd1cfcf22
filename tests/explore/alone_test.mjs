// `lockstep explore -o`: the page as a file that nobody serves, in Chromium. Its numbers are those
// of the program, and it asks nobody. With LOCKSTEP_ALL=1 (`tools/test --all`) twenty scenarios' pages
// are held against what `lockstep run` prints for them, and one of them otherwise.
//   node alone_test.mjs PLAYWRIGHT_FOLDER CHROMIUM PROGRAM FOLDER
import {execFileSync, spawnSync} from 'node:child_process';
import {mkdirSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {resolve} from 'node:path';

const [driver, chromiumPath, programArgument, folderArgument] = process.argv.slice(2);
const folder = resolve(folderArgument), program = resolve(programArgument);
mkdirSync(folder, {recursive: true});
const file = `${folder}/explore.html`;
const written = spawnSync(program, ['explore', '-o', file], {encoding: 'utf8'});
if (/was built without/.test(written.stderr)) {
  console.log(`skipped: ${written.stderr}`);
  process.exit(0);
}
const failures = [];
const check = (condition, what) => { if (!condition) failures.push(what); };
check(written.status === 0, `explore -o: ${written.stderr}`);

console.log(`the page: ${statSync(file).size} bytes`);
// Nothing lies beside it that a link could lead to.
const lost = [...readFileSync(file, 'utf8').matchAll(/<a [^>]*href="(?!#|https:)[^"]*"/g)]
  .map(each => each[0]);
check(lost.length === 0, `links to what is not there: ${lost}`);

const {chromium} = createRequire(import.meta.url)(resolve(driver));
const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer', '--disable-quic',
    '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const page = await browser.newPage({viewport: {width: 1360, height: 900}, acceptDownloads: true});
page.on('pageerror', error => failures.push(error.message));
page.on('console', message => {
  if (['error', 'warning'].includes(message.type())) failures.push(message.text());
});
page.on('request', request => {
  if (!/^(file|data|blob):/.test(request.url())) failures.push(`asked for ${request.url()}`);
});
const settled = () => page.waitForFunction(() =>
  document.documentElement.dataset.shown === new URLSearchParams(location.hash.slice(1)).toString());
const shown = () => page.evaluate(() => document.body.classList.contains('stale')
  ? document.getElementById('said').textContent : undefined);

// The same numbers as the program's, digit by digit of what both write.
const numbersOf = value => JSON.stringify(value, (key, each) =>
  typeof each === 'number' ? Number(each.toPrecision(9)) : each);
for (const state of ['', 'cluster.nodes=32', 'model=llama3_8b&cluster.node=dgx_b200&cluster.nodes=2',
  'cluster.node.nics=2&cluster.fabric=fat_tree_2_to_1&batch.micro=2', 'parallelism.tensor=4']) {
  await page.goto('about:blank');
  await page.goto(`file://${file}#${state}`);
  await settled();
  check(await shown() === undefined, `${state}: ${await shown()}`);
  for (const id of ['save', 'json']) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click(`#${id}`)]);
    await download.saveAs(`${folder}/${id}.json`);
  }
  writeFileSync(`${folder}/explore.json`, readFileSync(`${folder}/save.json`));
  const own = execFileSync(program, ['run', 'explore.json', '--allow-oom', '--format', 'json'],
    {encoding: 'utf8', cwd: folder});
  const said = readFileSync(`${folder}/json.json`, 'utf8');
  check(numbersOf(JSON.parse(own)) === numbersOf(JSON.parse(said)),
    `${state}: not the numbers of lockstep run`);
  console.log(`${state || 'as given'}: ${own === said ? 'the same bytes' : 'the same to nine digits'}`);
}
{
  // A slider by the keyboard.
  await page.goto('about:blank');
  await page.goto(`file://${file}`);
  await settled();
  const slider = page.locator('[id="cluster.nodes"]');
  await slider.focus();
  const times = [];
  for (const key of ['ArrowLeft', 'ArrowLeft', 'ArrowRight', 'ArrowRight']) {
    await page.keyboard.press(key);
    await settled();
    times.push(Number(await page.evaluate('document.documentElement.dataset.ms')));
  }
  console.log(`from a slider to its answer, ms: ${times.join(', ')}`);
  // A number opens, with what goes in; published runs are none of the page's files.
  await page.locator('[data-field="mfu"]').click();
  const explained = page.locator('#explained');
  await explained.getByRole('heading', {name: /^mfu = /}).waitFor();
  const why = await explained.innerText();
  check(/What goes in/.test(why) && !/undefined|NaN|failed|Nearest/.test(why), `mfu is not explained: ${why}`);
  await page.keyboard.press('Escape');
  // What holds transfers back, and a layout that is found.
  await page.getByRole('button', {name: 'which links hold it back'}).click();
  await page.locator('#held table, #held p').first().waitFor();
  check(!/failed/.test(await page.locator('#held').innerText()), 'links: the module failed');
  await page.locator('[id="parallelism.tensor"]').focus();
  await page.keyboard.press('Home');  // all weights on each card
  await settled();
  const followed = await page.locator('#followed').innerText();
  check(/^With Tensor at 1, .* follows?\.$/.test(followed) && await shown() === undefined,
    `followed: ${followed} ${await shown()}`);
  await page.getByRole('button', {name: 'fastest layout', exact: true}).click();
  await page.locator('body:not(.stale)').waitFor();
  await settled();
  check(await shown() === undefined, `a layout: ${await shown()}`);
  // The notices of what the module is made of, and of the charts.
  await page.getByText('Licences of Lockstep and of what is in it').click();
  await page.waitForFunction(() => document.querySelector('#licences pre').textContent !== '');
  const notices = await page.locator('#licences pre').innerText();
  for (const part of ['Boost Software License', 'Niels Lohmann', 'Victor Zverovich', 'toml++', 'musl',
    'LLVM Exceptions', 'Lockstep']) {
    check(notices.includes(part), `no notice of ${part}`);
  }
  // What cannot be is said of the control.
  await page.evaluate("location.hash = '#cluster.nodes=0'");
  await page.reload();
  await settled();
  check(/^Servers: "0"\. Allowed: a whole number from 1 to/.test(await shown()),
    `a mistake says ${await shown()}`);
  if (process.env.LOCKSTEP_SCREENSHOTS) await page.screenshot({path: `${folder}/alone.png`, fullPage: true});
}
// The same list as of the served page; that leaves out what a page has no use for, too.
const kTwenty = readFileSync(new URL('../package/twenty.txt', import.meta.url), 'utf8').trim().split('\n')
  .map(path => path.slice(path.lastIndexOf('/') + 1));
check(kTwenty.length === 20, `${kTwenty.length} scenarios`);
const kOwn = ['scenario', 'assumptions', 'expectation', 'claim'];
let compared = 0, equal = 0;
for (const scenario of process.env.LOCKSTEP_ALL ? kTwenty : kTwenty.slice(0, 1)) {
  const own = `${folder}/${scenario}.html`;
  execFileSync(program, ['explore', scenario, '-o', own]);
  await page.goto('about:blank');
  await page.goto(`file://${own}`);
  await settled();
  check(await shown() === undefined, `${scenario}: ${await shown()}`);
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('#json')]);
  await download.saveAs(`${folder}/json.json`);
  const given = JSON.parse(readFileSync(`${folder}/json.json`, 'utf8'));
  const printed = JSON.parse(execFileSync(program, ['run', scenario, '--allow-oom', '--format', 'json'],
    {encoding: 'utf8'}));
  for (const answer of [given, printed]) delete answer.job.file;
  for (const [name, value] of Object.entries(printed)) {
    if (kOwn.includes(name)) continue;
    compared++;
    if (JSON.stringify(given[name]) === JSON.stringify(value)) equal++;
    check(numbersOf(given[name]) === numbersOf(value),
      `${scenario}: ${name}: ${JSON.stringify(given[name])?.slice(0, 80)} in the page's answer`);
  }
}
console.log(`compared with lockstep run: ${compared} members, ${equal} of them to the last digit`);
await browser.close();
for (const failure of failures) console.error(failure);
process.exit(failures.length === 0 ? 0 : 1);
