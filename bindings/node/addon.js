'use strict';

// Finds the addon, and loads it. This file is not in lib/, because `build` and `prebuilds` are found beside it, and
// beside a bundle that contains it.

const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');

function loadAddon() {
  // A bundler may have put this file into an ECMAScript module, which has no __dirname.
  const here = typeof __dirname === 'undefined' ? process.cwd() : __dirname;
  const built = path.join(here, 'build', 'redlock.node');
  // An addon that was built on this machine is preferred to one that the package contains. build.js uses the same path.
  const brought = path.join(here, 'prebuilds', `${process.platform}-${process.arch}`, 'redlock.node');
  const file = path.resolve(process.env.REDLOCK_ADDON || [built, brought].find((it) => fs.existsSync(it)) || built);
  try {
    // A bundler replaces `require` where it does not know the path, and leaves this alone.
    return createRequire(file)(file);
  } catch (error) {
    const words = `cannot load the redlock addon (build it with node build.js): ${error.message}`;
    throw Object.assign(new Error(words, { cause: error }), { code: error.code });
  }
}

module.exports = loadAddon();
