'use strict';

// Builds the addon with the C compiler of the system. Nothing is downloaded.
//
//     node build.js [OUTPUT]
//     node build.js --unless-prebuilt
//     node build.js --headers
//
// OUTPUT is build/redlock.node beside this file, where addon.js looks for it. --unless-prebuilt builds nothing if the
// package contains an addon that can be loaded here. --headers builds nothing: it prints where the headers of Node.js
// are, or what to install. In the environment:
//
//     CC, CFLAGS        the compiler (cc), and more options for it
//     REDLOCK_INCLUDE   the directory of redlock.h
//     REDLOCK_LIBRARY   the file of the library, such as /opt/lib/libredlock.so
//     REDLOCK_RPATH     where the addon looks for that file when it is loaded, if not where it is now
//
// Without the last two, pkg-config is asked, and after that the compiler's own search path is used. The headers of
// Node.js are those of the package node-api-headers, if it is installed, or those that came with this node.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

function fail(words) {
  console.error(`redlock cannot be built: ${words}`);
  process.exit(1);
}

// The output of a program; nothing if the program fails or does not exist.
function ask(program, ...options) {
  const { status, stdout } = spawnSync(program, options, { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

function words(text) {
  return (text ?? '').split(/\s+/).filter((word) => word !== '');
}

function nodeHeaders() {
  const places = [];
  try {
    places.push(require('node-api-headers').include_dir);
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
  }
  places.push(path.resolve(process.execPath, '../../include/node'), '/usr/include/node', '/usr/local/include/node');
  const place = places.find((it) => fs.existsSync(path.join(it, 'node_api.h')));
  return place ?? fail(
    `there is no node_api.h in ${places.join(', ')}: install the development files of Node.js (libnode-dev, nodejs-devel), ` +
    'or the npm package node-api-headers');
}

// The compiler options for redlock.
function redlock(compiler) {
  const { REDLOCK_INCLUDE: include, REDLOCK_LIBRARY: library } = process.env;
  const known = include && library ? undefined : ask('pkg-config', '--cflags', 'redlock');
  return [...headerOptions(compiler, include, known), ...libraryOptions(compiler, library, known)];
}

function headerOptions(compiler, include, known) {
  if (include) {
    if (!fs.existsSync(path.join(include, 'redlock.h'))) fail(`REDLOCK_INCLUDE is ${include}, and there is no redlock.h in it`);
    return ['-I', include];
  }
  if (known !== undefined) return words(known);
  const found = spawnSync(compiler, ['-E', '-x', 'c', '-'], { input: '#include <redlock.h>\n' });
  if (found.status !== 0) {
    fail('there is no redlock.h: neither pkg-config nor the compiler knows redlock. Install it, ' +
      'or name the directory of redlock.h in REDLOCK_INCLUDE and the library in REDLOCK_LIBRARY');
  }
  return [];
}

function libraryOptions(compiler, library, known) {
  if (library) {
    if (!fs.existsSync(library)) fail(`REDLOCK_LIBRARY is ${library}, which is not there`);
    const file = path.resolve(library);
    return [file, `-Wl,-rpath,${process.env.REDLOCK_RPATH || path.dirname(file)}`];
  }
  if (known !== undefined) {
    const options = words(ask('pkg-config', '--libs', 'redlock'));
    // pkg-config names a directory only if the dynamic linker does not look there by itself.
    const directories = options.filter((it) => it.startsWith('-L')).map((it) => it.slice(2));
    return [...options, ...directories.map((it) => `-Wl,-rpath,${it}`)];
  }
  const names = ['libredlock.so', 'libredlock.dylib', 'libredlock.a'];
  // The compiler returns the bare name of a file that it does not find.
  if (!names.some((name) => path.isAbsolute(ask(compiler, `-print-file-name=${name}`) ?? ''))) {
    fail('there is no libredlock: neither pkg-config nor the compiler knows it. Install it, ' +
      'or name its file in REDLOCK_LIBRARY');
  }
  return ['-lredlock'];
}

// Whether the package has an addon for this machine. This runs in a process of its own, because an addon that was
// built for another system may do anything.
function isPrebuilt() {
  const addon = path.join(__dirname, 'prebuilds', `${process.platform}-${process.arch}`, 'redlock.node');
  return fs.existsSync(addon) && ask(process.execPath, '-e', 'require(process.argv[1])', addon) !== undefined;
}

function main() {
  if (process.argv[2] === '--headers') {
    console.log(nodeHeaders());
    return;
  }
  const isForPackage = process.argv[2] === '--unless-prebuilt';
  if (isForPackage && isPrebuilt()) return;
  const [compiler, ...given] = words(process.env.CC || 'cc');
  if (ask(compiler, ...given, '--version') === undefined) fail(`there is no C compiler ${compiler}: install one, or name yours in CC`);
  const named = isForPackage ? undefined : process.argv[2];
  const output = path.resolve(named ?? path.join(__dirname, 'build', 'redlock.node'));
  fs.mkdirSync(path.dirname(output), { recursive: true });
  const platform = process.platform === 'darwin'
    ? ['-bundle', '-undefined', 'dynamic_lookup']
    // When a worker ends, Node.js unloads its addons. The thread of the library may then still be running code of
    // this addon.
    // Functions are resolved at load time, so that a library without all of them causes an error, and does not end
    // the process.
    : ['-shared', '-Wl,-z,nodelete', '-Wl,-z,now'];
  const draft = `${output}.${process.pid}`;
  const options = [
    ...given, '-std=c11', '-Wall', '-Wextra', '-Wpedantic', '-O2', '-fPIC', '-fvisibility=hidden', '-pthread',
    ...words(process.env.CFLAGS), ...platform,
    // As system headers, so that their warnings are not shown.
    '-isystem', nodeHeaders(), path.join(__dirname, 'src', 'redlock.c'), ...redlock(compiler), '-o', draft,
  ];
  const { status } = spawnSync(compiler, options, { stdio: 'inherit' });
  if (status !== 0) {
    fs.rmSync(draft, { force: true });
    fail(`the compiler has failed: ${[compiler, ...options].join(' ')}`);
  }
  // In one step: a program that has loaded the old addon keeps it.
  fs.renameSync(draft, output);
}

main();
