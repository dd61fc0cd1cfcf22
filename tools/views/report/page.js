'use strict';
// Draws the charts in the page's colours, and draws them again when these change.

const escapeHtml = text => String(text).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
// No line ends between a number and its unit.
const percent = value => `${Number(value).toFixed(1)}\u00a0%`;
const tip = (title, lines) =>
  `<div class="tip"><b>${title}</b>${lines.map(line => `<br>${line}`).join('')}</div>`;

// Seconds in the unit that reads best.
function duration(seconds) {
  const [size, name] = seconds < 120 ? [1, 's'] : seconds < 7200 ? [60, 'min']
    : seconds < 172800 ? [3600, 'h'] : [86400, 'days'];
  return `${Number((seconds / size).toPrecision(3))}\u00a0${name}`;
}
// An instant of a run: "day 12, 08:10"; days count from 0, as axes do.
function instant(seconds) {
  const minutes = Math.round(seconds / 60);
  const two = number => String(number).padStart(2, '0');
  return `day ${Math.floor(minutes / 1440)}, ` +
    `${two(Math.floor(minutes / 60) % 24)}:${two(minutes % 60)}`;
}

// What "@name" under "formatter", "valueFormatter", "color" and "backgroundColor" stands for. A
// function is made for its chart, so that it can read what the options carry for it under "lockstep".
const named = {
  percent: () => percent,
  // A cell of a heat map: which row, what is said of it, when, and how much.
  cell: options => item => {
    const [column, row, value] = item.value;
    const {rows, about, unit} = options.lockstep;
    return `<div class="tip"><b>${escapeHtml(rows[row])}</b><br>` +
      `<span>${escapeHtml(about[row])}</span><br>` +
      `at ${escapeHtml(options.xAxis.data[column])} ${escapeHtml(unit)}: <b>${percent(value)}</b></div>`;
  },
  // A failure, or all shares of a stretch of the run.
  timeline: options => item => {
    const {unit_s: unit, wall_s: wall, causes} = options.lockstep;
    const width = wall / options.lockstep.bins * options.lockstep.merged;
    if (!Array.isArray(item)) {
      const [at, , cause, cost] = item.value;
      return tip(escapeHtml(causes[cause]), [instant(at * unit), `cost ${duration(cost)}`]);
    }
    const middle = Math.min(Math.max(item[0].value[0] * unit, width / 2), wall - width / 2);
    const shares = item.filter(each => each.value[2] > 0);
    const worst = options.lockstep.merged > 1
      ? [`the worst ${duration(wall / options.lockstep.bins)} of it`] : [];
    return tip(`${instant(middle - width / 2)} to ${instant(middle + width / 2)}`, worst.concat(
      shares.map(each =>
        `${each.marker}${escapeHtml(each.seriesName)}: <b>${percent(each.value[2])}</b>`)));
  },
  // A bar of the waterfall, and what would attack it.
  part: options => ({dataIndex, value}) => {
    const {rows, about} = options.lockstep;
    return tip(escapeHtml(rows[dataIndex]), [`<b>${Number(value).toFixed(2)}\u00a0%</b> of the peak`,
      ...(about[dataIndex] ? [`<span>${escapeHtml(about[dataIndex])}</span>`] : [])]);
  },
  // A checkpoint interval and its goodput.
  point: () => ({seriesName, value: [interval, goodput, around]}) =>
    tip(escapeHtml(seriesName), [`every ${duration(interval)}`,
      `<b>${goodput.toFixed(2)}\u00a0%</b> ± ${around.toFixed(2)}\u00a0%`]),
  interval: () => duration,
  bytes: () => value => {
    const power = Math.max(0, Math.min(5, Math.floor(Math.log10(value) / 3 + 1e-9)));
    return `${Number((value / 1000 ** power).toPrecision(3))}\u00a0${['', 'k', 'M', 'G', 'T', 'P'][power]}B`;
  },
  // A measured point and its prediction.
  sample: options => ({seriesName, value: [measured, , place]}) => {
    const {unit, about} = options.lockstep;
    const [words, predicted, error] = about[place];
    return tip(escapeHtml(seriesName), [`<span>${escapeHtml(words)}</span>`,
      `measured <b>${measured} ${escapeHtml(unit)}</b>, predicted <b>${predicted} ` +
      `${escapeHtml(unit)}</b>: <b>${error > 0 ? '+' : ''}${error} %</b>`]);
  },
  // What the options say about a dot or a bar: a title and lines.
  words: options => ({dataIndex, value}) => {
    const {words} = options.lockstep;
    const [title, ...lines] = words[Array.isArray(value) ? value[value.length - 1] : dataIndex];
    return tip(escapeHtml(title), lines.map(escapeHtml));
  },
  power: options => items => {
    const {unit, unit_s: size, time} = options.lockstep;
    const of = name => items.find(each => each.seriesName === name);
    const mean = of('mean'), meter = of('meter'), at = items[0].value[1];
    const lines = [];
    if (mean) {
      lines.push(`mean <b>${mean.value[0]} ${unit}</b>`,
        `from ${mean.value[2]} to ${mean.value[3]} ${unit}`);
    }
    if (meter) lines.push(`a meter reads <b>${meter.value[0]} ${unit}</b>`);
    return tip(size < 60 ? `${at} ${time}` : instant(at * size), lines);
  },
  amount: options => value => `${value}\u00a0${options.lockstep.unit}`,
  ...Object.fromEntries(Array.from({length: 9}, (_, i) => [`colour-${i}`,
    () => colours.palette[i]])),
  // A link of which that many tenths are used; one that nothing crosses is a line like others.
  ...Object.fromEntries(Array.from({length: 11}, (_, tenths) => [`use-${tenths}`,
    () => tenths === 0 ? colours.idle : colours.uses[tenths]])),
  uses: () => colours.uses,
  ink: () => colours.ink,
  soft: () => colours.soft,
  card: () => colours.card,
  track: () => colours.track,
  ramp: () => colours.ramp,
  floor: () => colours.ramp[0],
  accent: () => colours.accent,
  others: () => colours.palette[8],
};

