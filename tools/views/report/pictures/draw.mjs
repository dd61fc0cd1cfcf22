// Draws the pictures of this folder anew: figures of the pages that the gallery's commands write, as
// a window of 800 px shows them.
//   node tools/views/report/pictures/draw.mjs build/lockstep [chromium-headless-shell]
import {execFileSync} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {dirname, join, resolve} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const [program, browserPath = 'chromium-headless-shell'] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url)), root = resolve(here, '../../../..');
const folder = mkdtempSync(join(tmpdir(), 'pictures-'));
const pages = {
  step: ['run', 'llama3-405b-16k'],
  advice: ['run', 'llama3-405b-16k', '--advise'],
  layouts: ['tune', 'llama3-405b-16k'],
  sweep: ['sweep', 'checkpoint-interval', '-o', join(folder, 'results.db')],
  fabric: ['topology', 'show', 'fat_tree_2_to_1', '--node', 'dgx_h100', '--nodes', '64'],
};
const pictures = [
  ['step-memory', 'step', 'Memory of each stage'], ['step-timeline', 'step', 'Timeline'],
  ['advice', 'advice', 'Gain: '], ['layouts-front', 'layouts', 'Step time and memory'],
  ['sweep-axes', 'sweep', 'All points on parallel axes'], ['fabric', 'fabric', 'Drawn']];

for (const [name, words] of Object.entries(pages)) {
  execFileSync(resolve(program), [...words, '--report', join(folder, `${name}.html`)],
    {cwd: root, stdio: ['ignore', 'ignore', 'inherit']});
}
const driver = join(root, '.cache/report-bundle/node_modules/playwright-core');
const {chromium} = createRequire(import.meta.url)(driver);
const executablePath = browserPath.includes('/') ? browserPath
  : execFileSync('which', [browserPath], {encoding: 'utf8'}).trim();
const browser = await chromium.launch({executablePath, args: ['--no-sandbox', '--disable-gpu']});
const page = await browser.newPage({viewport: {width: 800, height: 900}, colorScheme: 'light'});
for (const [file, from, title] of pictures) {
  await page.goto(pathToFileURL(join(folder, `${from}.html`)).href);
  await page.waitForFunction(() => document.documentElement.dataset.charts !== undefined);
  // A figure is as high as what it has, not as its neighbour.
  await page.addStyleTag({content: '.row { align-items: start; }'});
  const figure = page.locator('figure', {has: page.locator('h3', {hasText: title})}).first();
  await figure.screenshot({path: join(here, `${file}.png`)});
}
await browser.close();
rmSync(folder, {recursive: true});
