// Start of a page that is a file, which contains its data.

const data = document.getElementById('run');
const text = data.textContent;
data.remove(); // it is needed only once
wazaReport(JSON.parse(text), {});
performance.mark('shown');
