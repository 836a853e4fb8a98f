'use strict';

// What console.log shows.

const INSPECT = Symbol.for('nodejs.util.inspect.custom');

function showAs(thing, fields, inspectOptions, inspect) {
  return inspect === undefined ? `${thing.constructor.name} {}` : `${thing.constructor.name} ${inspect(fields, inspectOptions)}`;
}

module.exports = { INSPECT, showAs };
