// Makes charts.min.js, what every report inlines, and licences.txt, what it has to say about it.
// Same packages, same bytes: esbuild's output depends on nothing else.
import {build} from 'esbuild';
import {readFileSync, writeFileSync} from 'node:fs';

const text = file => readFileSync(`node_modules/${file}`, 'utf8').trim();

const {outputFiles} = await build({
  entryPoints: ['charts.js'],
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2019',
  charset: 'ascii',
  legalComments: 'none', // licences.txt has all of them, whole
  write: false,
});
const script = outputFiles[0].text;
if (/<\/script|<!--/i.test(script)) throw new Error('the bundle would end the script element');

const parts = [
  ['echarts', ['NOTICE', 'LICENSE', 'licenses/LICENSE-d3']],
  ['zrender', ['LICENSE']],
  ['tslib', ['LICENSE.txt']],
];
const licences = parts.map(([name, files]) => {
  const {version, license} = JSON.parse(text(`${name}/package.json`));
  return [`${name} ${version} (${license})`, ...files.map(file => text(`${name}/${file}`))].join('\n\n');
});

writeFileSync('charts.min.js', script);
writeFileSync('licences.txt', licences.join(`\n\n${'-'.repeat(80)}\n\n`) + '\n');
