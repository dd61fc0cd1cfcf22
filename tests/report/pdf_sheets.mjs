// What stands on each sheet of a PDF that Chromium wrote: how many times text is drawn there.
import {inflateSync} from 'node:zlib';

export function textsOnSheets(pdf) {
  const text = pdf.toString('latin1');
  const places = new Map([...text.matchAll(/(?:^|\n)(\d+) 0 obj\b/g)]
    .map(each => [each[1], each.index + each[0].length]));
  const object = number => {
    const begin = places.get(number);
    return text.slice(begin, text.indexOf('endobj', begin));
  };
  const drawn = number => {
    const own = object(number), opens = own.match(/stream\r?\n/);
    const [, length, isElsewhere] = own.match(/\/Length (\d+)( 0 R)?/);
    const begin = places.get(number) + opens.index + opens[0].length;
    const bytes = Number(isElsewhere ? object(length) : length);
    return bytes === 0 ? '' : inflateSync(pdf.subarray(begin, begin + bytes)).toString('latin1');
  };
  const sheetsOf = number => {
    const kids = object(number).match(/\/Kids\s*\[([^\]]*)\]/);
    return kids ? [...kids[1].matchAll(/(\d+) 0 R/g)].flatMap(each => sheetsOf(each[1])) : [number];
  };
  const pages = text.match(/\/Type\s*\/Catalog[\s\S]*?\/Pages (\d+) 0 R/);
  return sheetsOf(pages[1]).map(sheet => {
    const contents = object(sheet).match(/\/Contents (\d+) 0 R/);
    return (drawn(contents[1]).match(/\bT[jJ]\b/g) ?? []).length;
  });
}
