import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, sep } from 'node:path'

/** The part of `marked` that is used here. It is there in a clone, and not needed by the published package. */
interface MarkedModule {
  readonly Marked: new (options: object) => { parse(text: string): string }
}

/** What `marked` passes to the function that renders a heading. */
interface Heading {
  readonly tokens: readonly object[]
  readonly depth: number
  readonly text: string
}

/**
 * Renders one page of the documentation from its Markdown file, for a clone in which the site of the documentation has
 * not been built. Needs nothing from the network. Returns undefined if there is no such page.
 */
export function plainDocsPage(repository: string, name: string): string | undefined {
  const path = name === '' ? 'index.html' : name
  const [, page] = /^((?:[\w.-]+\/)*[\w.-]+)\.html$/.exec(path) ?? []
  if (page === undefined || page.split('/').includes('..')) return undefined
  // Pages outside `docs/`, such as the READMEs of the packages, are below `repo/`.
  const file = page.startsWith(OUTSIDE)
    ? join(repository, `${page.slice(OUTSIDE.length)}.md`)
    : join(repository, 'docs', `${page}.md`)
  if (!existsSync(file) || file.includes(`${sep}node_modules${sep}`)) return undefined
  const text = readFileSync(file, 'utf8').replace(/^---\n[^]*?\n---\n/, '')
  const up = '../'.repeat(page.split('/').length - 1)
  const title = /^# (.+)$/m.exec(text)?.[1] ?? page
  const { Marked } = createRequire(import.meta.url)('marked') as MarkedModule
  const marked = new Marked({
    gfm: true,
    renderer: {
      heading(
        this: { readonly parser: { parseInline(tokens: readonly object[]): string } },
        { tokens, depth, text: words }: Heading,
      ) {
        const inside = this.parser.parseInline(tokens)
        return `<h${depth} id="${anchorOf(words)}">${inside}</h${depth}>\n`
      },
    },
    walkTokens(token: { type: string; href?: string }) {
      if (token.type === 'link' && token.href !== undefined)
        token.href = linkTo(token.href, { repository, file, up })
    },
  })
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${escapeHtml(title)} · Skein</title>
<link rel="stylesheet" href="${up}plain.css"></head>
<body><header><nav aria-label="Pages"><a href="${up}../">← Studio</a> <a href="${up}index.html">Documentation</a>
<a href="${up}README.html">All pages</a> <a href="${up}errors.html">Errors</a> <a href="${up}words.html">Words</a></nav></header>
<main>${marked.parse(text)}</main>
<footer>These are the Markdown files of this clone. <code>npm run docs</code> builds the whole site, with search and
reference.</footer></body></html>
`
}

const OUTSIDE = 'repo/'

/** Rewrites a link between Markdown files to one between their pages. Other files of the repository have no page. */
function linkTo(
  href: string,
  {
    repository,
    file,
    up,
  }: { readonly repository: string; readonly file: string; readonly up: string },
): string {
  const end = href.search(/[#?]/)
  const [path, rest] = end < 0 ? [href, ''] : [href.slice(0, end), href.slice(end)]
  if (path === '' || /^[a-z]+:/i.test(path)) return href
  const target = join(dirname(file), path)
  if (!path.endsWith('.md') || !existsSync(target)) return '#'
  const page = relative(repository, target).split(sep).join('/').replace(/\.md$/, '.html')
  const place = page.startsWith('docs/') ? page.slice('docs/'.length) : `${OUTSIDE}${page}`
  return `${up}${place}${rest}`
}

/** The anchor of a heading, as links between Markdown files write it. */
function anchorOf(heading: string): string {
  const words = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
  return words.trim().replaceAll(/\s/g, '-')
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

export const PLAIN_CSS: string = `:root { color-scheme: light dark }
body { font: 15px/1.55 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 0 16px 64px }
body { background: light-dark(#fff, #0f1113); color: light-dark(#15181b, #e9ecef) }
nav { display: flex; flex-wrap: wrap; gap: 4px 16px; padding: 12px 0; border-bottom: 1px solid light-dark(#cdd3da, #3a424b) }
a { color: light-dark(#2356c0, #86aeff) }
pre { overflow-x: auto; padding: 12px; background: light-dark(#f8f9fa, #14171a) }
code { font-size: 0.9em }
table { display: block; overflow-x: auto; border-collapse: collapse }
th, td { padding: 4px 10px; border: 1px solid light-dark(#e4e7eb, #262b31); text-align: left; vertical-align: top }
img { max-width: 100% }
footer { margin-top: 48px; color: light-dark(#545d66, #a0a9b3); font-size: 0.9em }
`
