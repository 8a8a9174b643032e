// Opens the built site in Chromium, offline, and uses its search as a reader would.
//
//   node search.mjs MODULES CHROMIUM SITE SCREENSHOTS
//
// MODULES is a directory with playwright-core below node_modules. Each scenario prints
// one line; a page that logs an error or asks another host for anything fails it.

import assert from 'node:assert/strict'
import { createReadStream, existsSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import path from 'node:path'

const [modules, executablePath, site, screenshots] = process.argv.slice(2)
const { chromium } = createRequire(path.join(modules, 'package.json'))('playwright-core')
mkdirSync(screenshots, { recursive: true })

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.png': 'image/png', '.woff2': 'font/woff2', '.json': 'application/json' }
const server = createServer((request, response) => {
  let file = path.join(site, path.normalize(decodeURIComponent(new URL(request.url, 'http://localhost').pathname)))
  if (file.endsWith('/')) file += 'index.html'
  else if (!path.extname(file)) file += '.html'
  if (!existsSync(file)) return response.writeHead(404).end()
  response.writeHead(200, { 'Content-Type': types[path.extname(file)] ?? 'text/plain' })
  createReadStream(file).pipe(response)
})
await new Promise((done) => server.listen(0, '127.0.0.1', done))
const home = `http://127.0.0.1:${server.address().port}`

const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']
const browser = await chromium.launch({ executablePath, args: flags })
const faults = []

async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  page.on('console', (message) => message.type() === 'error' && faults.push(`console: ${message.text()}`))
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`))
  page.on('request', (request) => /^(data:|blob:)/.test(request.url()) || request.url().startsWith(home) || faults.push(`request: ${request.url()}`))
  await page.goto(home + url)
  return page
}

// search searches for words, opens the first result, and waits until its page shows them.
async function search(words) {
  const page = await open('/')
  await page.locator('.VPNavBarSearch button').first().click()
  await page.locator('.VPLocalSearchBox input').fill(words)
  await page.locator('.VPLocalSearchBox .result').first().waitFor()
  await page.screenshot({ path: path.join(screenshots, `search ${words}.png`), animations: 'disabled' })
  await page.locator('.VPLocalSearchBox .result').first().click()
  await page.waitForURL((url) => url.pathname !== '/' || url.hash !== '')
  await page.locator('main', { hasText: words }).first().waitFor()
  await page.context().close()
}

const scenarios = {
  'search finds pass@k': () => search('pass@k'),
  'search finds stopping': () => search('stopping'),
  'search finds -32003': () => search('-32003'),
  'the page is dark on a dark system': async () => {
    const page = await open('/docs/suite', { colorScheme: 'dark' })
    await page.locator('html.dark').waitFor()
    const [r, g, b] = (await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).match(/\d+/g).map(Number)
    assert.ok(r + g + b < 200, `background ${r} ${g} ${b}`)
    await page.screenshot({ path: path.join(screenshots, 'dark.png'), animations: 'disabled' })
  },
  'a link of the table of contents opens its page': async () => {
    const page = await open('/docs/')
    await page.locator('main').getByRole('link', { name: 'Graders' }).first().click()
    await page.locator('h1', { hasText: 'Graders' }).waitFor()
    await page.screenshot({ path: path.join(screenshots, 'page.png'), animations: 'disabled' })
  },
}

let failed = 0
for (const [name, play] of Object.entries(scenarios)) {
  faults.length = 0
  try {
    await play()
    assert.deepEqual(faults, [])
    console.log(`  pass  ${name}`)
  } catch (error) {
    failed++
    console.log(`  FAIL  ${name}\n${error.message.slice(0, 500)}`)
  }
}
await browser.close()
server.close()
process.exit(failed ? 1 : 0)
