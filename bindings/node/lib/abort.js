'use strict';

// What an AbortSignal ends.

// The calls that signals end, by the signals. Each signal has one listener, however many calls it ends, because
// Node.js warns of more than ten.
const endings = new WeakMap();

// Calls the function when the signal is aborted. Returns a function that undoes this.
function onAbort(signal, action) {
  if (signal === undefined) return () => {};
  let ending = endings.get(signal);
  if (ending === undefined) {
    const actions = new Set();
    ending = { actions, listener: () => actions.forEach((it) => it()) };
    endings.set(signal, ending);
    signal.addEventListener('abort', ending.listener, { once: true });
  }
  const { actions, listener } = ending;
  // A new function object, because the same function may be added twice.
  const own = () => action();
  actions.add(own);
  return () => {
    actions.delete(own);
    if (actions.size > 0 || endings.get(signal) !== ending) return;
    endings.delete(signal);
    signal.removeEventListener('abort', listener);
  };
}

function throwIfAborted(signal) {
  // Not the method of the signal, because not every implementation has it.
  if (signal?.aborted) throw reasonOf(signal);
}

// Not every implementation of signals has reasons. An error that is undefined looks like none.
function reasonOf(signal) {
  return signal.reason === undefined ? new DOMException('This operation was aborted', 'AbortError') : signal.reason;
}

// The result of the promise, or a rejection with the reason of the first aborted signal, whichever comes first.
async function unlessAborted(promise, ...signals) {
  const undo = [];
  const aborted = new Promise((resolve, reject) => {
    for (const signal of signals) {
      if (signal?.aborted) reject(reasonOf(signal));
      else undo.push(onAbort(signal, () => reject(reasonOf(signal))));
    }
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    undo.forEach((it) => it());
  }
}

module.exports = { onAbort, throwIfAborted, unlessAborted };
