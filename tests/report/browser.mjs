// Opens the sample pages in Chromium: no error, no request, every chart drawn, nothing wider than the
// window, tables that sort, text that stays text. Each page is loaded once for a window and once for a
// phone, and asked there all that is asked of it: loading and drawing is what takes the time, so that
// without LOCKSTEP_THOROUGH=1 only pages that are asked more than the others are opened. Leaves
// screenshots beside the pages, of all with LOCKSTEP_SCREENSHOTS=1 and otherwise of those that fail,
// since they take as long again; with it also three pages as PDF, and otherwise one.
//   node browser.mjs PLAYWRIGHT_FOLDER CHROMIUM REPORT_PAGES FOLDER
import {execFileSync} from 'node:child_process';
import {mkdirSync} from 'node:fs';
import {createRequire} from 'node:module';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {textsOnSheets} from './pdf_sheets.mjs';

const [driver, chromiumPath, writer, folderArgument] = process.argv.slice(2);
const folder = resolve(folderArgument);
mkdirSync(folder, {recursive: true});
const said = execFileSync(writer, [folder], {encoding: 'utf8'});
if (said.startsWith('skipped: ')) {
  console.log(said);
  process.exit(0);
}

const {chromium} = createRequire(import.meta.url)(resolve(driver));
const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer', '--disable-quic',
    '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const failures = [];
const check = (condition, what) => { if (!condition) failures.push(what); };

async function openWindow(view) {
  const page = await browser.newPage({
    viewport: {width: view.width, height: 900}, deviceScaleFactor: view.scale ?? 1});
  let where, own, shown, scheme = 'light';
  page.on('pageerror', error => failures.push(`${where}: ${error.message}`));
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type())) failures.push(`${where}: ${message.text()}`);
  });
  page.on('request', request => {
    if (request.url() !== own && request.url() !== 'about:blank' &&
        !request.url().startsWith('data:')) {
      failures.push(`${where}: asked for ${request.url()}`);
    }
  });
  const drawn = async () => {
    where = `${shown}, ${view.width} px, ${scheme}`;
    await page.waitForFunction(() => document.documentElement.dataset.charts !== undefined);
    return where;
  };
  const show = async name => {
    shown = where = name;
    own = pathToFileURL(`${folder}/${name}.html`).href;
    await page.goto(own);
    return drawn();
  };
  // The page that is there draws its charts again, in the other colours.
  const turn = async () => {
    scheme = scheme === 'light' ? 'dark' : 'light';
    await page.evaluate('delete document.documentElement.dataset.charts');
    await page.emulateMedia({colorScheme: scheme});
    return drawn();
  };
  return {page, show, turn};
}

// Colours seen on a grid over each chart's canvas: a chart that drew nothing has one.
const coloursOfCharts = () => [...document.querySelectorAll('.chart')].map(chart => {
  const canvas = chart.querySelector('canvas');
  if (!canvas) return 0;
  const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4 * 3) {
    if (data[i + 3] > 0) seen.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
  }
  return seen.size;
});