// A place from 0 to 1 on a ramp of colours "#rrggbb".
function between(ramp, place) {
  const at = place * (ramp.length - 1);
  const below = Math.min(Math.floor(at), ramp.length - 2);
  const part = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map(i => Math.round(part(ramp[below], i) +
    (at - below) * (part(ramp[below + 1], i) - part(ramp[below], i))));
  return `rgb(${mixed.join(',')})`;
}

let colours;
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const value = name => style.getPropertyValue(`--${name}`).trim();
  const names = ['page', 'card', 'line', 'ink', 'soft', 'faint', 'accent', 'track', 'idle'];
  colours = Object.fromEntries(names.map(name => [name, value(name)]));
  colours.palette = Array.from({length: 9}, (_, i) => value(`colour-${i}`));
  const list = name => value(name).split(',').map(colour => colour.trim());
  colours.ramp = list('ramp');
  const uses = list('uses');
  colours.uses = Array.from({length: 11}, (_, i) => between(uses, 0.1 * i));
  colours.font = getComputedStyle(document.body).fontFamily;
}

function resolved(node, options, key) {
  if (Array.isArray(node)) return node.map(each => resolved(each, options));
  if (node !== null && typeof node === 'object') {
    return Object.fromEntries(Object.entries(node).filter(([name]) => name !== 'lockstep')
      .map(([name, value]) => [name, resolved(value, options, name)]));
  }
  if (key === 'formatter' && node === '{value} days') {
    return value => `${echarts.format.addCommas(value)} ${value === 1 ? 'day' : 'days'}`;
  }
  const isName = typeof node === 'string' && node.startsWith('@') &&
    ['formatter', 'valueFormatter', 'color', 'backgroundColor'].includes(key);
  return isName ? named[node.slice(1)](options) : node;
}

