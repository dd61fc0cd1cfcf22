// The documentation's site on a phone and on paper, in Chromium: every page of its own is as wide as
// a phone, nothing on it is cut off at either, pages that were printed are whole, and text stands out
// from what it stands on, in the light and in the dark. Leaves
// screenshots of what fails, and with LOCKSTEP_SCREENSHOTS=1 of some others, and one page as PDF.
//   node site_test.mjs PLAYWRIGHT_FOLDER CHROMIUM SITE FOLDER
import {mkdirSync, readdirSync, readFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {createRequire} from 'node:module';
import {extname, resolve} from 'node:path';

const [driver, chromiumPath, siteArgument, folderArgument] = process.argv.slice(2);
const site = resolve(siteArgument), folder = resolve(folderArgument);
mkdirSync(folder, {recursive: true});
const {chromium} = createRequire(import.meta.url)(resolve(driver));
const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer', '--disable-quic',
    '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const failures = [];
const check = (condition, what) => { if (!condition) failures.push(what); };

// Its search is a worker, which needs a server.
const kTypes = {'.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json',
  '.png': 'image/png', '.svg': 'image/svg+xml'};
const server = createServer((request, reply) => {
  const name = decodeURIComponent(new URL(request.url, 'http://site').pathname);
  try {
    const body = readFileSync(site + name);
    reply.writeHead(200, {'Content-Type': kTypes[extname(name)] ?? 'application/octet-stream'}).end(body);
  } catch {
    reply.writeHead(404).end();
  }
});
await new Promise(done => server.listen(0, '127.0.0.1', done));
const address = `http://127.0.0.1:${server.address().port}/`;

// Pages of the gallery are reports, which tests/report opens.
const pages = readdirSync(site, {recursive: true}).filter(name => name.endsWith('.html') &&
  !name.includes('/gallery/')).sort();
check(pages.length > 30, `only ${pages.length} pages`);
const kSeen = ['index.html', 'tools/package/site/gallery.html', 'tools/package/site/index.html',
  'tools/package/site/tutorials/ml-engineer.html', 'CHANGELOG.html'];
for (const name of kSeen) check(pages.includes(name), `no ${name}`);

const kPhone = 375;
const kPaper = 718;  // A4 less margins of a centimetre, in pixels of CSS
// What reaches beyond the page and cannot be scrolled to, or not on paper.
const cut = paper => {
  const width = document.documentElement.clientWidth;
  const found = [];
  for (const each of document.querySelectorAll('.rst-content *')) {
    const {left, right, width: own} = each.getBoundingClientRect();
    if (own === 0 || (left >= -1 && right <= width + 1)) continue;
    let scrolls = false;
    for (let at = each.parentElement; at && !paper; at = at.parentElement) {
      scrolls ||= ['auto', 'scroll'].includes(getComputedStyle(at).overflowX);
    }
    if (!scrolls) found.push(`${each.tagName} from ${left} to ${right}: ${each.textContent.slice(0, 40)}`);
  }
  // What a box of its own hides: no bar to scroll by on paper.
  for (const each of document.querySelectorAll('.rst-content pre, .rst-content table, .rst-content code')) {
    const hides = ['hidden', 'clip'].includes(getComputedStyle(each).overflowX) || paper;
    if (hides && each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline') {
      found.push(`${each.tagName} hides ${each.scrollWidth - each.clientWidth} px: ${each.textContent.slice(0, 40)}`);
    }
  }
  return found.slice(0, 3);
};
// Words that do not stand out: below 4.5, what WCAG 2.1 asks of text (success criterion 1.4.3).
const faint = () => {
  const parts = colour => colour.match(/[\d.]+/g).map(Number);
  const light = colour => parts(colour).slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if ((parts(colour)[3] ?? 1) === 1) return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = new Map();
  const texts = document.createTreeWalker(document.querySelector('.rst-content'), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement, text = texts.currentNode.data.trim();
    if (text === '' || element.getClientRects().length === 0) continue;
    const colour = getComputedStyle(element).color, ground = behind(element);
    const [less, more] = [light(colour), light(ground)].sort((a, b) => a - b);
    const contrast = (more + 0.05) / (less + 0.05);
    const what = `${element.tagName} in ${element.parentElement.tagName}: ${colour} on ${ground}`;
    if (contrast < 4.5) found.set(what, `${what}, contrast ${contrast.toFixed(1)}: ${text.slice(0, 40)}`);
  }
  return [...found.values()].slice(0, 5);
};

const page = await browser.newPage({viewport: {width: kPhone, height: 800}, deviceScaleFactor: 2});
let where;
page.on('pageerror', error => failures.push(`${where}: ${error.message}`));
page.on('request', request => {
  const ours = [address, 'data:'].some(start => request.url().startsWith(start));
  if (!ours) failures.push(`${where}: asked for ${request.url()}`);
});
for (const name of pages) {
  const before = failures.length;
  where = `${name} on a phone`;
  await page.emulateMedia({media: 'screen'});
  await page.setViewportSize({width: kPhone, height: 800});
  await page.goto(address + name);
  const wide = await page.evaluate('document.documentElement.scrollWidth');
  check(wide <= kPhone, `${where}: ${wide} px wide`);
  for (const each of await page.evaluate(cut, false)) failures.push(`${where}: ${each}`);
  // Commands go on in the next line: their ends and comments would be out of sight.
  for (const each of await page.evaluate(() => [...document.querySelectorAll('.rst-content .language-sh')]
    .map(code => code.parentElement).filter(box => box.scrollWidth > box.clientWidth + 1)
    .map(box => box.textContent.slice(0, 40)))) failures.push(`${where}: commands have to be scrolled: ${each}`);
  for (const colorScheme of ['dark', 'light']) {
    await page.emulateMedia({colorScheme});
    for (const each of await page.evaluate(faint)) failures.push(`${where}, ${colorScheme}: ${each}`);
  }
  const shot = failures.length > before || (process.env.LOCKSTEP_SCREENSHOTS && kSeen.includes(name));
  const file = `${folder}/${name.replaceAll('/', '-').replace('.html', '')}`;
  if (shot) await page.screenshot({path: `${file}-phone.png`});
  where = `${name} on paper`;
  await page.emulateMedia({media: 'print'});
  await page.setViewportSize({width: kPaper, height: 1000});
  for (const each of await page.evaluate(cut, true)) failures.push(`${where}: ${each}`);
  check(!await page.locator('.wy-nav-side').isVisible(), `${where}: the menu is printed`);
  if (failures.length > before || shot) await page.screenshot({path: `${file}-paper.png`});
  if (!kSeen.includes(name)) continue;
  // A page of paper for about as much as stands on it: nothing is cut at its foot.
  const high = await page.evaluate('document.documentElement.scrollHeight');
  const path = `${file}.pdf`;
  await page.pdf({path, format: 'A4', margin: {left: '1cm', right: '1cm', top: '1cm', bottom: '1cm'}});
  const sheets = readFileSync(path, 'latin1').match(/\/Type\s*\/Page\b/g)?.length ?? 0;
  check(sheets >= Math.floor(high / 1100) && sheets >= 1, `${where}: ${sheets} sheets for ${high} px`);
}
await browser.close();
server.close();
console.log(`${pages.length} pages, each ${kPhone} px wide and on paper, light and dark`);
for (const failure of failures) console.log(failure);
process.exit(failures.length === 0 ? 0 : 1);
