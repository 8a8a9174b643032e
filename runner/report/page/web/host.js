// The host of the page. A file has no host and is shown as it is. A program that shows
// the page itself, such as an editor, can provide:
//
//   loadTrial(taskId, num)  returns a promise of the whole data of a trial, which
//                           replaces the packed data; null if it is not available
//   openTask(taskId)        shows where the suite declares a task
//   openGrader(taskId, name)  shows where the suite declares a grader of a task
//   address                 #task/… to show first, instead of the window's address
//   moved(address)          is called when the address changes
//   state                   the result of state() of an earlier display: filters, order,
//                           open tasks and the open trial are restored from it
//   signal                  an AbortSignal that ends this display before the next one
//   themed                  true if the host sets data-theme; no button changes it then

const LISTEN = HOST.signal ? { signal: HOST.signal } : {};

const address = {
  now: HOST.moved ? (HOST.state ? HOST.state.address : HOST.address) || '' : null,
  get: () => (address.now === null ? location.hash : address.now),
  set(hash, step) {
    if (address.now === null) return history[step ? 'pushState' : 'replaceState'](null, '', hash);
    address.now = hash;
    return HOST.moved(hash);
  },
};
