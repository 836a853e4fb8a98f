'use strict';

// The logger of a manager.

// By the levels of the library.
const WARN = 1;
const LEVELS = { [WARN]: 'warn', 2: 'info', 3: 'debug' };

class Logger {
  #logger;

  constructor(logger) {
    this.#logger = logger;
  }

  tell(level, line) {
    const name = LEVELS[level] ?? 'info';
    if (typeof this.#logger === 'function') this.#logger(name, line);
    else this.#logger[name](line);
  }
}

module.exports = { WARN, Logger };
