// The slider of servers of a page that `lockstep explore` serves, moved in Chromium: its answer is there.
//   node first_slider.mjs PLAYWRIGHT_FOLDER CHROMIUM ADDRESS
import {createRequire} from 'node:module';
import {resolve} from 'node:path';

const [driver, chromiumPath, address] = process.argv.slice(2);
const {chromium} = createRequire(import.meta.url)(resolve(driver));
const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const page = await browser.newPage({viewport: {width: 1360, height: 900}});
const settled = () => page.waitForFunction(() =>
  document.documentElement.dataset.shown === location.search.slice(1));
const gpus = () => page.locator('[data-number="gpus"]').innerText();
await page.goto(address);
await settled();
const before = await gpus();
const slider = page.locator('[id="cluster.nodes"]');
await slider.focus();
await slider.press('ArrowLeft');
await slider.press('ArrowLeft');  // 48 servers do not divide the batch
await page.waitForFunction(() => location.search === '?cluster.nodes=32');
await settled();
const moved = new URL(page.url()).search.slice(1), after = await gpus();
const answer = await (await fetch(`${address}answer?${moved}`)).json();
await browser.close();
console.log(`${moved}: ${before} -> ${after} GPUs, a step of ${answer.step_s} s`);
const follows = after !== before && after.replaceAll(',', '') === String(answer.gpus);
process.exit(follows && answer.step_s > 0 ? 0 : 1);
