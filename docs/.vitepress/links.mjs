// Checks every link and every image of the built site: its page or file exists, and so does its
// anchor.
//
//   node links.mjs SITE
//
// Links to other hosts are not opened.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'

const site = process.argv[2]
const pages = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html'))
const html = new Map(pages.map((page) => [page, readFileSync(path.join(site, page), 'utf8')]))
const unescape = (text) => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"')
const ids = new Map(pages.map((page) => [page, new Set([...html.get(page).matchAll(/\sid="([^"]*)"/g)].map((m) => unescape(m[1])))]))

let links = 0
const broken = []
for (const page of pages) {
  for (const [, href] of html.get(page).matchAll(/\s(?:href|src)="([^"]*)"/g)) {
    if (/^([a-z]+:|\/\/)/i.test(href)) continue
    links++
    const url = new URL(unescape(href), `http://site/${page}`)
    let file = decodeURIComponent(url.pathname).slice(1)
    if (file === '' || file.endsWith('/')) file += 'index.html'
    else if (!path.extname(file)) file += '.html'
    const anchor = decodeURIComponent(url.hash.slice(1))
    if (!existsSync(path.join(site, file)) || !statSync(path.join(site, file)).isFile()) broken.push(`${page}: ${href}: no such page`)
    else if (anchor !== '' && ids.has(file) && !ids.get(file).has(anchor)) broken.push(`${page}: ${href}: no such anchor`)
  }
}
console.log(`${links} links of ${pages.length} pages, ${broken.length} broken`)
for (const link of broken) console.log(`  ${link}`)
process.exit(broken.length || links < 100 ? 1 : 0)
