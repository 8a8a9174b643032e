// Elements. These two functions make everything that the page shows. Texts are only
// ever text: an agent's output is never read as markup.

const SVG = 'http://www.w3.org/2000/svg';

// byId returns an element of page.html.
const byId = (id) => document.getElementById(id);

// el makes an element. Properties become attributes, except for class, for on* (a
// listener), and for values null, undefined or false, which are omitted. Children are
// elements, texts, or lists of both; null is omitted.
function el(name, properties, ...children) {
  return fill(document.createElement(name), properties, children);
}

// svg makes an element of a drawing.
function svg(name, properties, ...children) {
  return fill(document.createElementNS(SVG, name), properties, children);
}

function fill(element, properties, children) {
  for (const [key, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

// put replaces the content of an element.
function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

// announce makes screen readers read a text aloud.
function announce(text) {
  byId('announcement').textContent = text;
}

// The tooltip: every element with data-tip shows its text under the pointer. The text is
// also in a label or in the table, so the tooltip is only for sighted readers.
function watchTips() {
  const tip = byId('tip');
  document.addEventListener(
    'pointermove',
    (event) => {
      const at = event.target.closest ? event.target.closest('[data-tip]') : null;
      tip.hidden = !at;
      if (!at) return;
      tip.textContent = at.dataset.tip;
      const { offsetWidth: width, offsetHeight: height } = tip;
      const left = Math.min(event.clientX + 12, innerWidth - width - 8);
      const top = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
      tip.style.transform = `translate(${Math.max(8, left)}px, ${top}px)`;
    },
    { passive: true, ...LISTEN },
  );
  document.addEventListener(
    'pointerleave',
    () => {
      tip.hidden = true;
    },
    LISTEN,
  );
  document.addEventListener(
    'scroll',
    () => {
      tip.hidden = true;
    },
    { passive: true, capture: true, ...LISTEN },
  );
}
