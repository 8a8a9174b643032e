// Begin, where the page is a file: its data stands in it.

const data = document.getElementById('run');
const text = data.textContent;
data.remove(); // it is not needed twice
wazaReport(JSON.parse(text), {});
performance.mark('shown');