function theme() {
  const axis = {
    axisLine: {lineStyle: {color: colours.line}},
    axisTick: {show: false},
    axisLabel: {color: colours.soft, fontSize: 12},
    nameTextStyle: {color: colours.faint, fontSize: 12},
    splitLine: {lineStyle: {color: colours.line}},
  };
  return {
    color: colours.palette.slice(0, 8),
    backgroundColor: 'transparent',
    textStyle: {fontFamily: colours.font, color: colours.ink},
    categoryAxis: {...axis, splitLine: {show: false, lineStyle: {color: colours.line}}},
    valueAxis: {...axis, axisLine: {show: false}},
    logAxis: {...axis, axisLine: {show: false}},
    legend: {textStyle: {color: colours.soft, fontSize: 13}, itemWidth: 12, itemHeight: 12,
      icon: 'roundRect'},
    tooltip: {backgroundColor: colours.card, borderColor: colours.line, padding: [10, 14],
      textStyle: {color: colours.ink, fontSize: 13}, extraCssText: 'border-radius:10px',
      axisPointer: {lineStyle: {color: colours.faint}, shadowStyle: {color: colours.track,
        opacity: 0.5}}},
    visualMap: {textStyle: {color: colours.soft}},
    dataZoom: {borderColor: 'transparent', backgroundColor: colours.track,
      fillerColor: colours.faint + '33', handleStyle: {color: colours.card,
        borderColor: colours.faint}, moveHandleStyle: {color: colours.faint, opacity: 0.4},
      emphasis: {handleStyle: {borderColor: colours.accent},
        moveHandleStyle: {color: colours.accent}},
      textStyle: {color: colours.soft, fontSize: 11}},
  };
}

// Of each `count` neighbouring bins the one that has most: peaks are the same whatever the width.
// `rising` are points [time, value] of equal bins and one more at either end, by which one chooses.
function worstBins(rising, count) {
  const chosen = [];
  for (let i = 1; i < rising.length - 1; i += count) {
    let worst = i;
    for (let k = i + 1; k < Math.min(i + count, rising.length - 1); ++k) {
      if (rising[k][1] > rising[worst][1]) worst = k;
    }
    chosen.push({first: i, last: Math.min(i + count, rising.length - 1) - 1, worst});
  }
  return chosen;
}
// The points of the chosen bins, each in the middle of those that it stands for.
function mergedBins(points, chosen) {
  const merged = chosen.map(({first, last, worst}) =>
    [(points[first][0] + points[last][0]) / 2, ...points[worst].slice(1)]);
  const ends = [merged[0], merged[merged.length - 1]].map(each => each.slice(1));
  return [[points[0][0], ...ends[0]], ...merged, [points[points.length - 1][0], ...ends[1]]];
}

// How wide a text is in pixels, and in how many lines it stands within a width: broken between
// words, and within those that are wider than it.
const ruler = document.createElement('canvas').getContext('2d');
function textWidth(text, size) {
  ruler.font = `${size}px ${colours.font}`;
  return ruler.measureText(text).width;
}
function brokenText(text, width, size) {
  const lines = [''];
  const take = word => {
    const joined = lines[lines.length - 1] ? `${lines[lines.length - 1]} ${word}` : word;
    if (textWidth(joined, size) <= width) lines[lines.length - 1] = joined;
    else lines.push(word);
  };
  for (const word of String(text).split(' ')) {
    let rest = word;
    while (textWidth(rest, size) > width && rest.length > 1) {
      let fits = rest.length - 1;
      while (fits > 1 && textWidth(rest.slice(0, fits), size) > width) fits -= 1;
      take(rest.slice(0, fits));
      rest = rest.slice(fits);
    }
    take(rest);
  }
  return lines.filter((line, i) => line || i > 0);
}

// A name within a width: the number at its end, by which boxes of a row differ, or its beginning;
// nothing where there is no room for two letters. The tooltip has all of it.
function shortened(name, width) {
  const number = /^\D+(\d+)$/.exec(name)?.[1];
  if (number && textWidth(number, 9) <= width) return number;
  if (print.matches) return ''; // nothing would tell the rest of it
  let fits = name.length - 1;
  while (fits > 1 && textWidth(`${name.slice(0, fits)}…`, 9) > width) fits -= 1;
  return fits > 1 ? `${name.slice(0, fits).trimEnd()}…` : '';
}

// Boxes of a row share its width. Their names stand in them in one line or two; where these have
// no room as many have their names as do not touch, and the rest a part of them.
function nameBoxes(series, width) {
  const pitch = (width - 32) / series.data.length, box = Math.min(132, 0.92 * pitch);
  const names = series.data.map(each => each.name);
  const inLine = Math.max(...names.map(name => textWidth(name, 11))) <= box - 4;
  const inTwo = names.every(name => brokenText(name, box - 2, 9).length <= 2 &&
    name.split(' ').every(word => textWidth(word, 9) <= box - 2));
  series.symbolSize = [box, 28];
  Object.assign(series.label, {show: true});
  if (inLine) return;
  Object.assign(series.label, {fontSize: 9, lineHeight: 10});
  if (inTwo) {
    for (const each of series.data) each.label = {formatter: brokenText(each.name, box - 2, 9).join('\n')};
    return;
  }
  let free = 0;
  series.data.forEach((each, i) => {
    const middle = 16 + (i + 0.5) * pitch, half = textWidth(each.name, 9) / 2;
    // A name that reaches over its neighbours would not tell which box it is of.
    const fits = 2 * half <= pitch && middle - half >= free && middle + half <= width;
    const text = fits ? each.name : shortened(each.name, box - 2);
    each.label = text ? {formatter: text.replace(/[{}]/g, '')} : {show: false};
    if (fits) free = middle + half + 6;
  });
}

