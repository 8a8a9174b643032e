// What the page stands in. A file has nothing of this and is shown as it is; a
// program that shows the page itself, such as an editor, may give:
//
//   loadTrial(taskId, num)  a promise of all of a trial, instead of what is packed
//                           in the file; null when it cannot be had
//   openTask(taskId)        shows where the suite declares a task
//   openGrader(taskId, name)  and a grader of it
//   address                 #task/… that is shown at first, instead of that of the window
//   moved(address)          called when another is
//   state                   what state() of an earlier showing gave: filters, order,
//                           open tasks and the trial that is open stay as they were
//   signal                  an AbortSignal that ends this showing before the next
//   themed                  true: the host sets data-theme, and no button does

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
