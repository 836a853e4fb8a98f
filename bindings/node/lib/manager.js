'use strict';

const {
  INT32_MAX, wrongType, wrongValue, text, optionalText, truth, milliseconds, options, bytes, abortSignal, signalOf,
  demandOf, permitsOf, adoptionOf,
} = require('./arguments');
const { Core } = require('./core');
const { NoServersError } = require('./errors');
const { OWN, newId, loggers, collectedManagers } = require('./events');
const { INSPECT, showAs } = require('./inspect');
const { take } = require('./lease');
const { Logger } = require('./logger');

// The index of each name is its number in C.
const GUARDS = ['on', 'strict', 'off', 'durable'];
const TRACES = [undefined, 'events', 'resources'];

class Manager {
  #core;
  #count;
  #logger;

  constructor(servers, given = {}) {
    if (!Array.isArray(servers)) throw wrongType('servers', 'an array of strings', servers);
    const { username, password, credentialsFromEnv, tls, retryDelay, connectTimeout, replyTimeout, driftFactor, restartGuard,
      longestTtl, guardCap, failoverGuard, fencing, waking, logger, trace } =
      options('options', given, ['username', 'password', 'credentialsFromEnv', 'tls', 'retryDelay', 'connectTimeout',
        'replyTimeout', 'driftFactor', 'restartGuard', 'longestTtl', 'guardCap', 'failoverGuard', 'fencing', 'waking',
        'logger', 'trace']);
    const urls = servers.map((server, i) => text(`servers[${i}]`, server));
    if (urls.length === 0) throw new NoServersError('servers is empty');
    this.#core = new Core();
    this.#count = urls.length;
    this.#setTimes(retryDelay, connectTimeout, replyTimeout);
    if (driftFactor !== undefined) {
      if (typeof driftFactor !== 'number') throw wrongType('driftFactor', 'a number', driftFactor);
      this.#core.set('setDriftFactor', driftFactor);
      this.#core.drift = driftFactor;
    }
    this.#setRestartGuard(restartGuard, longestTtl, guardCap);
    if (failoverGuard !== undefined) this.#core.set('setFailoverGuard', truth('failoverGuard', failoverGuard));
    this.#core.set('setFencing', truth('fencing', fencing));
    if (waking !== undefined) this.#core.set('setWaking', truth('waking', waking));
    this.#setCredentials(username, password, credentialsFromEnv);
    if (typeof tls !== 'boolean' && tls !== undefined) this.#setTls(tls);
    for (const url of urls) this.#core.set('addServer', url.includes('://') ? url : `${tls ? 'rediss' : 'redis'}://${url}`);
    this.#setTracing(trace);
    if (logger !== undefined) this.#setLogger(logger, trace !== undefined);
  }

