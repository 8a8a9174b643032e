// The documentation as a site. Its pages are Markdown files of the repository, each in its
// own folder, so links between them work both in the repository and here. `make docs-site`
// builds the site into .ci/out/site and checks it.
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import GitHubSlugger from 'github-slugger'
import { defineConfig, type DefaultTheme } from 'vitepress'

const repository = resolve(dirname(fileURLToPath(import.meta.url)), '../..')

// Markdown files in these folders, and only directly in them, are pages.
const folders = ['.', 'docs', 'docs/deploy', 'editors', 'editors/vscode', 'editors/neovim', 'editors/jetbrains']

const isPage = (file: string) =>
  file.endsWith('.md') && folders.includes(posix.dirname(file)) && file !== 'editors/vscode/CHANGELOG.md' && existsSync(join(repository, file))

const readmes = folders.map((folder) => posix.join(folder, 'README.md')).filter(isPage)

// Sources are files of the repository that pages link to and that are no pages. They are
// published as plain text; a directory is published as one text of all its files.
const sources = new Set<string>()

function publish(source: string, site: string) {
  const from = join(repository, source)
  const to = join(site, 'source', source + (isBinary(source) ? '' : '.txt'))
  mkdirSync(dirname(to), { recursive: true })
  if (!statSync(from).isDirectory()) return cpSync(from, to)
  const files = readdirSync(from, { recursive: true, encoding: 'utf8' }).sort()
  const texts = files
    .filter((file) => !file.includes('node_modules') && !isBinary(file) && statSync(join(from, file)).isFile())
    .map((file) => `-- ${posix.join(source, file)} --\n${readFileSync(join(from, file), 'utf8')}`)
  writeFileSync(to, texts.join('\n'))
}

const isBinary = (file: string) => /\.(png|gif|ico|jar|zip|gz)$/.test(file)

// hrefOf returns the link for a page that links to href. Links to a README lead to the index of
// its folder, and links to other files of the repository to their sources.
function hrefOf(href: string, page: string): string {
  if (/^([a-z]+:|#|\/\/)/i.test(href)) return href
  const [path, anchor = ''] = href.split(/(?=#)/)
  const target = posix.join(posix.dirname(page), decodeURI(path)).replace(/\/$/, '')
  const readme = target.endsWith('README.md') ? target : posix.join(target, 'README.md')
  if (readmes.includes(readme)) return '/' + readme.replace(/README\.md$/, 'index.md') + anchor
  if (isPage(target)) return href
  if (target.startsWith('..') || !existsSync(join(repository, target))) throw new Error(`${page} links to ${href}, which does not exist`)
  sources.add(target)
  return `/source/${target}${isBinary(target) ? '' : '.txt'}`
}

// sidebar follows the table of contents, docs/README.md: a group for each heading, an item for each
// page in the list below it.
function sidebar(): DefaultTheme.SidebarItem[] {
  const groups: DefaultTheme.SidebarItem[] = [{ items: [{ text: 'waza', link: '/' }, { text: 'All pages', link: '/docs/' }] }]
  const contents = join(repository, 'docs/README.md')
  if (!existsSync(contents)) return groups
  for (const line of readFileSync(contents, 'utf8').split('\n')) {
    const heading = line.match(/^## +(.+)$/)
    if (heading) groups.push({ text: heading[1], collapsed: false, items: [] })
    const page = line.match(/^[-|] *\[([^\]]+)\]\(([^)#]+\.md)\)/)
    if (page && groups.length > 1) groups.at(-1)!.items!.push({ text: page[1], link: posix.join('/docs', page[2]).replace(/README\.md$/, '') })
  }
  return groups
}

export default defineConfig({
  title: 'waza',
  description: 'waza measures whether a change made an agent or agent skill better.',
  lang: 'en',
  srcDir: '..',
  outDir: '../.ci/out/site',
  cacheDir: '../.ci/out/site-cache',
  srcExclude: ['{cmd,eval,rpc,runner,testdata,.ci,.github}/**', '**/{node_modules,testdata}/**', 'editors/*/*/**', 'editors/dialogues/**', 'docs/examples/**', 'editors/vscode/CHANGELOG.md'],
  rewrites: Object.fromEntries(readmes.map((file) => [file, file.replace(/README\.md$/, 'index.md')])),
  vite: {
    plugins: [
      {
        // Pages outside docs find the packages of docs, too.
        name: 'packages-of-docs',
        enforce: 'pre',
        resolveId(id: string, importer?: string) {
          if (/^vue(\/|$)/.test(id) && importer?.endsWith('.md')) return this.resolve(id, join(repository, 'docs/package.json'))
        },
      },
    ],
  },
  head: [
    ['link', { rel: 'icon', href: 'data:,' }],
    // A window of 1440 pixels shows wide diagrams whole, beside both columns of links.
    ['style', {}, '.VPDoc.has-aside .content-container.content-container { max-width: 800px } :root { --vp-code-font-size: 0.8em }'],
  ],
  markdown: {
    html: false,
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    languageAlias: { nats: 'ini', jsonl: 'json', txtar: 'txt', starlark: 'python' },
    // Anchors are GitHub's, so that a link with an anchor works in both places.
    anchor: { slugify: (text) => new GitHubSlugger().slug(text) },
    config(md) {
      // Vue would evaluate {{ and }}, which are template variables of suites here.
      for (const rule of ['text', 'code_inline'] as const) {
        const render = md.renderer.rules[rule]!
        md.renderer.rules[rule] = (...args) => render(...args).replaceAll('{{', '&#123;&#123;')
      }
      md.core.ruler.push('repository', (state) => {
        const page = state.env.relativePath.replace(/index\.md$/, 'README.md')
        for (const token of state.tokens.flatMap((t) => t.children ?? [])) {
          const name = token.type === 'link_open' ? 'href' : token.type === 'image' ? 'src' : undefined
          const value = name && token.attrGet(name)
          if (!value || (name === 'src' && !value.startsWith('.') && value.includes(':'))) continue
          if (name === 'src') {
            token.attrSet('src', value.replace(/^(?!\.)/, './')) // otherwise it names a package
            continue
          }
          const href = hrefOf(value, page)
          token.attrSet('href', href)
          if (href.startsWith('/source/')) token.attrSet('target', '_blank')
        }
      })
    },
  },
  buildEnd(site) {
    for (const source of sources) publish(source, site.outDir)
  },
  themeConfig: {
    nav: [
      { text: 'Get started', link: '/docs/getting-started' },
      { text: 'All pages', link: '/docs/' },
    ],
    sidebar: sidebar(),
    outline: [2, 3],
    search: {
      provider: 'local',
      options: {
        miniSearch: {
          // Terms such as pass@k and eval.run are words, and so are their parts.
          options: {
            tokenize: (text) =>
              text
                .split(/\s+/)
                .map((word) => word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ''))
                .flatMap((word) => [word, ...(/[^\p{L}\p{N}]/u.test(word) ? word.split(/[^\p{L}\p{N}]+/u) : [])])
                .filter((word) => word !== ''),
          },
          searchOptions: { combineWith: 'AND' },
        },
      },
    },
  },
})
