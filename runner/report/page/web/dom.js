// Elements. Everything that the page shows is made by these two functions, and
// texts are only ever text: nothing that an agent wrote is read as markup.

const SVG = 'http://www.w3.org/2000/svg';

// byId returns an element of page.html.
const byId = (id) => document.getElementById(id);

// el makes an element. Properties are attributes, but for class, for on* (a
// listener) and for those whose value is null, undefined or false, which are left
// out. Children are elements, texts, or lists of both; null is left out.
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

// put replaces what is in an element.
function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return element;
}

// tell lets screen readers say something.
function tell(text) {
  byId('told').textContent = text;
}

// The tooltip: whatever has data-tip shows it under the pointer. What it says is
// also in a label or in the table, so it is for eyes alone.
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