// The distance of ticks that ECharts makes of one (its `nice`).
function niceStep(step) {
  const power = 10 ** Math.floor(Math.log10(step)), part = step / power;
  return power * [1, 2, 3, 5].reduceRight((least, each, i) =>
    part < [1.5, 2.5, 4, 7][i] ? each : least, 10);
}
// How wide a label that has `text` for its number is, and the room to the next.
const labelRoom = (axis, text) => 14 + textWidth(
  typeof axis.axisLabel?.formatter === 'string' ? axis.axisLabel.formatter.replace('{value}', text)
    : '000 min', 12);

// One tick tells no scale: the axis begins a little earlier, at a tick, and ends no earlier than the
// next one.
function atLeastTwoTicks(axis, step) {
  if (Math.floor(axis.max / step) > Math.ceil(axis.min / step)) return;
  const min = Math.floor(axis.min / step) * step;
  Object.assign(axis, {min, max: Math.max(axis.max, min + step), interval: step});
  axis.axisLabel.showMinLabel = true;
  if (axis.max === min + step) axis.axisLabel.showMaxLabel = true;
}

// Numbers across the plot stand as far apart as their labels are wide: of labels that touch ECharts
// leaves some out, at uneven distances.
function spacedTicks(axis, room, zooms, longest) {
  const each = labelRoom(axis, longest >= 1000 ? Math.ceil(longest).toLocaleString('en') : '000');
  const most = Math.max(2, Math.floor(room / each));
  if (most > 5) return;
  // Few ticks of shares would be 30 apart, and end at 120.
  if (axis.axisLabel?.formatter === '{value} %' && axis.max === undefined && longest > 50 &&
    longest <= 100) {
    Object.assign(axis, {min: 0, max: 100});
  }
  const span = axis.max - axis.min;
  if (axis.interval && !zooms) {
    axis.interval *= Math.ceil(span / axis.interval / most);
    return;
  }
  // A distance of our own counts from the least value.
  if (zooms || axis.min !== 0 || !(span > 0)) {
    const parts = Math.min(axis.splitNumber ?? 5, 5);
    const fits = count => room * niceStep(span / count) / span >= each;
    axis.splitNumber = span > 0 ? [5, 4, 3, 2].find(count => count <= parts && fits(count)) ?? 2
      : Math.max(2, Math.min(parts, Math.floor(0.75 * most)));
    if (span > 0 && !zooms) atLeastTwoTicks(axis, niceStep(span / axis.splitNumber));
    return;
  }
  const power = 10 ** Math.floor(Math.log10(span / most));
  const steps = [1, 2, 2.5, 5, 10, 20, 25].map(each => each * power)
    .filter(step => span / step <= most + 1e-9);
  const isWhole = step => Math.abs(span / step - Math.round(span / step)) < 1e-9;
  axis.interval = steps.slice(0, 3).find(isWhole) ?? steps[0];
  if (!isWhole(axis.interval)) axis.axisLabel.showMaxLabel = false;
}
// How long the longest bar of rows is, where parts of each stand behind one another.
function longestBar({series}) {
  const bars = series.filter(each => each.type === 'bar');
  const long = bars.flatMap(bar => bar.data.map((_, i) => bars
    .filter(each => each === bar || (bar.stack && each.stack === bar.stack))
    .reduce((sum, each) => sum + Number(each.data[i]?.value ?? each.data[i] ?? 0), 0)));
  return Math.max(0, ...long.filter(Number.isFinite));
}
// The same where each tick is ten times the last: every second or third decade has its label.
function spacedDecades(axis, series, room) {
  const values = series.flatMap(each => each.data.map(point => Number((point.value ?? point)[0])))
    .filter(value => value > 0);
  if (!values.length) return;
  const last = Math.ceil(Math.log10(Math.max(...values)));
  const decades = last - Math.floor(Math.log10(Math.min(...values)));
  const each = labelRoom(axis, (10 ** last).toLocaleString('en'));
  if (decades * each <= room) return;
  axis.interval = Math.ceil(decades * each / room);
  // The last would stand closer to the one before it.
  if (decades % axis.interval) axis.axisLabel.showMaxLabel = false;
}

