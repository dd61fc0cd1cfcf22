// A page that nobody serves: Lockstep as a WebAssembly module beside it, in a worker of its own, and
// what it asks of a system (WASI): files that the page holds, a clock, nothing else.
function lockstepWorker() {
  const kOk = 0, kBadFile = 8, kNoFile = 44, kNotHere = 52;
  const kFolder = 3, kFile = 4, kRoot = 3;
  let memory, files, folders, module, licences;
  const open = new Map();  // by descriptor
  const view = () => new DataView(memory.buffer);
  const bytesAt = (at, size) => new Uint8Array(memory.buffer, at, size);
  const textAt = (at, size) => new TextDecoder().decode(bytesAt(at, size));
  const plain = path => '/' + path.split('/').filter(part => part !== '' && part !== '.').join('/');

  function addFolders(path) {
    for (let at = path.lastIndexOf('/'); at >= 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at) || '/', name = path.slice(at + 1).split('/')[0];
      if (!folders.has(folder)) folders.set(folder, new Map());
      folders.get(folder).set(name, path.indexOf('/', at + 1) < 0 ? kFile : kFolder);
      if (at === 0) break;
    }
  }
  function writeStatus(path, at) {
    const isFolder = folders.has(path), content = files.get(path);
    if (!isFolder && content === undefined) return kNoFile;
    bytesAt(at, 64).fill(0);
    view().setUint8(at + 16, isFolder ? kFolder : kFile);
    view().setBigUint64(at + 24, 1n, true);
    view().setBigUint64(at + 32, BigInt(content?.length ?? 0), true);
    return kOk;
  }
  const system = {
    fd_prestat_get(fd, at) {
      if (fd !== kRoot) return kBadFile;
      view().setUint32(at, 0, true);
      view().setUint32(at + 4, 1, true);
      return kOk;
    },
    fd_prestat_dir_name(fd, at) { bytesAt(at, 1)[0] = 47; return kOk; },
    fd_fdstat_get(fd, at) {
      if (fd > kRoot && !open.has(fd)) return kBadFile;
      bytesAt(at, 24).fill(0);
      view().setUint8(at, fd === kRoot || open.get(fd)?.names ? kFolder : fd < kRoot ? 2 : kFile);
      view().setBigUint64(at + 8, 0xffffffffn, true);
      view().setBigUint64(at + 16, 0xffffffffn, true);
      return kOk;
    },
    fd_fdstat_set_flags: () => kOk,
    fd_filestat_get: (fd, at) => open.has(fd) ? writeStatus(open.get(fd).path, at) : kBadFile,
    path_filestat_get: (fd, flags, at, size, to) => writeStatus(plain(textAt(at, size)), to),
    path_open(fd, look, at, size, how, rights, inherited, flags, to) {
      const path = plain(textAt(at, size)), content = files.get(path), inside = folders.get(path);
      if (content === undefined && inside === undefined) return kNoFile;
      let next = kRoot + 1;
      while (open.has(next)) ++next;
      open.set(next, {path, content, place: 0, names: inside && [...inside].sort()});
      view().setUint32(to, next, true);
      return kOk;
    },
    fd_close: fd => open.delete(fd) ? kOk : kBadFile,
    fd_read(fd, parts, count, to) {
      const file = open.get(fd);
      if (file?.content === undefined) return kBadFile;
      let got = 0;
      for (let i = 0; i < count; ++i) {
        const at = view().getUint32(parts + 8 * i, true), size = view().getUint32(parts + 8 * i + 4, true);
        const part = file.content.subarray(file.place, file.place + size);
        bytesAt(at, part.length).set(part);
        file.place += part.length;
        got += part.length;
      }
      view().setUint32(to, got, true);
      return kOk;
    },
    fd_readdir(fd, at, size, cookie, to) {
      const folder = open.get(fd);
      if (!folder?.names) return kBadFile;
      let used = 0;
      for (let i = Number(cookie); i < folder.names.length && used < size; ++i) {
        const name = new TextEncoder().encode(folder.names[i][0]);
        const entry = new Uint8Array(24 + name.length), fields = new DataView(entry.buffer);
        fields.setBigUint64(0, BigInt(i + 1), true);
        fields.setBigUint64(8, BigInt(i + 1), true);
        fields.setUint32(16, name.length, true);
        fields.setUint8(20, folder.names[i][1]);
        entry.set(name, 24);
        const part = entry.subarray(0, size - used);
        bytesAt(at + used, part.length).set(part);
        used += part.length;
      }
      view().setUint32(to, used, true);
      return kOk;
    },
    fd_write(fd, parts, count, to) {
      let size = 0;
      for (let i = 0; i < count; ++i) size += view().getUint32(parts + 8 * i + 4, true);
      view().setUint32(to, size, true);
      return kOk;
    },
    clock_time_get(which, precision, to) {
      view().setBigUint64(to, BigInt(Math.round(performance.now() * 1e6)), true);
      return kOk;
    },
    random_get(at, size) { crypto.getRandomValues(bytesAt(at, size)); return kOk; },
    proc_exit(status) { throw new Error(`the module ended with status ${status}`); },
  };
  for (const none of ['args', 'environ']) {
    system[`${none}_sizes_get`] = (count, size) => {
      view().setUint32(count, 0, true);
      view().setUint32(size, 0, true);
      return kOk;
    };
    system[`${none}_get`] = () => kOk;
  }

  const unpacked = async packed => {
    const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  function call(name, text) {
    const bytes = new TextEncoder().encode(text), at = module.room(bytes.length);
    bytesAt(at, bytes.length).set(bytes);
    const size = module[name](at, bytes.length);
    return textAt(module.said(), size);
  }
  async function begin({code, texts, scenario}) {
    files = new Map(Object.entries(JSON.parse(new TextDecoder().decode(await unpacked(texts))))
      .map(([path, text]) => [plain(path), new TextEncoder().encode(text)]));
    folders = new Map([['/', new Map()]]);
    for (const path of files.keys()) addFolders(path);
    const compiled = await WebAssembly.compile(await unpacked(code));
    // What it is made of may be given away with its notices alone: it carries them.
    licences = WebAssembly.Module.customSections(compiled, 'licences')
      .map(each => new TextDecoder().decode(each)).join('');
    // What a page has no use for fails, as on a system without it.
    const wanted = WebAssembly.Module.imports(compiled).map(each =>
      [each.name, system[each.name] ?? (() => kNotHere)]);
    const instance = await WebAssembly.instantiate(compiled,
      {wasi_snapshot_preview1: Object.fromEntries(wanted)});
    module = instance.exports;
    memory = module.memory;
    module._initialize();
    return call('begin', scenario);
  }
  let begun;
  onmessage = async ({data}) => {
    try {
      if (data.begin) begun = begin(data.begin);
      const problem = await begun;
      postMessage({number: data.number,
        text: problem || (data.begin ? '' : data.question === 'licences' ? licences : call('ask', data.question))});
    } catch (problem) {
      postMessage({number: data.number,
        text: JSON.stringify({error: {message: `Lockstep's module failed: ${problem.message}`}})});
    }
  };
}

const lockstepAlone = (() => {
  const held = id => document.getElementById(id)?.textContent;
  if (held('module') === undefined) return undefined;
  const source = new Blob([`(${lockstepWorker})()`], {type: 'text/javascript'});
  const worker = new Worker(URL.createObjectURL(source));
  const waiting = new Map();
  let number = 0;
  worker.onmessage = ({data}) => { waiting.get(data.number)(data.text); waiting.delete(data.number); };
  const send = message => new Promise(done => {
    waiting.set(++number, done);
    worker.postMessage({...message, number});
  });
  send({begin: {code: held('module'), texts: held('texts'), scenario: JSON.parse(held('begun'))}});
  return question => send({question});
})();