// What would not be read: legends in pages, names cut off in charts, values of inputs as JSON, words
// broken within, tables that do not say that they scroll, words that name a colour, two signs for money.
const unreadable = () => {
  const found = [];
  const options = [...document.querySelectorAll('.chart > div')]
    .map(each => echarts.getInstanceByDom(each).getOption());
  for (const each of options) {
    if ((each.legend || []).some(legend => legend.type === 'scroll')) found.push('a paged legend');
    if (JSON.stringify(each).includes('"truncate"')) found.push('a chart that cuts names off');
  }
  const section = title => [...document.querySelectorAll('section')]
    .find(each => each.querySelector('h2')?.textContent === title);
  for (const cell of section('Inputs')?.querySelectorAll('td') ?? []) {
    if (/^[[{]/.test(cell.textContent)) found.push(`JSON among the inputs: ${cell.textContent}`);
  }
  // No line may end between a number and its unit; what is to be copied stays as it is.
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const {textContent: words, parentElement: around} = texts.currentNode;
    if (around.closest('code, script, svg, .chart')) continue;
    const torn = words.match(/\d (%|[kMG]W|[kMGT]B(\/s)?|GiB|[mµ]?s|min|h|days|[kMB] USD|USD)(?![\w/])/);
    if (torn) found.push(`a unit that a line may begin with: ${torn[0]}`);
  }
  // Of what takes time no share is nothing.
  const shareHeads = ['of the step', 'Mean of all runs', 'of all'];
  for (const table of document.querySelectorAll('table')) {
    const heads = [...table.tHead.rows[0].cells].map(each => each.textContent.trim());
    const share = heads.findIndex(each => shareHeads.includes(each));
    const time = heads.findIndex(each => /^(Time|Time a run|GPU hours)$/.test(each));
    if (share < 0 || time < 0) continue;
    for (const row of table.tBodies[0].rows) {
      const [of, took] = [share, time].map(i => row.cells[i].textContent.trim());
      if (/^0(\.0+)?\s%$/.test(of) && /[1-9]/.test(took)) found.push(`${of} of what takes ${took}`);
    }
  }
  const words = document.createRange();
  for (const cell of section('Inputs')?.querySelectorAll('tbody tr:not([hidden]) td:first-child') ?? []) {
    for (const part of cell.childNodes) {
      if (part.nodeType !== Node.TEXT_NODE) continue;
      words.selectNodeContents(part);
      if (words.getClientRects().length > 1) found.push(`a key is broken within: ${cell.textContent}`);
    }
  }
  for (const place of document.querySelectorAll('.table')) {
    const wide = place.scrollWidth > place.clientWidth + 1;
    const says = getComputedStyle(place, '::before').content !== 'none';
    if (wide !== says) found.push(`a table that ${wide ? 'does not say' : 'says wrongly'} that it scrolls`);
  }
  for (const figure of document.querySelectorAll('.figures dd')) {
    if (figure.scrollWidth > figure.clientWidth) found.push(`a figure beyond its box: ${figure.textContent}`);
  }
  const text = document.querySelector('main').innerText;
  for (const wrong of [/white is/, /deeper/, /darker/, /grey line/, /\$\d/, /0\.00\d+\sµs/]) {
    if (wrong.test(text)) found.push(`"${text.match(wrong)[0]}"`);
  }
  return found;
};

// Text that stands out too little from what is behind it (WCAG 2.2, 1.4.3: 4.5 to 1).
const faintText = () => {
  const luminance = colour => {
    const parts = colour.match(/[\d.]+/g).slice(0, 3).map(each => each / 255)
      .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const seen = new Map();
  for (const each of document.querySelectorAll('main *, footer *')) {
    if (each.closest('svg, .chart, script') || ![...each.childNodes].some(
      node => node.nodeType === Node.TEXT_NODE && node.textContent.trim())) continue;
    let around = each;
    while (around && /rgba\(0, 0, 0, 0\)/.test(getComputedStyle(around).backgroundColor)) around = around.parentElement;
    const [ink, ground] = [getComputedStyle(each).color, getComputedStyle(around ?? document.body).backgroundColor];
    const [more, less] = [luminance(ink), luminance(ground)].sort((a, b) => b - a);
    if ((more + 0.05) / (less + 0.05) < 4.5) seen.set(`${ink} on ${ground}`, each.outerHTML.slice(0, 50));
  }
  return [...seen].map(each => each.join(': '));
};

// What the keyboard reaches, or stands for a picture, and has no name.
const namelessControls = () => [...document.querySelectorAll('button, input, [tabindex], [role=img]')]
  .filter(each => !(each.getAttribute('aria-label') || each.textContent.trim() ||
    each.closest('label')?.textContent.trim()))
  .map(each => each.outerHTML.slice(0, 60));

const kCharts = {busy: 10, calm: 4, large: 8, 'one-link': 3, empty: 0, run: 7, 'bare-run': 1,
  points: 2, plan: 5, step: 5, 'what-if': 3, fabric: 1,
  collectives: 2, comparison: 1, sweep: 7, serving: 4, site: 9,
  scaling: 2, diagnosis: 4, replay: 2, learnt: 2, rows: 1, filling: 2};

const kEachTime = ['busy', 'empty', 'run', 'plan', 'step', 'sweep', 'serving', 'diagnosis', 'learnt', 'filling'];
const kPages = process.env.LOCKSTEP_THOROUGH ? Object.keys(kCharts) : kEachTime;

const tipOf = (page, chart, action) => page.evaluate(([number, what]) => {
  const element = document.querySelectorAll('.chart > div')[number];
  echarts.getInstanceByDom(element).dispatchAction({type: 'showTip', ...what});
  return element.querySelector('.tip').innerText;
}, [chart, action]);
// From a page on paper to none on a screen, as the next one finds it; before, as PDF where one asks.
async function leave(page, pdf) {
  if (pdf && process.env.LOCKSTEP_SCREENSHOTS) {
    await page.emulateMedia({media: null});
    await page.pdf({path: `${folder}/${pdf}.pdf`, format: 'A4'});
  }
  await page.goto('about:blank');
  await page.emulateMedia({media: 'screen'});
}

const kWindow = {width: 1360}, kPhone = {width: 390, scale: 2};

// What is asked of single pages, once their charts were looked at.
const kAskedInWindow = {
  large: async (page, where) => {
    const transfers = page.locator('section', {hasText: 'Transfers, most slowed first'}).locator('table');
    const visible = () => transfers.locator('tbody tr:visible').count();
    check(await visible() === 10, `${where}: not 10 rows at first`);
    const first = () => transfers.locator('tbody tr').first().innerText();
    const before = await first();
    await transfers.getByRole('button', {name: 'Slowdown'}).click();
    check(await first() !== before && await visible() === 10, `${where}: the table does not sort`);
    await page.getByRole('button', {name: 'Show all 50'}).click();
    check(await visible() === 50, `${where}: not all 50 rows are shown`);
    // The tooltip of the fullest link's first cell has its whole name, as text.
    const tip = await page.evaluate(() => {
      const heat = echarts.getInstanceByDom(document.querySelector('.chart > div'));
      heat.dispatchAction({type: 'showTip', seriesIndex: 0, dataIndex: 0});
      return document.querySelector('.tip').innerText;
    });
    check(/^group .*\n50 GB\/s, \d+\s% used on average/.test(tip), `${where}: tooltip: ${tip}`);
  },
  run: async (page, where) => {
    const expect = async (chart, action, pattern) => {
      const tip = await tipOf(page, chart, action);
      check(pattern.test(tip), `${where}: chart ${chart}: tooltip: ${tip}`);
    };
    await expect(0, {seriesIndex: 0, dataIndex: 0}, /^.+\nday \d+, \d\d:\d\d\ncost [\d.]+\s\w+$/);
    await expect(0, {x: 600, y: 440}, /^day \d+, \d\d:00 to day \d+, \d\d:00\nTraining at full speed: /);
    await expect(2, {seriesIndex: 1, dataIndex: 1}, /^.+\n[\d.]+\s% of the peak\n/);
    await expect(3, {seriesIndex: 3, dataIndex: 0}, /^Young 1974\nevery [\d.]+\s\w+\n[\d.]+\s% ± /);
    await expect(4, {x: 600, y: 150}, /^day \d+, \d\d:\d\d\nmean [\d.]+ MW\nfrom [\d.]+ to [\d.]+ MW$/);
    await expect(5, {x: 300, y: 150}, /^[\d.]+ s\nmean .*\nfrom .*\na meter reads [\d.]+ MW$/);
    const causes = page.locator('table').nth(2);
    const first = () => causes.locator('tbody tr').first().innerText();
    const before = await first();
    await causes.getByRole('button', {name: 'Cost each'}).click();
    check(await first() !== before, `${where}: the table of causes does not sort`);
    await page.emulateMedia({media: 'print'});
    await page.locator('.chart svg').nth(kCharts.run - 1).waitFor({state: 'attached'});
    const vectors = await page.locator('.chart svg').count();
    check(vectors === kCharts.run, `${where}: ${vectors} charts are vectors on paper`);
    await leave(page, 'run');
  },
  plan: async (page, where) => {
    // The dot of the first candidate, and the upper end of the widest bar.
    const dot = await tipOf(page, 0, {seriesIndex: 1, dataIndex: 0});
    check(/^own H100, 2048 GPUs\n[\d.]+ to [\d.]+ days\n/.test(dot), `${where}: tooltip: ${dot}`);
    const bar = await tipOf(page, 3, {seriesIndex: 2, dataIndex: 0});
    check(/^\w+( \w+){0,2}\n.+\n[\d.]+ times: [\d.]+ M USD\n/.test(bar), `${where}: tooltip: ${bar}`);
    // Every chart of several lines or colours has its legend, and the line of the front falls.
    const seen = await page.evaluate(() => [...document.querySelectorAll('.chart > div')]
      .map(each => echarts.getInstanceByDom(each).getOption())
      .map(each => ({legend: (each.legend?.[0]?.data ?? []).length,
        front: each.series.find(series => series.name === 'front')?.data})));
    check(seen.every(each => each.legend >= 2), `${where}: legends of ${seen.map(each => each.legend)}`);
    const front = seen[0].front;
    check(front.every((dot, i) => i === 0 || (dot[0] > front[i - 1][0] && dot[1] < front[i - 1][1])),
      `${where}: the front bends back: ${JSON.stringify(front)}`);
  },
  busy: async (page, where) => {
    // The mark of the dead cable, and the box of the first leaf.
    const tipIn = (name, place) => page.evaluate(([series, number]) => {
      const element = document.querySelector('.chart > div');
      const chart = echarts.getInstanceByDom(element);
      const seriesIndex = chart.getOption().series.findIndex(each => each.name === series);
      chart.dispatchAction({type: 'showTip', seriesIndex, dataIndex: number});
      return element.querySelector('.tip').innerText;
    }, [name, place]);
    const dead = await tipIn('faults', 1);
    check(/^leaf 0 – spine 0: \d+ cables?\n.*dead\nup: /.test(dead), `${where}: tooltip: ${dead}`);
    const box = await tipIn('boxes', 0);
    check(/^node/.test(box), `${where}: tooltip: ${box}`);
    // On paper, from the dark.
    await page.emulateMedia({media: 'print'});
    await page.waitForTimeout(1500); // longer than page.js keeps an old drawing
    // A busy machine takes longer to draw all of them anew.
    await page.waitForFunction(count => document.querySelectorAll('.chart svg').length === count &&
        [...document.querySelectorAll('.chart > div')].every(each => {
          const svg = each.querySelector('svg');
          return svg && Math.abs(svg.getBoundingClientRect().height -
                                 each.getBoundingClientRect().height) < 1;
        }), kCharts.busy, {timeout: 15000}).catch(() => {});
    const vectors = await page.locator('.chart svg').count();
    check(vectors === kCharts.busy, `${where}: ${vectors} charts are vectors on paper`);
    // Names in vectors are whole.
    const cut = await page.evaluate(() => [...document.querySelectorAll('.chart svg text')]
      .map(each => each.textContent).filter(each => /…|\.\.\.$/.test(each)));
    check(cut.length === 0, `${where}: names cut off on paper: ${cut}`);
    // Heads of tables are no larger than rows; nothing on paper is there to be dragged, and the rows
    // of the heat map are close together.
    const paper = await page.evaluate(() => {
      const size = each => parseFloat(getComputedStyle(each).fontSize);
      const heat = [...document.querySelectorAll('.chart > div')]
        .map(each => ({each, options: echarts.getInstanceByDom(each).getOption()}))
        .find(({options}) => options.series[0].type === 'heatmap');
      return {
        large: [...document.querySelectorAll('table')].filter(table => table.querySelector('td') &&
          size(table.querySelector('th button')) > size(table.querySelector('td'))).length,
        bars: [...document.querySelectorAll('.chart > div')]
          .filter(each => echarts.getInstanceByDom(each).getOption().dataZoom?.length > 0).length,
        hints: [...document.querySelectorAll('.hint')].filter(each => each.offsetParent).length,
        row: (heat.each.getBoundingClientRect().height - 75) / heat.options.yAxis[0].data.length,
      };
    });
    check(paper.large === 0, `${where}: ${paper.large} tables have heads larger than their rows`);
    check(paper.bars === 0 && paper.hints === 0, `${where}: bars that zoom, on paper`);
    check(paper.row < 9, `${where}: rows of the heat map are ${paper.row} px high on paper`);
    // Rows that a screen has folded away, of tables that paper has.
    const folded = await page.evaluate(() => [...document.querySelectorAll('tbody tr[hidden]')]
      .filter(row => row.closest('table').getClientRects().length > 0)
      .map(row => row.getClientRects().length > 0));
    check(folded.length > 0 && folded.every(seen => seen), `${where}: a table is cut on paper`);
    await page.emulateMedia({media: null});
    await page.pdf({path: `${folder}/busy.pdf`, format: 'A4'});
  },
  sweep: async (page, where) => {
    // Axes have their units.
    const units = await page.evaluate(() => [...document.querySelectorAll('.chart > div')]
      .map(each => echarts.getInstanceByDom(each).getOption())
      .filter(each => each.series.some(series => series.type === 'scatter' && series.name === 'points'))
      .map(each => each.yAxis[0].axisLabel.formatter));
    check(units.length > 0 && units.every(each => /\{value\} \S/.test(each)),
      `${where}: axes without a unit: ${units}`);
    // A table of many columns on paper: no number goes on in the next line.
    await page.emulateMedia({media: 'print'});
    await page.setViewportSize({width: 688, height: 900});
    const broken = await page.evaluate(() => {
      const head = document.querySelector('thead tr');
      for (let i = 0; i < 8; i++) head.append(head.lastElementChild.cloneNode(true));
      const cells = [];
      for (const row of document.querySelectorAll('tbody tr')) {
        for (let i = 0; i < 8; i++) {
          const cell = document.createElement('td');
          cell.className = 'number';
          cell.innerHTML = i % 2 ? '1234567890' : '<strong>1234567890</strong>';
          row.append(cell);
          cells.push(cell);
        }
      }
      // Measured once all are there: a cell that is measured before the next one comes costs a layout.
      let count = 0;
      for (const cell of cells) {
        const words = document.createRange();
        words.selectNodeContents(cell);
        if (new Set([...words.getClientRects()].map(box => Math.round(box.top))).size > 1) count++;
      }
      return count;
    });
    check(broken === 0, `${where}: ${broken} numbers are broken on paper`);
    await leave(page);
    await page.setViewportSize({width: kWindow.width, height: 900});
  },
  step: async (page, where) => {
    // The table of sources: a search over all of its rows, and back.
    const search = page.getByRole('searchbox').first();
    const rows = () => page.locator('.search + .table').first().locator('tbody tr:visible').count();
    const before = await rows();
    await search.fill('hbm_bandwidth');
    check(await rows() === 1, `${where}: the search finds ${await rows()} rows`);
    await search.fill('');
    check(await rows() === before, `${where}: ${await rows()} rows after a search, not ${before}`);
    // A figure that is pressed opens what stands behind it.
    const behind = page.locator('#behind-mfu');
    check(!await behind.getByText('Nearest published runs').isVisible(), `${where}: open at first`);
    await page.locator('.figures a', {hasText: 'MFU, attention in full'}).click();
    check(await behind.getByText('Nearest published runs').isVisible(), `${where}: mfu does not open`);
    check(await page.locator('.figures a').count() === 5, `${where}: figures that lead nowhere`);
    // The timeline zooms by button and key, and is whole again.
    const view = () => page.locator('figure.picture svg').getAttribute('viewBox');
    const whole = await view();
    await page.getByRole('button', {name: 'zoom in: Timeline'}).click();
    const closer = await view();
    check(closer !== whole, `${where}: the picture does not zoom`);
    await page.locator('.canvas').focus();
    await page.keyboard.press('ArrowRight');
    check(await view() !== closer, `${where}: arrow keys do not move the picture`);
    await page.getByRole('button', {name: 'zoom whole: Timeline'}).click();
    check((await view()).split(' ').map(Number).join() === whole.split(' ').map(Number).join(),
      `${where}: ${await view()} is not the whole picture, ${whole}`);
    // A legend of some lines has all of its names, and the chart is higher by them.
    const legends = await page.evaluate(() => [...document.querySelectorAll('.chart > div')]
      .map(each => echarts.getInstanceByDom(each).getOption().legend?.[0])
      .filter(Boolean).map(each => each.type));
    check(legends.length > 0 && !legends.includes('scroll'), `${where}: legends: ${legends}`);
    await page.getByRole('button', {name: 'today'}).click();
    check(/^\d{4}-\d\d-\d\d$/.test(await page.getByLabel('Date').inputValue()),
      `${where}: no date on request`);
    await page.emulateMedia({media: 'print'});
    await leave(page, 'step');
  },
};
// Ticks across a chart that stand at uneven distances: ECharts left out labels that touch.
const unevenTicks = () => [...document.querySelectorAll('.chart > div')].flatMap(element => {
  const chart = echarts.getInstanceByDom(element);
  return (chart.getModel().getComponent('xAxis')?.axis ? [chart.getModel().getComponent('xAxis')] : [])
    .filter(model => ['value', 'log'].includes(model.get('type')) &&
      model.get(['axisLabel', 'show']) && !model.get(['axisLabel', 'customValues']))
    .flatMap(({axis}) => {
      const labels = axis.getViewLabels();
      const wide = label => element.querySelector('canvas').getContext('2d')
        .measureText(label.formattedLabel).width;
      const room = Math.abs(axis.getExtent()[1] - axis.getExtent()[0]) / Math.max(1, labels.length - 1);
      return labels.length > 3 && Math.max(...labels.map(wide)) > room
        ? [labels.map(each => each.formattedLabel).join(' ')] : [];
    });
});
const kAskedOnPhone = {
  filling: async (page, where) => {
    // A table that is sorted by a column out of sight leaves the page as wide as it is.
    await page.evaluate(() => {
      for (const table of document.querySelectorAll('table')) {
        table.tHead.rows[0].lastElementChild.querySelector('button').click();
      }
    });
    const wide = await page.evaluate('document.documentElement.scrollWidth');
    check(wide <= kPhone.width, `${where}: ${wide} px wide, sorted by last columns`);
    const uneven = await page.evaluate(unevenTicks);
    check(uneven.length === 0, `${where}: ticks without room: ${uneven.join('; ')}`);
  },
  run: async (page, where) => {
    // The shares of lost time have the same peak in few wide bins as in many narrow ones.
    const peaks = await page.evaluate(() => {
      const most = points => Math.max(...points.map(point => point[1]));
      const all = JSON.parse(document.getElementById('chart-1').textContent).series;
      const drawn = echarts.getInstanceByDom(document.querySelector('.chart > div')).getOption().series;
      const lost = series => series.filter(each => each.step)[1].data;
      return {all: most(lost(all)), drawn: most(lost(drawn)), bins: lost(drawn).length,
        allBins: lost(all).length};
    });
    check(peaks.drawn === peaks.all, `${where}: the peak is ${peaks.drawn} %, not ${peaks.all} %`);
    check(peaks.bins < peaks.allBins, `${where}: ${peaks.bins} bins are not fewer`);
  },
  busy: async (page, where) => {
    // Boxes of the fabric: all leaves are named, whole.
    const names = await page.evaluate(() => {
      const chart = echarts.getInstanceByDom(document.querySelector('.chart > div'));
      return chart.getOption().series.filter(each => each.name === 'boxes')
        .flatMap(each => each.data.filter(box => box.label?.show !== false).map(box => box.name));
    });
    check(names.filter(name => name.startsWith('leaf')).length === 8, `${where}: named: ${names}`);
  },
  step: async (page, where) => {
    const scrolled = await page.evaluate(() => {
      const answer = [...document.querySelectorAll('section')]
        .find(section => section.querySelector('h2')?.textContent === 'The answer');
      const table = answer.querySelector('.table');
      return table.scrollWidth - table.clientWidth;
    });
    check(scrolled === 0, `${where}: the answer scrolls by ${scrolled} px on a phone`);
    // What opens by a press is no wider than the rest: formulas, licences.
    await page.evaluate(() => document.querySelectorAll('details').forEach(each => { each.open = true; }));
    const wide = await page.evaluate('document.documentElement.scrollWidth');
    check(wide <= kPhone.width, `${where}: ${wide} px wide once all is open`);
    // Of the four leaves and four spines no figure has room beside the next, of the eight nodes each.
    const shown = await page.evaluate(() => {
      const chart = [...document.querySelectorAll('.chart > div')].map(each => echarts.getInstanceByDom(each))
        .find(each => each.getOption().series.some(series => series.name === 'use'));
      return chart.getOption().series.find(series => series.name === 'use').data
        .filter(dot => dot.label?.show !== false).length;
    });
    check(shown <= 8, `${where}: ${shown} figures on lines without room`);
  },
};

// What every page is asked, in the colours that it has now.
async function look(page, width, name, where) {
  const charts = kCharts[name], before = failures.length;
  const colours = await page.evaluate(coloursOfCharts);
  check(colours.length === charts, `${where}: ${colours.length} charts, not ${charts}`);
  check(colours.every(seen => seen > 4), `${where}: a chart is blank: colours ${colours}`);
  const wide = await page.evaluate('document.documentElement.scrollWidth');
  check(wide <= width, `${where}: ${wide} px wide`);
  check(await page.locator('main b').count() === 0, `${where}: a name became markup`);
  const unread = await page.evaluate(unreadable);
  check(unread.length === 0, `${where}: ${unread.join('; ')}`);
  const faint = await page.evaluate(faintText);
  check(faint.length === 0, `${where}: faint: ${faint.join('; ')}`);
  const nameless = await page.evaluate(namelessControls);
  check(nameless.length === 0, `${where}: no name for a screen reader: ${nameless}`);
  if (failures.length > before || process.env.LOCKSTEP_SCREENSHOTS) {
    const file = where.replaceAll(', ', '-').replace(' px', '');
    await page.screenshot({path: `${folder}/${file}.png`, fullPage: true});
  }
}

// In a window every page is light and dark: every other one is loaded dark, and then turns light.
{
  const {page, show, turn} = await openWindow(kWindow);
  for (const name of kPages) {
    await look(page, kWindow.width, name, await show(name));
    const ink = () => page.evaluate('getComputedStyle(document.body).color');
    const before = await ink();
    const where = await turn();
    check(await ink() !== before, `${where}: does not follow the colour scheme`);
    await look(page, kWindow.width, name, where);
    await kAskedInWindow[name]?.(page, where);
  }
  await page.close();
}
{
  const {page, show} = await openWindow(kPhone);
  for (const name of kPages) {
    const where = await show(name);
    await look(page, kPhone.width, name, where);
    await kAskedOnPhone[name]?.(page, where);
  }
  await page.close();
}

// On paper no sheet is blank, and the foot stands below the headline: behind the last section it
// often had a sheet to itself.
{
  const {page, show} = await openWindow(kWindow);
  await page.emulateMedia({media: null});
  for (const name of kPages) {
    const where = `${await show(name)}, on paper`;
    const sheets = textsOnSheets(await page.pdf({format: 'A4'}));
    check(sheets.every(texts => texts > 0), `${where}: a blank sheet: texts ${sheets}`);
    const places = await page.evaluate(() => ['beforeprint', 'afterprint'].map(event => {
      dispatchEvent(new Event(event));
      return document.querySelector('footer').parentElement.localName;
    }));
    check(places.join() === 'header,body', `${where}: the foot is in ${places}`);
  }
  await page.close();
}

await browser.close();
for (const failure of failures) console.log(failure);
process.exit(failures.length === 0 ? 0 : 1);