// Names of values stand between parallel axes: broken behind underscores and blanks, so that none
// reaches the next axis; names of the axes below them are as wide as there is room for.
function brokenMark(text, width) {
  const lines = [''];
  for (const part of String(text).split(/(?<=[_ ])/)) {
    const last = lines.length - 1;
    if (lines[last] && textWidth((lines[last] + part).trimEnd(), 11) > width) lines.push(part);
    else lines[last] += part;
  }
  return lines.map(line => line.trimEnd()).join('\n');
}
function fitMarks(options, width) {
  const marks = options.series.find(each => each.name === 'marks');
  if (!marks) return;
  const pitch = (width - 130) / Math.max(1, options.xAxis.data.length - 1);
  const label = options.xAxis.axisLabel;
  Object.assign(label, {width: Math.min(label.width, pitch - 4)});
  if (pitch < 80) Object.assign(label, {fontSize: 10, lineHeight: 11});
  Object.assign(marks.label, {lineHeight: 12});
  for (const mark of marks.data) mark.name = brokenMark(mark.name, pitch - 14);
}

// Long names of rows leave room for the plot where there is little, and bins become fewer: of less
// than two pixels each, steps are drawn as what they are not.
function fitted(options, carried, width) {
  const axes = [options.yAxis].flat();
  for (const axis of axes) {
    if (axis && axis.type === 'category' && axis.axisLabel) {
      const label = axis.axisLabel;
      const breaks = label.overflow === 'break';
      if (breaks && width < 560) Object.assign(label, {fontSize: 10, lineHeight: 11});
      // Short names take the room that they need, not what long ones might; with a little more, as
      // ECharts may measure them wider and break them.
      const longest = Math.max(0, ...axis.data.map(name => textWidth(name, label.fontSize || 12)));
      const room = Math.min(label.width || 200, Math.round(width * (breaks ? 0.38 : 0.34)));
      const own = Math.ceil(1.06 * longest) + 4;
      label.width = Math.min(room, own);
      // On paper it may measure with another font: what fits is not broken at all.
      if (breaks && own <= room) label.overflow = 'none';
    }
  }
  for (const axis of [options.xAxis].flat().filter(each => each?.type === 'value' && each.axisLabel)) {
    const beside = axes[0]?.type === 'category' ? (axes[0].axisLabel?.width ?? 60) : 44;
    spacedTicks(axis, width - beside - 20, options.dataZoom,
      axes[0]?.type === 'category' ? longestBar(options) : 0);
  }
  for (const axis of [options.xAxis].flat()
    .filter(each => each?.type === 'log' && each.axisLabel && !each.axisLabel.customValues)) {
    spacedDecades(axis, options.series, width - 64);
  }
  for (const series of options.series.filter(each => each.name === 'boxes')) nameBoxes(series, width);
  fitMarks(options, width);
  // Labels on the lines between boxes: a row of them that has no room is left to the tooltip.
  for (const series of options.series.filter(each => each.name === 'use' && each.label.show)) {
    for (const height of new Set(series.data.map(dot => dot.value[1]))) {
      const row = series.data.filter(dot => dot.value[1] === height);
      const places = row.map(dot => dot.value[0] * (width - 32)).sort((a, b) => a - b);
      const room = 4 + 6 * Math.max(...row.map(dot => dot.name.length));
      if (places.some((place, i) => i > 0 && place - places[i - 1] < room)) {
        for (const dot of row) dot.label = {show: false};
      }
    }
  }
  if (carried && carried.bins) {
    carried.merged = Math.ceil(2 * carried.bins / Math.max(1, width - 64));
    const stacked = options.series.filter(each => each.step);
    if (carried.merged > 1 && stacked.length > 0) {
      // The first has all of a bin, the next all but what is not lost.
      const chosen = worstBins((stacked[1] || stacked[0]).data, carried.merged);
      for (const series of stacked) series.data = mergedBins(series.data, chosen);
    }
  }
  return options;
}