  #setTimes(retryDelay = 200, connectTimeout = 1500, replyTimeout = 0) {
    const limited = (name, value) => Math.min(milliseconds(name, value), INT32_MAX);
    // Each call gives its own number of tries.
    this.#core.set('setRetry', 1, limited('retryDelay', retryDelay));
    this.#core.set('setTimeouts', milliseconds('connectTimeout', connectTimeout), milliseconds('replyTimeout', replyTimeout));
  }

  #setRestartGuard(mode = 'on', longestTtl = 0, guardCap = 0) {
    const number = GUARDS.indexOf(text('restartGuard', mode));
    if (number < 0) {
      const words = `restartGuard must be one of '${GUARDS.join("', '")}', not '${mode}'`;
      throw wrongValue(words);
    }
    this.#core.set('setRestartGuard', number, milliseconds('longestTtl', longestTtl), milliseconds('guardCap', guardCap));
  }

  #setCredentials(username, password, fromEnv) {
    if (fromEnv !== undefined) {
      if (username !== undefined || password !== undefined) {
        throw wrongValue('credentialsFromEnv and username or password exclude each other');
      }
      const { username: userName, password: passwordName } = options('credentialsFromEnv', fromEnv, ['username', 'password']);
      this.#core.set('setCredentialsFromEnv', optionalText('credentialsFromEnv.username', userName),
        text('credentialsFromEnv.password', passwordName));
    } else if (username !== undefined || password !== undefined) {
      this.setCredentials(username, password);
    }
  }

  #setTls(tls) {
    const { ca, certificate, key, serverName, insecureSkipVerify } =
      options('tls', tls, ['ca', 'certificate', 'key', 'serverName', 'insecureSkipVerify']);
    const file = (name, value) => optionalText(`tls.${name}`, value);
    if (ca !== undefined) this.#core.set('setTlsCa', file('ca', ca), null);
    if (certificate !== undefined || key !== undefined) {
      this.#core.set('setTlsCertificate', file('certificate', certificate), file('key', key));
    }
    if (serverName !== undefined) this.#core.set('setTlsServerName', file('serverName', serverName), null);
    if (truth('tls.insecureSkipVerify', insecureSkipVerify)) this.#core.set('setTlsInsecureSkipVerify', true);
  }

  #setTracing(trace) {
    const number = TRACES.indexOf(trace);
    if (number < 0) {
      const words = `trace must be 'events' or 'resources', not '${text('trace', trace)}'`;
      throw wrongValue(words);
    }
    this.#core.set('setTracing', number);
  }

  #setLogger(logger, isTraced) {
    const names = isTraced ? ['warn', 'info', 'debug'] : ['warn', 'info'];
    const isObject = typeof logger === 'object' && logger !== null && names.every((it) => typeof logger[it] === 'function');
    if (typeof logger !== 'function' && !isObject) throw wrongType('logger', `a function or an object with ${names.join(' and ')}`, logger);
    const id = newId();
    this.#logger = new Logger(logger);
    this.#core.loggerId = id;
    loggers.set(id, new WeakRef(this.#logger));
    collectedManagers.register(this, id);
    this.#core.set('setLogger', id);
  }

  setCredentials(username, password) {
    this.#core.checkOpen();
    const secret = typeof password === 'function' ? password : optionalText('password', password);
    this.#core.setCredentials(optionalText('username', username), secret);
  }

  async lock(resource, given) {
    return take(this.#core, demandOf(resource, given));
  }

  async using(resource, given, action) {
    if (typeof action !== 'function') throw wrongType('the third argument', 'a function', action);
    const lease = await take(this.#core, demandOf(resource, given));
    let result;
    try {
      result = await action(lease);
    } catch (error) {
      // The caller needs the exception of the action, not that of the unlock.
      await lease[OWN].end().catch(() => {});
      throw error;
    }
    await lease[OWN].end();
    return result;
  }

  async adopt(ticket, given = {}) {
    return take(this.#core, adoptionOf(ticket, given));
  }

  async isLocked(resource, given = {}) {
    return this.#askAbout('isLocked', resource, signalOf(given));
  }

  async inspect(resource, given = {}) {
    const { permits, signal } = options('options', given, ['permits', 'signal']);
    const info = await this.#askAbout('inspect', resource, abortSignal('signal', signal), permitsOf(permits));
    return { ...info, remaining: info.remaining < 0 ? Infinity : info.remaining };
  }

  async #askAbout(call, resource, signal, ...more) {
    const name = bytes(resource);
    // The library takes the name as a string that ends with a NUL.
    if (name.includes(0)) throw wrongValue('resource contains a NUL');
    const { answer } = await this.#core.wait(call, [name, ...more], signal);
    return answer;
  }

  async connect(timeout = 0, given = {}) {
    const { words } = await this.#core.wait('connect', [milliseconds('timeout', timeout)], signalOf(given));
    return words;
  }

  servers() {
    this.#core.checkOpen();
    const told = ({ roundTripUs, clockOffsetUs, ...server }) => ({
      ...server,
      roundTrip: roundTripUs < 0 ? undefined : roundTripUs / 1000,
      clockOffset: clockOffsetUs === null ? undefined : clockOffsetUs / 1000,
    });
    return this.#core.servers().map(told);
  }

  stats() {
    this.#core.checkOpen();
    const { boundsUs, ...stats } = this.#core.stats();
    const bounds = boundsUs.map((us) => us / 1000);
    for (const name of ['acquireTime', 'waitTime', 'holdTime', 'roundTrip']) {
      const { count, sumUs, buckets } = stats[name];
      stats[name] = { count, sum: sumUs / 1000, buckets, bounds };
    }
    return stats;
  }

  statsText() {
    this.#core.checkOpen();
    return this.#core.statsText();
  }

  async close() {
    await this.#core.close();
  }

  get isClosed() {
    return this.#core.isClosed;
  }

  [INSPECT](depth, inspectOptions, inspect) {
    return showAs(this, { servers: this.#count, isClosed: this.isClosed }, inspectOptions, inspect);
  }
}

// Node.js before 18.18 has no such symbol.
if (typeof Symbol.asyncDispose === 'symbol') {
  Manager.prototype[Symbol.asyncDispose] = async function asyncDispose() {
    await this.close();
  };
}

module.exports = { Manager };