// A legend shows all of its names, in as many lines as they need, the longest of them broken.
const kLegendLine = 21; // height of each in pixels
const kLegendBroken = 15; // of each line of a name that is broken
function legendRows({legend, series}, width) {
  const names = new Set((legend.data || series).map(each => each.name ?? String(each)));
  const rows = [];
  let used = Infinity;
  for (const name of names) {
    const broken = brokenText(name, width - 48, 13);
    const room = 30 + Math.max(...broken.map(line => textWidth(line, 13)));
    if (used + room > width - 8) { rows.push(0); used = 0; }
    used += room;
    rows[rows.length - 1] = Math.max(rows[rows.length - 1], broken.length);
  }
  return rows;
}
function linesOfLegend(options, width) {
  if (!options.legend) return 1;
  const rows = legendRows(options, width);
  return Math.max(1, rows.length + 0.8 * rows.reduce((sum, lines) => sum + lines - 1, 0));
}

// More lines of a legend move what stands below it; the chart is as much higher (drawChart).
function wholeLegend(options, lines, width) {
  const {legend} = options;
  if (!legend) return options;
  // A legend may stand between two plots: those below it move.
  const moved = each => (each.top || 0) < (legend.top || 0) ? each
    : {...each, top: (each.top || 0) + Math.round(kLegendLine * (lines - 1))};
  const grid = Array.isArray(options.grid) ? options.grid.map(moved) : moved(options.grid || {});
  const written = name => brokenText(name, width - 48, 13).join('\n');
  const breaks = (legend.data || options.series)
    .some(each => written(each.name ?? String(each)).includes('\n'));
  // Of itself ECharts takes the width of a Chinese letter, which is nothing where no font has one.
  return {...options, grid, legend: {...legend, formatter: written,
    ...(breaks && {textStyle: {...legend.textStyle, lineHeight: kLegendBroken}})}};
}

// Names of rows that are broken need rows as high as they are: how much higher the chart is.
function roomForRows(options, width, height, paper) {
  const {yAxis, grid} = options;
  if (Array.isArray(yAxis) || Array.isArray(grid) || yAxis?.type !== 'category') return 0;
  const label = yAxis.axisLabel || {};
  if (label.overflow !== 'break') return 0;
  const narrow = width < 560, size = narrow ? 10 : label.fontSize || 12;
  const within = Math.min(label.width || 200, Math.round(width * 0.38));
  const lines = Math.max(...yAxis.data.map(name => brokenText(name, within, size).length));
  const each = lines * (narrow ? 11 : label.lineHeight || 13) +
    (paper && isHeatMap(options) ? 0 : 3);
  const rows = height - (grid?.top || 0) - (grid?.bottom || 0) - 24;
  return Math.max(0, Math.ceil(each * yAxis.data.length - rows));
}

// What a chart is on paper: without the bar that zooms it, the rows of a heat map close together, and
// all of it smaller, as the text around it is.
const kPaperScale = 0.75;
const kPaperCell = 11.4;  // height of a row of cells in pixels, before that
function onPaper(options) {
  const {dataZoom, ...rest} = options;
  const heat = isHeatMap(options);
  if (dataZoom && !Array.isArray(rest.grid)) rest.grid = {...rest.grid, bottom: 4};
  if (heat) {
    rest.yAxis = {...rest.yAxis,
      axisLabel: {...rest.yAxis.axisLabel, fontSize: 10.5, lineHeight: 10.5, interval: 0}};
  }
  return rest;
}
const isHeatMap = options => options.series[0]?.type === 'heatmap';

// How high a chart is on paper, which is half as wide as a window: what is as high as there leaves
// sheets half empty. Plots that stand at places of their own keep their height.
function lowered(options, height) {
  const {yAxis, grid} = options;
  if (Array.isArray(grid)) return height;
  const row = isHeatMap(options) ? kPaperCell : 21;
  const lower = yAxis?.type === 'category' ? (grid?.top || 0) + row * yAxis.data.length + 40
    : Math.round(0.9 * height);
  return Math.min(height, Math.max(isHeatMap(options) ? 0 : 190, Math.round(lower)));
}

// Cells whose edges lie between pixels show hairlines: the plot shrinks to whole pixels for each,
// unless too much of it would go.
function snapCells(instance, options) {
  if (options.series[0]?.type !== 'heatmap') return;
  const columns = options.xAxis.data.length, rows = options.yAxis.data.length;
  if (columns < 2 || rows < 2) return;
  const [left, top] = instance.convertToPixel({gridIndex: 0}, [0, 0]);
  const [right, bottom] = instance.convertToPixel({gridIndex: 0}, [columns - 1, rows - 1]);
  const cell = (first, last, count) => {
    const exact = (last - first) / (count - 1);
    const whole = Math.floor(exact * devicePixelRatio) / devicePixelRatio;
    const size = whole > 0.88 * exact ? whole : exact;
    return {start: Math.round(first - exact / 2), length: size * count};
  };
  const x = cell(left, right, columns), y = cell(top, bottom, rows);
  instance.setOption({grid: {left: x.start, width: x.length, top: y.start, height: y.length,
    outerBoundsMode: 'none'}});
}

// How high a chart is where it is that wide: `higher` than `height` by more lines of its legend and
// by names of rows that are broken.
function heightAt(options, width, height, paper) {
  const lines = linesOfLegend(options, width);
  return height + roomForRows(options, width, height, paper) +
    Math.round(kLegendLine * (lines - 1));
}

// The sheets are counted before charts are drawn for them: how high these will be has to be known
// by then, or the last sheets stay blank. It is what A4 within the margins of page.css asks for.
const kPaper = {full: 660, half: 310};  // widths of charts in pixels
function paperHeight(chart) {
  const row = chart.element.closest('.row');
  // The last of an odd number of charts has its row to itself.
  const place = row ? [...row.children].indexOf(chart.element.closest('figure')) : -1;
  const alone = !row || (place % 2 === 0 && place === row.children.length - 1);
  const width = (alone ? kPaper.full : kPaper.half) / kPaperScale;
  return kPaperScale *
    heightAt(onPaper(chart.options), width, lowered(chart.options, chart.height), true);
}

const charts = [];
const print = matchMedia('print');
function drawChart(chart) {
  // On paper vectors are sharp, and Chromium leaves out a canvas that took many strokes.
  const renderer = print.matches ? 'svg' : 'canvas';
  // Emptied, not disposed of: frames that the old drawing has asked for may still come, and find
  // nothing to paint.
  if (chart.instance) chart.instance.clear();
  const place = document.createElement('div');
  place.style.height = '100%';
  if (print.matches) {
    const size = `${100 / kPaperScale}%`;
    Object.assign(place.style, {width: size, height: size, transform: `scale(${kPaperScale})`,
      transformOrigin: '0 0'});
  }
  // What would be unreadable where it is narrow scrolls instead; paper cannot.
  const {least_px: least} = chart.options.lockstep || {};
  if (least && !print.matches) {
    place.style.minWidth = `${least}px`;
    Object.assign(chart.element.style, {overflowX: 'auto', overflowY: 'hidden'});
    chart.element.tabIndex = 0;  // so that arrow keys scroll it
  }
  chart.element.replaceChildren(place);
  chart.width = chart.element.clientWidth;
  chart.height ??= parseFloat(chart.element.style.height);
  chart.lines = linesOfLegend(chart.options, place.clientWidth);
  chart.element.style.height = `${heightAt(chart.options, place.clientWidth, chart.height)}px`;
  chart.element.style.setProperty('--paper-height', `${paperHeight(chart).toFixed(1)}px`);
  chart.instance = echarts.init(place, theme(), {renderer});
  showOptions(chart, place.clientWidth);
}
function showOptions(chart, width) {
  const options = print.matches ? onPaper(chart.options) : chart.options;
  chart.instance.setOption({animation: false,
    ...wholeLegend(fitted(resolved(options, chart.options), chart.options.lockstep, width),
      chart.lines, width)}, true);
  if (!print.matches) snapCells(chart.instance, chart.options);
}
function draw() {
  readColours();
  charts.forEach(drawChart);
  document.documentElement.dataset.charts = String(charts.length);
}

for (const element of document.querySelectorAll('[data-chart]')) {
  const options = JSON.parse(document.getElementById(element.dataset.chart).textContent);
  charts.push({element, options});
}
draw();
let waiting = 0;
new ResizeObserver(() => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => {
    if (charts.some(chart => chart.element.clientWidth !== chart.width)) draw();
  });
}).observe(document.body);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
// Paper is light and has its own width.
print.addEventListener('change', draw);
